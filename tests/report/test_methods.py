"""Pages of methods at the widths people have: whole words, nothing cut."""

from __future__ import annotations

import pytest

from ropectl.report.document import Part
from ropectl.report.views.methods import method_page, methods_list
from ropectl.report.writers.terminal import terminal_lines
from ropectl.rope.catalog import describe_method
from ropectl.rope.registry import all_methods
from ropectl.runtimes.matrix import reference_readings

NAMES = list(all_methods())
WIDTHS = [60, 120]
NARROW = [30, 50]


def shown(parts: list[Part], width: int) -> str:
    return "\n".join(line.plain for line in terminal_lines(parts, width))


def words(text: str) -> list[str]:
    return text.replace("``", "").split()


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", NAMES)
def test_page_keeps_every_word(name: str, width: int) -> None:
    kind = all_methods()[name]
    page = shown(list(method_page(kind, reference_readings(kind))), width)
    assert "…" not in page and "\x1b" not in page and max(map(len, page.splitlines())) <= width
    found = set(page.split())
    entry = describe_method(kind)
    for text in (entry["summary"], entry["formula"], entry["reference"], *entry["guide"].values()):
        assert not [word for word in words(text) if word not in found]
    for parameter in entry["parameters"]:
        assert parameter["name"] in found
    for pair in (entry["profile"] or {"pairs": []})["pairs"]:
        assert f"{pair['divisor']:.3f}" in found and f"{pair['turns']:.2f}" in found


@pytest.mark.parametrize("width", WIDTHS)
def test_list_keeps_every_word(width: int) -> None:
    entries = [describe_method(kind) for kind in all_methods().values()]
    text = shown(list(methods_list(list(all_methods().values()))), width)
    assert "…" not in text and max(map(len, text.splitlines())) <= width
    found = set(text.replace("*", " ").replace(",", " ").split())
    for entry in entries:
        assert entry["name"] in found and {parameter["name"] for parameter in entry["parameters"]} <= found
        assert set(words(f"{entry['title']} {entry['native']}".replace(",", " "))) <= found


@pytest.mark.parametrize("width", NARROW)
@pytest.mark.parametrize("name", NAMES)
def test_narrow_pages_lose_no_letter(name: str, width: int) -> None:
    """Words may break there, and tables go on below; every letter and every digit is still there."""
    kind = all_methods()[name]
    entry, full = describe_method(kind), shown(method_page(kind, reference_readings(kind)), width)
    for page in (full, shown(methods_list([kind]), width)):
        assert "…" not in page and max(map(len, page.splitlines())) <= width
    letters = "".join(page.split())
    assert name in letters and all(one["name"] in letters for one in entry["parameters"])
    found = set(full.split())
    for pair in (entry["profile"] or {"pairs": []})["pairs"]:
        assert {f"{pair['divisor']:.3f}", f"{pair['turns']:.2f}", f"{pair['wavelength']:.1f}"} <= found
