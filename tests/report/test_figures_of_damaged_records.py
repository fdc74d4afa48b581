"""Figures of records that are old, partial, damaged or malicious: a sensible figure or none, never a crash."""

from __future__ import annotations

import copy
import math
import random
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ropectl.report.figures.catalog import Drawing, drawings_of, drawings_of_runs, training_drawings
from ropectl.report.figures.output import svg_text, write_figures
from tests.report.records_to_draw import comparison, every_record, metrics, passkey_record, perplexity_record, row
from tests.report.test_figures import overlapping

MARKUP = "<script>alert('x')</script>&\"$\\frac{1}{0}$\x00\x1b[31m"
HOSTILE: list[Any] = [
    None, math.nan, math.inf, -math.inf, -1, 0, 1e308, 10**400, "", MARKUP, "x" * 200, [], {}, [None], True, [[]],
    {"a": 1}, "\ud800", 2.5,
]  # fmt: skip


def texts(content: str) -> list[str]:
    return ["".join(node.itertext()) for node in ET.fromstring(content).iter("{http://www.w3.org/2000/svg}text")]


def drawn(found: list[Drawing]) -> list[str]:
    """All of them, in both forms; a warning would stand on a user's terminal."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return [svg_text(one.draw()) for one in found]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a record."""
    if path:
        yield path
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(item, (*path, key))


def damaged(record: Any, where: tuple[Any, ...], value: Any) -> Any:
    """A copy of a record with another value in a place, or without it."""
    record = copy.deepcopy(record)
    holder = record
    for key in where[:-1]:
        holder = holder[key]
    if value is ...:
        del holder[where[-1]]
    else:
        holder[where[-1]] = value
    return record


@pytest.mark.parametrize("kind", sorted(every_record()))
def test_any_place_may_hold_anything(kind: str) -> None:
    """Places near the top are damaged in every way, deeper ones at random; a few of each are drawn."""
    record, chosen = every_record()[kind], random.Random(kind)
    cases = [(where, value) for where in places(record) for value in (..., *HOSTILE)]
    top = [case for case in cases if len(case[0]) <= 2 and case[0][0] not in ("manifest", "verdict")]
    for where, value in top + chosen.sample(cases, 150):
        drawings_of(damaged(record, where, value))
    for where, value in chosen.sample(top, 3) + chosen.sample(cases, 2):
        drawn(drawings_of(damaged(record, where, value))[:2])


def test_many_places_at_once() -> None:
    for seed in range(3):
        chosen = random.Random(seed)
        record = comparison()
        for _ in range(12):
            where = chosen.choice(list(places(record)))
            record = damaged(record, where, chosen.choice(HOSTILE))
        drawn(drawings_of(record))


@pytest.mark.parametrize(
    "record", [{}, {"rows": []}, {"rows": None}, {"points": []}, {"tasks": []}, {"lengths": []}, None, []]
)
def test_nothing_to_draw(record: Any) -> None:
    assert drawings_of(record) == [] and drawings_of_runs({"a": record}) == []


def test_only_a_geometry_is_no_figure_of_the_unscaled_model() -> None:
    assert drawings_of({"geometry": comparison()["geometry"], "method": "none"}) == []


def test_rows_that_failed_are_left_out_and_said() -> None:
    record = comparison()
    failed = {**row("ntk:factor=4", [1, 1, 1, 1], [0, 0, 0, 0], 0.0, 0), "perplexity": [], "tail": [], "passkey": []}
    record["rows"].append({**failed, "short_delta": None, "errors": ["out of memory"]})
    found = {one.name: one for one in drawings_of(record)}
    assert "ntk" not in " ".join(texts(svg_text(found["perplexity"].draw())))
    assert "Not measured: ntk." in found["passkeys"].caption
    for entry in record["rows"]:
        entry["passkey"] = []
    assert not any(one.name.startswith("passkey") for one in drawings_of(record))


def test_numbers_that_cannot_be_drawn_are_left_out() -> None:
    record = perplexity_record()
    record["unscaled"] = []
    for item, value in zip(record["points"], [math.nan, math.inf, 0.0, 8.9], strict=True):
        item["perplexity"] = value
    (axes,) = drawings_of(record)[0].draw().axes
    assert [list(line.get_ydata()) for line in axes.get_lines() if len(line.get_xdata()) == 1] == [[8.9], [8.9]]


def test_an_interval_that_does_not_hold_its_value_is_none() -> None:
    record = perplexity_record()
    for item in record["points"]:
        item["ci_low"], item["ci_high"] = 1e6, 2e6
    (axes,) = drawings_of({**record, "unscaled": []})[0].draw().axes
    assert not axes.collections and axes.get_ylim()[1] < 100


def test_old_records_have_no_intervals_and_no_positions() -> None:
    record = comparison()
    for entry in record["rows"]:
        del entry["model"]
        for item in entry["perplexity"] + entry["tail"]:
            for key in ("ci_low", "ci_high", "positions", "bits_per_byte"):
                del item[key]
    for key in ("models", "same_tokens", "target_length"):
        del record[key]
    names = [one.name for one in drawings_of(record)]
    assert names == ["perplexity", "perplexity-tail", "passkeys", "passkey-curves", "cost-quality", "pairs"]
    assert "95 %" not in drawings_of(record)[0].caption
    drawn(drawings_of(record))


def test_a_record_makes_no_file_be_read(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]")
    record = comparison()
    record["rows"] = [row(f"longrope:factor=4,long_factor=@{tmp_path}/secret", [9, 9, 9, 9], [1, 1, 1, 1], 0.0, 2048)]
    assert "pairs" not in [one.name for one in drawings_of(record)]
    factors = ":".join(map(str, range(1, 17)))
    record["rows"][0]["method"] = f"longrope:factor=4,long_factor={factors}"
    assert "pairs" in [one.name for one in drawings_of(record)]


@pytest.mark.parametrize("name", [MARKUP, "m" * 200, "\u4e2d\u6587\u6a21\u578b", "_hidden", "$x$", " ", "a\nb"])
def test_names_are_text_and_nothing_else(name: str, tmp_path: Path) -> None:
    record = comparison()
    record["rows"][2]["method"] = name
    found = drawings_of(record)
    contents = drawn(found[:2])
    assert not any("<script" in content for content in contents)
    shown = texts(contents[0])
    assert len([text for text in shown if text.strip()]) > 8
    if name in ("_hidden", "$x$", "\u4e2d\u6587\u6a21\u578b"):
        assert name in shown
    for wide in (False, True):
        assert [overlapping(one.draw(wide=wide)) for one in found if one.name in ("perplexity", "passkeys")] == [[], []]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        write_figures(found[:1], tmp_path)


def test_twenty_methods() -> None:
    record = comparison()
    record["rows"] = [
        row(
            f"yarn:factor=4,beta_fast={20 + index}", [9 + index / 9] * 4, [1.0, 0.9, 0.5, index / 20], 0.01 * index, 512
        )
        for index in range(20)
    ]
    found = drawings_of(record)
    assert len(found) == 7
    for one in found:
        for wide in (False, True) if one.name in ("perplexity", "passkeys") else (False,):
            figure = one.draw(wide=wide)
            assert overlapping(figure) == [], one.name
            if one.name == "perplexity":
                labels = [text.get_text() for text in figure.legends[0].get_texts()]
                assert len(labels) == len(set(labels)) == 20


def test_equal_names_are_told_apart() -> None:
    record = comparison()
    record["rows"] = [record["rows"][2]] * 3
    labels = [text.get_text() for text in drawings_of(record)[0].draw().legends[0].get_texts()]
    assert labels == ["yarn", "yarn #2", "yarn #3"]


@pytest.mark.parametrize("kind", ["perplexity", "passkey", "tasks"])
def test_one_length_only(kind: str) -> None:
    record = every_record()[kind]
    for holder, key in (
        (record, "points"),
        (record, "lengths"),
        *((task, "lengths") for task in record.get("tasks", [])),
    ):
        if key in holder:
            holder[key] = holder[key][:1]
    for one in drawings_of(record):
        assert overlapping(one.draw()) == []


@pytest.mark.parametrize(
    "lines",
    [
        [], [{}], [None, 3, "x"], [{"step": 1, "loss": 2.0}], [{"step": "1", "loss": "2"}],
        [{"step": 0, "validation": None}, {"step": 5, "validation": {"perplexity": {"a": 1, "-5": 2, "512": None}}}],
        [{"step": -1, "loss": math.nan}, {"step": 10**30, "loss": 1.0}, {"step": True, "loss": 1.0}],
    ],
)  # fmt: skip
def test_trainings_without_anything_to_draw(lines: list[Any]) -> None:
    assert training_drawings(lines, {}) == []


def test_damaged_trainings() -> None:
    chosen = random.Random(0)
    for _ in range(10):
        lines: Any = metrics()
        for _ in range(30):
            where = chosen.choice(list(places(lines)))
            lines = damaged(lines, where, chosen.choice(HOSTILE))
        drawn(training_drawings(lines, chosen.choice([{}, None, {"settings": 3}, {"method": MARKUP}])))
    only_validations = [line for line in metrics() if "validation" in line]
    assert len(training_drawings(only_validations, {})[0].draw().axes) == 2
    only_losses = [{**line, "loss": -5.0} for line in metrics() if "loss" in line]
    assert len(training_drawings(only_losses, {})[0].draw().axes) == 1


def test_damaged_runs() -> None:
    runs: Any = {MARKUP: perplexity_record(), "": passkey_record(), "x" * 300: None, "a": {"geometry": {}}}
    contents = drawn(drawings_of_runs(runs))
    assert len(contents) == 3 and not any("<script" in content for content in contents)
