"""The colours of the page can be read, in both schemes and on paper (WCAG 2, 1.4.3)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import ropectl.report.writers

CSS = (Path(ropectl.report.writers.__file__).parent / "assets" / "page.css").read_text()

#: Text colour and what it stands on.
PAIRS = [
    ("text", "back"), ("text", "card"), ("text", "pick-back"), ("quiet", "back"), ("quiet", "card"),
    ("quiet", "pick-back"), ("quiet", "best-back"), ("link", "back"), ("link", "pick-back"), ("best", "best-back"),
    ("worse", "back"), ("worse", "pick-back"), ("worse", "card"), ("better", "back"), ("better", "pick-back"),
    ("better", "best-back"), ("badge", "badge-back"),
]  # fmt: skip


def schemes() -> dict[str, dict[str, str]]:
    light, dark, paper = (
        dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{3,6})", block))
        for block in re.findall(r":root \{(.*?)\}", CSS, re.DOTALL)
    )
    return {"light": light, "dark": {**light, **dark}, "paper": {**light, **paper}}


def luminance(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    channels = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", ["light", "dark", "paper"])
@pytest.mark.parametrize("pair", PAIRS, ids="-on-".join)
def test_contrast(scheme: str, pair: tuple[str, str]) -> None:
    light, dark = sorted((luminance(schemes()[scheme][name]) for name in pair), reverse=True)
    assert (light + 0.05) / (dark + 0.05) >= 4.5


def test_both_schemes_know_every_colour() -> None:
    used = set(re.findall(r"var\(--([a-z-]+)\)", CSS))
    assert all(used <= set(colours) for colours in schemes().values())
    assert schemes()["dark"]["back"] != schemes()["light"]["back"]
