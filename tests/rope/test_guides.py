"""Every method explains itself, in its own file, with numbers that are the README's."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import ClassVar

import pytest

from ropectl.report.views.methods import method_page
from ropectl.rope.catalog import describe_method
from ropectl.rope.choose import weigh
from ropectl.rope.frequencies import RopeFrequencies, trained_inv_freq
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.method import Reference, ScalingMethod
from ropectl.rope.profile import REFERENCE, divisor_profile
from ropectl.rope.registry import all_methods, parse_method
from ropectl.runtimes.matrix import reference_readings

NAMES = list(all_methods())
ROOT = Path(__file__).parents[2]
MEASURED = "".join((ROOT / page).read_text() for page in ("README.md", "docs/finetuning.md"))


@pytest.mark.parametrize("name", NAMES)
def test_has_a_guide(name: str) -> None:
    guide = all_methods()[name].guide
    assert guide is not None, f"{name}: say what it does to fast and slow pairs, when it is worth using, what it costs"
    for field, text in guide.to_json().items():
        assert text.endswith(".") or (field == "measured" and not text), f"{field}: {text!r}"


@pytest.mark.parametrize("name", NAMES)
def test_measured_shares_stand_in_the_documents(name: str) -> None:
    """In a row of the method's own."""
    guide = all_methods()[name].guide
    assert guide is not None
    rows = [line for line in MEASURED.splitlines() if re.match(rf"[ |`]*{re.escape(name)}[ ,|`]", line)]
    shares = re.findall(r"([+-]\d+\.\d) %", guide.measured)
    assert not guide.measured or shares or name == "none"  # of which absolute numbers are quoted
    for share in shares:
        assert any(f"{share}%" in row or f"{share} %" in row for row in rows), f"{name}: {share} %"


def test_shift_orders_methods_as_their_measured_price_does() -> None:
    """What the choice goes by, against what was measured on the built-in model untuned at factor 4."""
    geometry = RopeGeometry(rotary_dim=32, rope_theta=10_000.0, original_max_position_embeddings=512)
    prices = {}
    for name in ("llama3", "ntk", "yarn", "abf", "ntk-by-parts", "pi"):
        guide = all_methods()[name].guide
        assert guide is not None
        found = re.search(r"\+(\d+\.\d) %", guide.measured)
        assert found
        prices[name] = float(found[1])
    shifts = {name: weigh(parse_method(name, 4.0, geometry), geometry, 2048).shift for name in prices}
    assert sorted(prices, key=prices.__getitem__) == sorted(shifts, key=shifts.__getitem__)


@pytest.mark.parametrize("name", [name for name, kind in all_methods().items() if divisor_profile(kind)])
def test_profile_is_the_formula(name: str) -> None:
    """Each shown divisor against the method's own frequencies; wavelength and turns in closed form."""
    kind = all_methods()[name]
    profile = divisor_profile(kind)
    assert profile is not None
    method = parse_method(profile.method)
    frequencies = method.frequencies(REFERENCE, profile.seq_len)
    for pair in profile.pairs:
        index = pair.pair
        expected = 10_000.0 ** (-2 * index / 128)
        assert pair.divisor == pytest.approx(expected / frequencies.inv_freq[index], rel=1e-12)
        assert pair.wavelength == pytest.approx(2 * math.pi / expected, rel=1e-12)
        assert pair.turns == pytest.approx(4096 / pair.wavelength, rel=1e-12)
    assert [pair.pair for pair in profile.pairs][-1] == 63


def test_anchors_of_profiles() -> None:
    """Published ends: interpolation divides all by 4, NTK-aware runs from 1 to 4, YaRN keeps fast pairs and divides slow ones."""
    ends = {
        name: [pair.divisor for pair in profile.pairs]
        for name in ("pi", "ntk", "yarn")
        if (profile := divisor_profile(all_methods()[name])) is not None
    }
    assert ends["pi"] == pytest.approx([4.0] * len(ends["pi"]))
    assert (ends["ntk"][0], ends["ntk"][-1]) == pytest.approx((1.0, 4.0))
    assert (ends["yarn"][0], ends["yarn"][-1]) == pytest.approx((1.0, 4.0))


def test_a_package_s_method_without_a_guide_is_shown() -> None:
    class Plain(ScalingMethod):
        """As trained, from elsewhere."""

        name = "plain"
        title: ClassVar[str] = "Plain"
        formula = "inv_freq_i = th_i"
        reference = Reference("Somewhere")
        native = "none"

        def frequencies(self, geometry: RopeGeometry, seq_len: int | None = None) -> RopeFrequencies:
            return RopeFrequencies(trained_inv_freq(geometry))

    assert describe_method(Plain)["guide"] is None and method_page(Plain, reference_readings(Plain))
