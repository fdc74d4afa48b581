"""No label of any figure lies over another, over an axis, or outside of the canvas: by the boxes that are drawn."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ropectl.report.figures.decay import plot_decay
from ropectl.report.figures.frequencies import plot_frequencies
from tests.report import records
from tests.report.boxes import faults
from tests.report.records_to_draw import drawings_of, drawings_of_runs, metrics, point, training_drawings
from tests.report.test_figures import all_specs, decay_record, drawn
from tests.report.test_figures import records as inspections

pytestmark = pytest.mark.process

LONG = "an-organisation/a-model-with-a-rather-long-name-7b-instruct"


def lengths_of(count: int, trained: int) -> list[int]:
    """Doublings around the trained length; more than ten in equal steps."""
    if count > 10:
        return [trained // 2 * (index + 1) for index in range(count)]
    return [max(2, trained // 2) * 2**index for index in range(count)] if count > 1 else [trained]


def comparison(methods: int, count: int, long_names: bool, trained: int = 512) -> dict[str, Any]:
    """Rows that differ at every length, the last one trained; past the length that it is made for from 4 L on."""
    name = LONG if long_names else "m"
    lengths = lengths_of(count, trained)
    record = records.comparison(["none"], lengths, trained, model=name)
    rows = []
    for index in range(methods):
        spec = "none" if index == 0 else f"yarn:factor=4,beta_fast={20 + index}"
        spec = spec if index < 2 or not long_names else f"{spec},beta_slow=2,attention_factor=1.{index}"
        limit = trained if index == 0 else 4 * trained
        points = [
            point(n, 9.0 + 7 * index * (1 + j) ** 0.5, n > limit, n == lengths[-1]) for j, n in enumerate(lengths)
        ]
        passkey = [records.retrieval(n, [max(0, 5 - index), 5, 3], 5, n > limit) for n in lengths]
        training = {"id": f"{index:04}", "tokens": 10_000 * 7**index} if 0 < index == methods - 1 else None
        row = {
            **record["rows"][0], "method": spec, "perplexity": points, "tail": points, "passkey": passkey,
            "reach": {"computes": 2048, "models": 512, "uses": lengths[-1] if index else 0},
            "short_delta": 0.04 * index**3, "training": training,
        }  # fmt: skip
        rows.append(row)
        if training:
            rows.append({**row, "method": "pi:factor=4", "training": {"id": "ff", "tokens": 123_456_789}})
    return {**record, "rows": rows, "pick": None}


def tasks(count: int, long_names: bool) -> dict[str, Any]:
    record = records.tasks(count)
    if long_names:
        for index, each in enumerate(record["tasks"]):
            each["task"] = f"variable-tracking:chains=3,hops={index},distractors=1234567890,words=lots-of-them"
    return record


def every_drawing(methods: int, count: int, long_names: bool) -> Iterator[Any]:
    """Each kind of figure that records and trainings have."""
    compared = comparison(methods, count, long_names)
    yield from drawings_of(compared)
    longer, runs = (
        comparison(methods, count, long_names, trained=131_072),
        {"a-first-run" * (1 + 4 * long_names): compared},
    )
    yield from (one for one in drawings_of(longer) if one.name in ("cost-quality", "pairs"))
    yield from (one for one in drawings_of_runs({**runs, "second": compared}) if one.name in ("perplexity", "passkeys"))
    yield from drawings_of(tasks(count, long_names))
    name = LONG if long_names else "m"
    for grid in ("depth", "position"):
        lengths = [
            {**records.retrieval(n, [1] * (11 if methods > 2 else 2), 6), "length": n} for n in lengths_of(count, 512)
        ]
        for entry in lengths:
            for place, cell in enumerate(entry["depths"]):
                cell["needle_position"] = 40 + 1024 * place
        yield drawings_of({**records.passkey(grid), "model": name, "lengths": lengths})[0]
    for protocol in ("sliding", "overlapping", "key-tokens"):
        points = [point(n, 10.0 + n**0.4, n > 2048, True) for n in lengths_of(count, 512)]
        record = {**records.perplexity(protocol), "points": points, "unscaled": points[:1], "model": name}
        yield drawings_of(record)[0]
    lines = metrics(60 if count < 9 else 2000)
    for line in lines:
        if "validation" in line:
            value = line["validation"]["perplexity"]["512"]
            line["validation"] |= {
                kind: {str(n): value / 40 for n in lengths_of(count, 512)} for kind in ("perplexity", "passkey")
            }
        line["best"] = line["step"] == (20 if methods > 2 else 60)
    yield from training_drawings(lines, {"model": name, "method": "yarn", "strategy": "full"})


@pytest.mark.parametrize(
    ("methods", "count", "long_names", "wide"),
    [
        (2, 1, True, False),
        (9, 2, False, True),
        (9, 4, True, False),
        (2, 9, False, False),
        (9, 20, True, True),
        (2, 20, True, False),
    ],
)
def test_no_label_lies_over_anything(methods: int, count: int, long_names: bool, wide: bool) -> None:
    kinds, found = set(), []
    for number, drawing in enumerate(every_drawing(methods, count, long_names)):
        kinds.add(drawing.name.rstrip("-123456789"))
        found += [f"{drawing.name} ({number}): {fault}" for fault in faults(drawing.draw(wide=wide))]
    assert found == []
    assert kinds >= {
        "perplexity", "perplexity-tail", "perplexity-sliding", "perplexity-overlapping", "perplexity-key-tokens", "positions", "passkeys",
        "passkeys-position", "passkey-curves", "cost-quality", "training-quality", "tasks", "pairs", "training",
    }  # fmt: skip


@pytest.mark.parametrize("target", [2048, 1_048_576])
@pytest.mark.parametrize("specs", [["none"], ["pi:factor=4", "dynamic-ntk"], all_specs()], ids=len)
def test_nor_in_the_figures_of_inspect(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, specs: list[str], target: int
) -> None:
    shown = inspections(*specs, target=target)
    figure = drawn(monkeypatch, lambda path: plot_frequencies(path, LONG, shown, target), tmp_path / "f.png")
    assert faults(figure) == []
    record = {**decay_record(len(specs)), "model": LONG, "target_length": target}
    figure = drawn(monkeypatch, lambda path: plot_decay(path, record), tmp_path / "d.png")
    assert faults(figure) == []


def test_what_lies_over_something_is_found() -> None:
    """The search itself: a text over a tick's label, one over the edge of its panel, and one outside."""
    from matplotlib.figure import Figure

    figure = Figure()
    axes = figure.subplots()
    assert faults(figure) == []
    axes.text(0.0, 0.0, "edge", transform=axes.transAxes, ha="center")
    axes.text(0.5, -0.05, "0.4 and 0.6", transform=axes.transAxes, ha="center", size=30)
    figure.text(1.0, 0.5, "outside")
    found = faults(figure)
    for kind in ("png", "svg"):
        assert (
            f"{kind}: 'edge' over the edge of panel 0" in found and f"{kind}: 'outside' outside of the canvas" in found
        )
    assert any("over '0.4 and 0.6'" in fault for fault in found)
