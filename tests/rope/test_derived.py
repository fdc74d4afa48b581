"""What follows from a spec: numbers as published or counted another way, the same in every command that shows them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import pytest

from ropectl.records import to_json
from ropectl.rope.derived import derived_values
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.profile import reference_method
from ropectl.rope.registry import all_methods, parse_method

pytestmark = pytest.mark.usefixtures("short_calibration")

Run = Callable[..., tuple[int, str, str]]

LLAMA2 = RopeGeometry(rotary_dim=128, rope_theta=10_000.0, original_max_position_embeddings=4096)
LLAMA3 = RopeGeometry(rotary_dim=128, rope_theta=500_000.0, original_max_position_embeddings=8192)
GEOMETRIES = [LLAMA2, LLAMA3, RopeGeometry(32, 10_000.0, 512), RopeGeometry(64, 1e6, 32_768)]


def values(spec: str, geometry: RopeGeometry = LLAMA2, **lengths: int) -> dict[str, Any]:
    found = derived_values(parse_method(spec, 4.0, geometry), geometry, **lengths)
    return {name: value.value for name, value in found.items()}


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=str)
@pytest.mark.parametrize("betas", [(32.0, 1.0), (16.0, 2.0)])
def test_the_ramp_of_yarn(geometry: RopeGeometry, betas: tuple[float, float]) -> None:
    """From the last pair that turns beta_fast times in L to the first that turns no more than beta_slow times."""
    turns = [
        geometry.original_max_position_embeddings
        * geometry.rope_theta ** (-2 * i / geometry.rotary_dim)
        / (2 * math.pi)
        for i in range(geometry.num_pairs)
    ]
    fast, slow = betas
    counted = [sum(turn >= fast for turn in turns) - 1, sum(turn > slow for turn in turns)]
    spec = f"beta_fast={fast},beta_slow={slow}"
    assert values(f"yarn:{spec}", geometry)["ramp_pairs"] == counted
    assert values(f"dynamic-yarn:{spec}", geometry)["ramp_pairs"] == counted
    low, high = values(f"yarn:{spec},truncate=false", geometry)["ramp_pairs"]
    assert counted[0] <= low < counted[0] + 1 and counted[1] - 1 < high <= counted[1]


def test_published_numbers() -> None:
    """Llama 3.1's corners (low_freq_wavelen, high_freq_wavelen), YaRN's ramp and temperature on LLaMA 2, the NTK base."""
    assert values("llama3", LLAMA3)["ramp_wavelengths"] == [2048.0, 8192.0]
    assert values("ntk-by-parts")["ramp_wavelengths"] == [128.0, 4096.0]
    yarn = values("yarn")
    assert yarn["ramp_pairs"] == [20, 46] and yarn["attention_factor"] == pytest.approx(0.1 * math.log(4) + 1)
    assert (yarn["factor"], yarn["base"], yarn["trained_length"], yarn["target_length"]) == (4.0, 1e4, 4096, 16_384)
    assert values("ntk")["base"] == pytest.approx(1e4 * 4 ** (128 / 126))
    assert values("abf:rope_theta=1000000")["base"] == 1e6
    longrope = values("longrope:long_factor=" + ":".join(["1", *["2.5"] * 62, "9"]))
    assert longrope["long_factors"] == [1.0, 9.0] and "short_factors" not in longrope
    assert longrope["attention_factor"] == pytest.approx(math.sqrt(1 + math.log(4) / math.log(4096)))


def test_methods_that_follow_the_length() -> None:
    """Where they begin, or what they are frozen at; attention factor and base are those of the length they are meant for."""
    free = values("dynamic-yarn", target_length=16_384)
    assert free["changes_after"] == 4096 and "frozen_at" not in free
    frozen = values("dynamic-yarn", seq_len=16_384)
    assert frozen["frozen_at"] == frozen["target_length"] == 16_384 and "changes_after" not in frozen
    assert free["attention_factor"] == frozen["attention_factor"] == values("yarn")["attention_factor"]
    assert free["factor"] == frozen["factor"] == 4
    assert values("dynamic-ntk", seq_len=16_384)["base"] == pytest.approx(values("ntk")["base"])
    both = values("longrope:long_factor=" + ":".join(["4"] * 64) + ",short_factor=" + ":".join(["1.5"] * 64))
    assert both["changes_after"] == 4096 and both["short_factors"] == [1.5, 1.5]


@pytest.mark.parametrize("name", all_methods())
def test_every_method(name: str) -> None:
    """The values are numbers with a unit and a meaning, and agree with the config that is written."""
    method = reference_method(all_methods()[name])
    if method is None:
        method = parse_method(f"{name}:factor=4,long_factor=" + ":".join(["4"] * 64))
    found = derived_values(method, LLAMA2, 16_384 if method.depends_on_seq_len else None)
    for value in found.values():
        numbers = value.value if isinstance(value.value, list) else [value.value]
        assert all(math.isfinite(number) for number in numbers) and value.unit and value.meaning
    json.dumps({key: to_json(value) for key, value in found.items()})
    written = method.config_patch(LLAMA2, 16_384 if method.depends_on_seq_len else None)
    assert found["base"].value == written.rope_parameters["rope_theta"]
    assert found["factor"].value == pytest.approx(found["target_length"].value / 4096, abs=1e-4)


MODEL = "builtin:tiny"


SMALL = ["--steps", "1", "--batch-size", "1", "--seq-len", "512"]


@pytest.mark.process
@pytest.mark.parametrize(
    ("command", "spec", "shown"),
    [
        (["patch", "--dry-run"], "yarn", ["1.138629", "ramp pairs", "1 to 8"]),
        (["inspect"], "yarn", ["1.138629", "ramp pairs", "1 to 8"]),
        (["finetune", "--dry-run", *SMALL], "yarn", ["1.138629", "ramp pairs", "1 to 8", "2048 tokens"]),
        (["patch", "--dry-run"], "llama3", ["ramp wavelengths", "128 to 512 tokens"]),
        (["patch", "--dry-run"], "ntk", ["43873"]),
    ],
    ids=lambda value: value if isinstance(value, str) else value[0],
)
def test_every_command_shows_the_same(
    ropectl: Run, monkeypatch: pytest.MonkeyPatch, command: list[str], spec: str, shown: list[str]
) -> None:
    """For people within 80 columns, and in JSON."""
    monkeypatch.setenv("COLUMNS", "80")
    asked = [*command, "-m", spec, "--factor", "4"]
    expected = derived_values(parse_method(f"{spec}:factor=4"), RopeGeometry(32, 1e4, 512))
    found = json.loads(ropectl(*asked, "--format", "json")[1])
    record = found[0] if isinstance(found, list) else found
    assert record["derived"] == {name: to_json(value) for name, value in expected.items()}
    code, out, _ = ropectl(*asked)
    text = " ".join(out.split())
    assert code == 0 and all(part in text for part in shown), out
    assert all(len(line) <= 80 for line in out.split("transformers:")[0].splitlines()), "commands to copy stay whole"


@pytest.mark.process
def test_a_comparison_shows_every_method(ropectl: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    command = ["compare-methods", MODEL, "-m", "yarn", "-m", "dynamic-ntk", "--factor", "4", "--no-passkey"]
    command += ["--documents", "1", "--dry-run"]
    derived = json.loads(ropectl(*command, "--format", "json")[1])["models"][0]["derived"]
    assert list(derived) == ["none", "yarn:factor=4", "dynamic-ntk"]
    assert derived["yarn:factor=4"]["ramp_pairs"]["value"] == [1, 8]
    assert derived["dynamic-ntk"]["base"]["value"] == pytest.approx(1e4 * 4 ** (32 / 30))
    assert derived["none"]["target_length"]["value"] == 512
    _, out, _ = ropectl(*command)
    (line,) = [line for line in out.splitlines() if "yarn:factor=4" in line]
    assert line.split() == ["yarn:factor=4", "4", "1.1386", "10000", "2048", "ramp", "pairs", "1", "to", "8"]
    assert all(len(line) <= 80 for line in out.splitlines())
