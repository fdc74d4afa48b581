"""Figures of records: every number drawn is the record's, and everything that has to be told apart can be."""

from __future__ import annotations

import math
import re
import subprocess
import sys
import warnings
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from ropectl.errors import ConfigError
from ropectl.report.figures.catalog import Drawing
from ropectl.report.figures.curves import OPEN_MARKERS
from ropectl.report.figures.output import svg_text, write_figures
from ropectl.report.figures.style import COLOURS, REFERENCE_COLOUR, looks
from ropectl.report.figures.training import smoothed
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.registry import parse_method
from tests.report.boxes import faults
from tests.report.records_to_draw import (
    DEPTHS,
    GEOMETRY,
    comparison,
    drawings_of,
    drawings_of_runs,
    every_record,
    metrics,
    passkey_record,
    perplexity_record,
    row,
    tasks_record,
    training_drawings,
)

MARKUP = "<script>alert('x')</script>&\"$\\frac{1}{0}$\x00\x1b[31m"


def drawing(found: list[Drawing], name: str) -> Drawing:
    return next(one for one in found if one.name == name)


def curves(axes: Any) -> list[list[tuple[float, float]]]:
    """What is drawn as a curve: lines with a stroke and more than one point that are not straight marks."""
    lines = [line for line in axes.get_lines() if line.get_linestyle() != "None" and len(line.get_xdata()) > 1]
    drawn = [list(zip(map(float, line.get_xdata()), map(float, line.get_ydata()), strict=True)) for line in lines]
    return [curve for curve in drawn if len({x for x, _ in curve}) > 1]


def legend(figure: Any) -> list[str]:
    return [text.get_text() for one in figure.legends for text in one.get_texts()]


def trained_lines(axes: Any) -> list[float]:
    return [
        float(line.get_xdata()[0]) for line in axes.get_lines() if list(line.get_xdata()) == [line.get_xdata()[0]] * 2
    ]


def test_which_figures_there_are() -> None:
    names = {kind: [one.name for one in drawings_of(record)] for kind, record in every_record().items()}
    assert names == {
        "comparison": [
            "perplexity", "perplexity-tail", "positions", "passkeys", "passkey-curves", "cost-quality", "pairs",
        ],
        "perplexity": ["perplexity", "positions", "pairs"],
        "tail": ["perplexity-tail", "positions", "pairs"],
        "passkey": ["passkeys", "pairs"],
        "positions": ["passkeys-position", "pairs"],
        "tasks": ["tasks", "pairs"],
    }  # fmt: skip
    assert [one.name for one in training_drawings(metrics(), {})] == ["training"]


@pytest.mark.process
@pytest.mark.parametrize("name, key", [("perplexity", "perplexity"), ("perplexity-tail", "tail")])
def test_perplexity_is_the_records(name: str, key: str) -> None:
    record = comparison()
    one = drawing(drawings_of(record), name)
    figure = one.draw()
    wanted = [[(p["context_length"], p["perplexity"]) for p in row[key]] for row in record["rows"]]
    upper, lower = figure.axes
    assert curves(upper) == wanted and curves(lower) == wanted
    assert upper.get_xscale() == upper.get_yscale() == lower.get_yscale() == "log"
    assert trained_lines(upper) == trained_lines(lower) == [512]
    values = [value for curve in wanted for _, value in curve]
    assert upper.get_ylim()[0] < min(values) and upper.get_ylim()[1] > max(values)
    assert lower.get_ylim()[1] < min(value for _, value in wanted[1]), "enlarged: without the method that fails"
    assert [label.get_text() for label in lower.get_xticklabels()] == ["256", "512", "1k", "2k"]
    assert legend(figure) == ["none", "pi", "yarn", "pi, tuned"]
    assert figure.legends[0].get_title().get_text() == OPEN_MARKERS and OPEN_MARKERS in one.caption
    assert "12 documents" in one.caption and "512 tokens" in one.caption and "95 %" in one.caption
    open_points = [
        (float(x), float(y))
        for line in upper.get_lines()
        if line.get_linestyle() == "None" and line.get_markerfacecolor() == "white"
        for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)
    ]
    assert open_points == wanted[0][2:], "the unscaled model past 512 tokens"


@pytest.mark.process
def test_intervals_are_the_records() -> None:
    record = comparison()
    bars = drawing(drawings_of(record), "perplexity").draw().axes[0].collections
    segments = [sorted(round(float(y), 9) for _, y in part) for one in bars for part in one.get_segments()]
    assert segments == [
        [round(p["ci_low"], 9), round(p["ci_high"], 9)] for r in record["rows"] for p in r["perplexity"]
    ]
    record["rows"] = record["rows"][2:3]
    (axes,) = drawing(drawings_of(record), "perplexity").draw().axes
    band = axes.collections[0].get_paths()[0].vertices
    points = record["rows"][0]["perplexity"]
    assert {(float(x), float(y)) for x, y in band} == {
        (p["context_length"], p[end]) for p in points for end in ("ci_low", "ci_high")
    }


def test_an_evaluation_shows_the_unscaled_model_too() -> None:
    record = perplexity_record()
    found = drawings_of(record)
    figure = drawing(found, "perplexity").draw()
    assert legend(figure) == ["none", "yarn:factor=4"] and len(curves(figure.axes[0])[0]) == 2
    reference = next(line for line in figure.axes[0].get_lines() if len(line.get_xdata()) == 2)
    assert reference.get_color() == REFERENCE_COLOUR
    assert drawings_of(perplexity_record(protocol="sliding"))[0].name == "perplexity-sliding"


@pytest.mark.process
def test_models_with_different_tokens_are_compared_in_bits() -> None:
    record = {**comparison(), "same_tokens": False}
    one = drawing(drawings_of(record), "perplexity")
    (axes,) = one.draw().axes[:1]
    assert curves(axes)[2] == [(p["context_length"], p["bits_per_byte"]) for p in record["rows"][2]["perplexity"]]
    assert axes.get_ylabel() == "bits per byte" and "Bits per byte" in one.title and "95 %" not in one.caption


@pytest.mark.process
def test_losses_by_position() -> None:
    record = comparison()
    one = drawing(drawings_of(record), "positions")
    (axes,) = one.draw().axes
    bins = record["rows"][2]["perplexity"][-1]["positions"]
    wanted = [
        (math.sqrt(b["start"] * (b["end"] - 1)), b["nll_sum"] / b["num_tokens"]) for b in bins if b["start"] >= 16
    ]
    assert [value for pair in curves(axes)[2] for value in pair] == pytest.approx([v for pair in wanted for v in pair])
    assert len(curves(axes)) == 4
    assert trained_lines(axes) == [512] and "2048 tokens" in one.caption
    assert axes.get_xlim()[1] >= wanted[-1][0] and axes.get_xscale() == "log"


@pytest.mark.process
def test_heat_maps() -> None:
    record = comparison()
    figure = drawing(drawings_of(record), "passkeys").draw()
    panels = figure.axes[:4]
    assert [axes.get_title(loc="left") for axes in panels] == ["none", "pi", "yarn", "pi, tuned"]
    for axes, measured in zip(panels, record["rows"], strict=True):
        shares = [100 * entry["accuracy"] for entry in measured["passkey"]]
        values = axes.collections[0].get_array()
        assert values.tolist() == [shares] * len(DEPTHS)
        assert [text.get_text() for text in axes.texts] == [f"{share:.0f}" for share in shares] * len(DEPTHS)
        assert {float(line.get_xdata()[0]) for line in axes.get_lines()} == {1.5}, "between 512 and 1024"
        assert axes.collections[0].get_clim() == (0, 100)
    assert "30 prompts" in drawing(drawings_of(record), "passkeys").caption


def test_what_was_not_measured_is_hatched() -> None:
    record = passkey_record("position")
    figure = drawings_of(record)[0].draw()
    axes = figure.axes[0]
    values = axes.collections[0].get_array()
    assert values.mask.tolist() == [[False] * 4, [False] * 4, [True, False, False, False], [True, True, True, False]]
    assert values[3][3] == 0 and "0" in [text.get_text() for text in axes.texts]
    assert axes.collections[0].cmap.get_bad()[3] == 0 and axes.patches[0].get_hatch(), "the hatching shines through"
    assert [label.get_text() for label in axes.get_yticklabels()] == ["49", "128", "256", "1k"]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["256", "512\n= L", "1k", "2k"]


@pytest.mark.parametrize("count, has_numbers", [(4, True), (40, False)])
def test_numbers_where_they_fit(count: int, has_numbers: bool) -> None:
    record = passkey_record()
    record["lengths"] = [{**record["lengths"][0], "length": 128 * (index + 1)} for index in range(count)]
    axes = drawings_of(record)[0].draw().axes[0]
    assert bool(axes.texts) is has_numbers and axes.collections[0].get_array().shape == (3, count)


def test_passkey_curves() -> None:
    record = comparison()
    (axes,) = drawing(drawings_of(record), "passkey-curves").draw().axes
    wanted = [[(e["length"], 100 * e["accuracy"]) for e in row["passkey"]] for row in record["rows"]]
    assert curves(axes) == wanted and axes.get_ylim() == (-4, 104)


def test_cost_against_quality() -> None:
    record = comparison()
    one = drawing(drawings_of(record), "cost-quality")
    figure = one.draw()
    (axes,) = figure.axes
    drawn = [line for line in axes.get_lines() if line.get_linestyle() == "None"]
    places = [(float(line.get_xdata()[0]), float(line.get_ydata()[0])) for line in drawn]
    colours = [line.get_markerfacecolor() for line in drawn]
    wanted = [(100 * row["short_delta"], row["perplexity"][-1]["perplexity"]) for row in record["rows"]]
    assert [place for place, colour in zip(places, colours, strict=True) if colour != "none"] == wanted
    assert [place for place, colour in zip(places, colours, strict=True) if colour == "white"] == wanted[:1], (
        "open: past the length that the method is made for, here and in every figure"
    )
    assert [place for place, colour in zip(places, colours, strict=True) if colour == "none"] == wanted[2:3], (
        "a ring: yarn alone finds the planted numbers"
    )
    assert OPEN_MARKERS in one.caption.lower() and "With a ring" in one.caption
    assert "at 256 and 512 tokens" in one.caption and "at 256 and 512 tokens" in axes.get_xlabel()
    (arrow,) = axes.texts
    assert [*arrow.xy, *arrow.xyann] == pytest.approx([7.4, 8.3, 492.0, 53.7]), "what the training of pi bought"
    assert axes.get_xlim()[0] < 0 and axes.get_xlim()[1] > 492 and axes.get_ylabel() == "perplexity at 2k"
    assert "Arrows" in one.caption


def test_training_against_quality_where_trainings_differ() -> None:
    record = comparison()
    longer = {**record["rows"][3], "method": "yarn:factor=4"}
    record["rows"].append({**longer, "training": {**longer["training"], "tokens": 163840}})
    axes = drawing(drawings_of(record), "training-quality").draw().axes[0]
    assert [float(line.get_xdata()[0]) for line in axes.get_lines()] == [81920, 163840]


def test_tasks() -> None:
    record = tasks_record()
    figure = drawings_of(record)[0].draw()
    wanted = [[(e["length"], 100 * e["score"]) for e in task["lengths"]] for task in record["tasks"]]
    assert curves(figure.axes[0]) == wanted and legend(figure) == ["needle", "multi-key:keys=4"]
    assert trained_lines(figure.axes[0]) == [512]


@pytest.mark.process
def test_pairs_are_computed_from_the_specs() -> None:
    figure = drawing(drawings_of(comparison()), "pairs").draw()
    upper, lower = figure.axes
    geometry = RopeGeometry(**GEOMETRY)
    for label, spec in (("pi:factor=4", "pi:factor=4"), ("yarn:factor=4", "yarn:factor=4")):
        line = upper.get_lines()[1 + ["pi:factor=4", "yarn:factor=4"].index(label)]
        frequencies = parse_method(spec).frequencies(geometry).inv_freq
        trained = [10_000.0 ** (-2 * i / 32) for i in range(16)]
        assert list(line.get_ydata()) == pytest.approx([t / f for t, f in zip(trained, frequencies, strict=True)])
    assert legend(figure) == ["as trained", "pi:factor=4", "yarn:factor=4"]
    flat = {float(line.get_ydata()[0]) for line in lower.get_lines() if len(line.get_xdata()) == 2}
    assert {512.0, 2048.0} <= flat


@pytest.mark.process
def test_training_curves() -> None:
    one = training_drawings(metrics(), {"model": "m", "method": "pi", "strategy": "lora"})[0]
    figure = one.draw()
    loss, perplexity, passkey = figure.axes
    assert curves(loss)[0] == [(step, 1.0 + 2.0 / step) for step in range(1, 61)]
    means = [sum(1.0 + 2.0 / s for s in range(max(1, step - 5), step + 1)) / min(step, 6) for step in range(1, 61)]
    assert [y for _, y in curves(loss)[1]] == pytest.approx(means)
    steps = (0, 20, 40, 60)
    assert curves(perplexity) == [[(step, top / (1 + step)) for step in steps] for top in (30.0, 60.0)]
    assert curves(passkey)[0] == [(step, 100 * (step / 60)) for step in steps]
    for axes in figure.axes:
        assert 40.0 in trained_lines(axes), "the last best validation"
    assert loss.texts[0].get_text() == "best: step 40"
    assert "lora" in one.caption and "491,520 tokens" in one.caption and "step 40" in one.caption
    assert legend(figure)[-2:] == ["512 tokens", "2k tokens"]


def test_a_continued_training_repeats_steps() -> None:
    lines = [{"step": 1, "loss": 3.0}, {"step": 2, "loss": 9.0}, {"step": 2, "loss": 2.0}, {"step": 3, "loss": 1.0}]
    figure = training_drawings(lines, {})[0].draw()
    assert curves(figure.axes[0])[0] == [(1, 3.0), (2, 2.0), (3, 1.0)]
    assert smoothed([4.0, 2.0, 6.0, 1.0], 2) == [4.0, 3.0, 4.0, 3.5]


@pytest.mark.process
def test_runs_side_by_side() -> None:
    runs = {"one": perplexity_record(), "two": perplexity_record("ntk:factor=4"), "keys": passkey_record()}
    found = drawings_of_runs(runs)
    assert [one.name for one in found] == ["perplexity", "positions", "passkeys", "cost-quality"]
    assert legend(found[0].draw()) == ["one: yarn:factor=4", "two: ntk:factor=4"]
    assert "levels do not compare" not in found[0].caption
    runs["two"]["manifest"]["tokens_sha256"] = "cd"
    assert "levels do not compare" in drawings_of_runs(runs)[0].caption
    runs["two"]["model"] = "another"
    assert drawings_of_runs(runs)[0].draw().axes[0].get_ylabel() == "bits per byte"
    both = drawings_of_runs({"a": comparison(), "b": comparison()})
    assert len(legend(drawing(both, "passkey-curves").draw())) == 8
    assert len(drawing(both, "passkeys").draw().axes) >= 8


def test_colours_are_safe_and_lines_tell_apart_without_them() -> None:
    figure = drawing(drawings_of(comparison()), "perplexity").draw()
    lines = [line for line in figure.axes[1].get_lines() if line.get_linestyle() != "None"]
    assert {line.get_color() for line in lines} <= {*COLOURS, REFERENCE_COLOUR, "black"}
    assert lines[1].get_color() == lines[3].get_color() and lines[1].get_linestyle() != lines[3].get_linestyle()
    found = looks([(index, False, False) for index in range(20)])
    assert len({(look.color, str(look.linestyle)) for look in found}) == 20
    assert len({(str(look.linestyle), look.marker) for look in found}) == 20


@pytest.mark.process
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("kind", sorted(every_record()))
def test_nothing_covers_anything(kind: str, wide: bool) -> None:
    for one in drawings_of(every_record()[kind]):
        if kind != "comparison" and one.name in ("pairs", "positions"):
            continue  # a comparison has more curves there
        figure = one.draw(wide=wide)
        assert figure.get_figwidth() == (6.8 if wide else 3.3)
        assert faults(figure) == [], one.name


def test_names_and_captions_are_fit_for_files_and_readers() -> None:
    for record in every_record().values():
        found = drawings_of(record)
        assert len({one.name for one in found}) == len(found)
        for one in found:
            assert re.fullmatch(r"[a-z0-9-]+", one.name) and one.title and one.caption.endswith(".")


@pytest.mark.process
def test_same_record_same_bytes(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        write_figures([drawings_of(comparison())[0], *training_drawings(metrics(), {})], tmp_path / folder)
    names = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert {Path(name).suffix for name in names} == {".svg", ".pdf", ".png"}
    for name in names:
        content = (tmp_path / "a" / name).read_bytes()
        assert content == (tmp_path / "b" / name).read_bytes(), name
        assert b"<dc:date>" not in content and b"CreationDate" not in content and b"ModDate" not in content
    for one, again in zip(drawings_of(comparison()), drawings_of(comparison()), strict=True):
        figure = one.draw()
        assert svg_text(figure) == svg_text(again.draw()), one.name
    assert svg_text(figure) == svg_text(figure)


@pytest.mark.process
def test_png_has_300_dots_an_inch(tmp_path: Path) -> None:
    (path,) = (path for path in write_figures(drawings_of(tasks_record())[:1], tmp_path) if path.suffix == ".png")
    width = int.from_bytes(path.read_bytes()[16:20], "big")
    assert width == 990, "3.3 inch"


@pytest.mark.process
def test_text_of_a_pdf_is_text_in_a_font_of_its_own(tmp_path: Path) -> None:
    """Embedded as TrueType, as publishers ask, in the size of the drawing; another time of day changes nothing."""
    write_figures(drawings_of(tasks_record())[:1], tmp_path)
    content = (tmp_path / "tasks.pdf").read_bytes()
    assert b"/FontFile2" in content and b"/CIDFontType2" in content and b"/Type3" not in content
    width, height = map(float, re.findall(rb"/MediaBox \[ 0 0 ([\d.]+) ([\d.]+) \]", content)[0])
    assert width == pytest.approx(3.3 * 72) and 100 < height < 400
    code = (
        "import time, datetime; then = time.time() + 1e6; time.time = lambda: then\n"
        "from pathlib import Path; from ropectl.report.figures.output import write_figures\n"
        "from tests.report.records_to_draw import drawings_of, tasks_record\n"
        f"write_figures(drawings_of(tasks_record())[:1], Path({str(tmp_path / 'later')!r}))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])
    assert (tmp_path / "later" / "tasks.pdf").read_bytes() == content


def test_an_impossible_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="file"):
        write_figures(drawings_of(tasks_record()), tmp_path / "file")


@pytest.mark.process
def test_svg_for_a_page() -> None:
    found = [svg_text(one.draw()) for one in drawings_of(comparison())]
    ids = [name for content in found for name in re.findall(r' id="([^"]*)"', content)]
    assert len(ids) == len(set(ids)), "no id twice on a page"
    for content in found:
        root = ET.fromstring(content)
        assert content.startswith("<svg") and root.get("role") == "img" and root.get("viewBox")
        title = root.find("{http://www.w3.org/2000/svg}title")
        assert title is not None and title.text and root.get("aria-labelledby") == title.get("id")
        for unwanted in ("<?xml", "<!DOCTYPE", "<metadata", "<style", "<script", "<image", "xlink"):
            assert unwanted not in content, unwanted
        own = set(re.findall(r' id="([^"]*)"', content))
        assert set(re.findall(r"url\(#([^)]*)\)", content)) | set(re.findall(r'href="#([^"]*)"', content)) <= own
    one = drawings_of(tasks_record())[0]
    mine = svg_text(one.draw(), prefix="mine-", title="What <b>I</b> say")
    assert 'id="mine-title"' in mine and "What &lt;b&gt;I&lt;/b&gt; say" in mine


@pytest.mark.process
def test_no_torch_and_matplotlib_only_to_draw() -> None:
    code = (
        "import sys; from tests.report.records_to_draw import comparison, drawings_of, metrics, training_drawings\n"
        "found = [*drawings_of(comparison()), *training_drawings(metrics(), {})]\n"
        "assert 'matplotlib' not in sys.modules\n"
        "[one.draw() for one in found]\n"
        "assert 'matplotlib.figure' in sys.modules and 'matplotlib.pyplot' not in sys.modules\n"
        "assert 'torch' not in sys.modules and 'transformers' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])


def texts(content: str) -> list[str]:
    return ["".join(node.itertext()) for node in ET.fromstring(content).iter("{http://www.w3.org/2000/svg}text")]


@pytest.mark.process
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


def test_a_record_makes_no_file_be_read(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]")
    record = comparison()
    record["rows"] = [row(f"longrope:factor=4,long_factor=@{tmp_path}/secret", [9, 9, 9, 9], [1, 1, 1, 1], 0.0, 2048)]
    assert "pairs" not in [one.name for one in drawings_of(record)]
    factors = ":".join(map(str, range(1, 17)))
    record["rows"][0]["method"] = f"longrope:factor=4,long_factor={factors}"
    assert "pairs" in [one.name for one in drawings_of(record)]


@pytest.mark.process
@pytest.mark.parametrize("name", [MARKUP, "m" * 200, "\u4e2d\u6587\u6a21\u578b", "_hidden", "$x$", " ", "a\nb"])
def test_names_are_text_and_nothing_else(name: str, tmp_path: Path) -> None:
    record = comparison()
    record["rows"][2]["method"] = name
    found = drawings_of(record)
    contents = [svg_text(one.draw()) for one in found[:2]]
    assert not any("<script" in content for content in contents)
    shown = texts(contents[0])
    assert len([text for text in shown if text.strip()]) > 8
    if name in ("_hidden", "$x$", "\u4e2d\u6587\u6a21\u578b"):
        assert name in shown
    for wide in (False, True) if len(name) > 100 else ():
        assert [faults(one.draw(wide=wide)) for one in found if one.name in ("perplexity", "passkeys")] == [[], []]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        write_figures(found[:1], tmp_path)


@pytest.mark.process
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
        for wide in (False, True) if one.name == "perplexity" else (False,):
            figure = one.draw(wide=wide)
            assert faults(figure) == [], one.name
            if one.name == "perplexity":
                labels = [text.get_text() for text in figure.legends[0].get_texts()]
                assert len(labels) == len(set(labels)) == 20


def test_equal_names_are_told_apart() -> None:
    record = comparison()
    record["rows"] = [record["rows"][2]] * 3
    labels = [text.get_text() for text in drawings_of(record)[0].draw().legends[0].get_texts()]
    assert labels == ["yarn", "yarn #2", "yarn #3"]


@pytest.mark.process
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
        assert faults(one.draw()) == []


@pytest.mark.process
def test_a_training_with_only_validations_or_only_losses() -> None:
    assert training_drawings([], {}) == [] == training_drawings(metrics()[1:2], {})
    only_validations = [line for line in metrics() if "validation" in line]
    assert len(training_drawings(only_validations, {})[0].draw().axes) == 2
    only_losses = [{**line, "loss": -5.0} for line in metrics() if "loss" in line]
    assert len(training_drawings(only_losses, {})[0].draw().axes) == 1
