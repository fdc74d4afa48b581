"""How columns are grouped, words are broken, and numbers become bars, curves and marks."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from ropectl.report.document import SmallTables, Table
from ropectl.report.graphics import BAR_WIDTH, EMPTY, MAX_CURVE, bar, chosen, curve, curve_scale
from ropectl.report.tables.heat_maps import differing_maps
from ropectl.report.views.compare_methods import comparison_parts
from ropectl.report.writers.fold import column_groups, fold, spread
from ropectl.report.writers.small_tables import shade_style
from ropectl.report.writers.terminal import terminal_lines

from . import records


@given(st.integers(0, 40), st.lists(st.integers(1, 30), max_size=30), st.integers(1, 200), st.integers(0, 3))
def test_groups_hold_every_column_once_and_fit(first: int, widths: list[int], width: int, gap: int) -> None:
    groups = column_groups(first, widths, width, gap)
    assert [index for group in groups for index in group] == list(range(len(widths)))
    for number, group in enumerate(groups):
        used = first + sum(gap + widths[index] for index in group)
        assert used <= width or len(group) <= 1
        if number + 1 < len(groups):
            assert used + gap + widths[groups[number + 1][0]] > width, "a further column would have fitted"


@given(st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp", "Mn", "Me", "Cf", "Lm", "Sk"]), max_size=80), st.integers(2, 40), st.integers(0, 2))  # fmt: skip
def test_folding_loses_nothing(text: str, width: int, indent: int) -> None:
    lines = fold(text, width, indent)
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert all(cell_len(line) <= width for line in lines)


def test_specs_break_between_their_parts() -> None:
    assert fold("yarn:factor=16,beta_fast=48,attention_factor=1.25", 22, 2) == [
        "yarn:factor=16,", "  beta_fast=48,", "  attention_factor=", "  1.25",
    ]  # fmt: skip
    assert fold("a sentence with words", 10) == ["a sentence", "with words"]


@given(st.lists(st.tuples(st.integers(1, 20), st.integers(1, 60)), min_size=1, max_size=6), st.integers(-5, 100))
def test_spare_room_is_given_only_to_who_wants_it(pairs: list[tuple[int, int]], spare: int) -> None:
    widths, wanted = [min(pair) for pair in pairs], [max(pair) for pair in pairs]
    result = spread(widths, wanted, spare)
    assert all(a <= b <= c for a, b, c in zip(widths, result, wanted, strict=True))
    assert sum(result) - sum(widths) == max(0, min(spare, sum(wanted) - sum(widths)))


@pytest.mark.parametrize(
    ("share", "expected"),
    [(0, EMPTY * 8), (1, "█" * 8), (2, "█" * 8), (-1, EMPTY * 8), (0.25, "██" + EMPTY * 6), (1 / 64, "▏" + EMPTY * 7),
     (0.5 + 1 / 32, "████▎" + EMPTY * 3), (math.inf, "█" * 8), (math.nan, EMPTY * 8)],
)  # fmt: skip
def test_bars(share: float, expected: str) -> None:
    assert bar(share) == expected and len(expected) == BAR_WIDTH


def test_curves_share_a_log_scale() -> None:
    """Eight equal steps of the logarithm: from 1 to 2 ** 3.5 a level is half a doubling."""
    values = [2 ** (level / 2) for level in range(8)]
    scale = curve_scale([*values, None, math.nan])
    assert scale == (1.0, 2**3.5) and curve(values, scale) == "▁▂▃▄▅▆▇█"
    assert curve([None, math.nan, math.inf, 0.0], scale) == f"{EMPTY}{EMPTY}█{EMPTY}"
    assert curve_scale([8.0, 8.1]) == (8.0, 16.0), "noise does not look like a rise"
    assert curve_scale([8.0, 1e9]) == (8.0, 128.0), "one failure does not flatten the rest"
    assert curve_scale([None, math.nan, math.inf]) is None
    assert chosen(3) == [0, 1, 2] and len(chosen(1000)) == MAX_CURVE and {0, 999} <= set(chosen(1000))


def test_perplexities_of_other_tokens_do_not_compare() -> None:
    """The other model's smaller perplexity is not the best; bits of other tokens are no pairs and are not ranked."""
    record = records.made(records.several_models())
    text = "\n".join(line.plain for line in terminal_lines(comparison_parts(record), 200))
    assert "7.12<" not in text and "10.88<" in text and "1.416<" not in text
    assert "bits per byte compare them, perplexities do not" in text
    text = "\n".join(line.plain for line in terminal_lines(comparison_parts(replace(record, same_tokens=True)), 200))
    assert "7.12<" in text and "10.88<" not in text


def test_regressions_are_those_up_to_the_trained_length() -> None:
    record = records.comparison(("none", "pi:factor=4"))
    worse, better = record["rows"][1], record["rows"][0]
    for point, value in zip(better["perplexity"], (10.0, 10.0, 10.0, 10.0), strict=True):
        point["perplexity"] = value
    for point, value in zip(worse["perplexity"], (10.04, 10.06, 99.0, 9.0), strict=True):
        point["perplexity"] = value
    table = comparison_parts(records.made(record))[0]
    assert isinstance(table, Table)
    tones = [[cell.tone for cell in row.cells[:4]] for row in table.rows]
    assert tones == [[""] * 4, ["", "bad", "", ""]], (
        "half a percent is the least that counts; beyond L there is no price"
    )
    assert [row.cells[4].text for row in table.rows] == ["+0.0%", "+492.0%"] and table.rows[1].cells[4].tone == "bad"


def test_heat_maps_only_where_depth_matters() -> None:
    all_found, mixed = records.retrieval(256, [5, 5, 5]), records.retrieval(512, [5, 0, 5])
    none = records.retrieval(512, [0, 0, 0])
    json = records.comparison(("none", "pi", "ntk", "yarn"))
    for row, found in zip(json["rows"], ([all_found, none], [all_found, mixed], [], [mixed]), strict=True):
        row["passkey"] = found
    rows = records.made(json).rows
    (maps,) = differing_maps(rows, ["a", "b", "c", "d"])
    assert isinstance(maps, SmallTables) and [table.title for table in maps.tables] == ["b"]
    assert [[cell.text for cell in row.cells] for row in maps.tables[0].rows] == [["5", "5"], ["5", "0"], ["5", "5"]]
    assert differing_maps(rows[:1], ["a"]) == []


def test_shades_are_ordered_in_grey_and_readable() -> None:
    def grey(red: int, green: int, blue: int) -> float:
        return 0.299 * red + 0.587 * green + 0.114 * blue

    last = -1.0
    for step in range(21):
        style = shade_style(step / 20)
        assert style.bgcolor and style.color
        back = grey(*style.bgcolor.get_truecolor())
        assert back > last and abs(back - grey(*style.color.get_truecolor())) > 90
        last = back
    assert shade_style(math.nan) == shade_style(0.0) and shade_style(7.0) == shade_style(1.0)
