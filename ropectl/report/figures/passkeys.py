"""Passkeys found: heat maps of prompt length and needle position, side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ropectl.lengths import format_length
from ropectl.report.figures.curves import shared_length
from ropectl.report.figures.drawing import Canvas, Drawing, name_axes
from ropectl.report.figures.style import HEAT_COLOURS, NOT_MEASURED, fitted, shorten
from ropectl.report.figures.subjects import Evidence, Subject
from ropectl.report.tables.words import span

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Least width of a cell with a number in it, in font sizes.
NUMBER_WIDTH = 2.05

#: Height of a cell in font sizes, and the most rows of that height; more rows are lower.
CELL_HEIGHT, MOST_TALL = 1.75, 12

#: Above this share a cell is so light that its number is dark.
LIGHT = 0.55

#: Height of the colour bar with its name and numbers, in font sizes.
BAR_HEIGHT = 4.5

_PLACES = {
    "depth": ("needle depth [%]", "needle depth in the prompt (0 % is the beginning)"),
    "position": ("needle at [token]", "the token at which the needle begins"),
}


def passkey_maps(evidence: Evidence) -> list[Drawing]:
    """Returns a figure of heat maps for each kind of grid that was measured: one panel per subject, all with the same cells."""
    found = []
    for grid, (_, meaning) in _PLACES.items():
        subjects = [s for s in evidence.subjects if s.passkey_cells and s.grid == grid]
        if not subjects:
            continue
        trained, trials = shared_length(subjects), [entry.trials for s in subjects for entry in s.passkey]
        caption = f"Share of planted numbers found [%], by prompt length and {meaning}; hatched: not measured"
        if trained is not None:
            caption += f"; right of the line: past the trained length, {format_length(trained)} tokens"
        if trials:
            caption += f"; {span(trials)} prompts a length"
        absent = [shorten(s.name) for s in evidence.subjects if not s.passkey_cells]
        caption += f". Not measured: {', '.join(absent)}." if 0 < len(absent) < len(subjects) else "."
        name = "passkeys" if grid == "depth" else "passkeys-position"
        title = f"Passkeys found by length and {grid}"
        found.append(Drawing(name, title, caption, _painter(subjects, grid, trained)))
    return found


def _painter(subjects: Sequence[Subject], grid: str, trained: int | None) -> Any:
    lengths = sorted({length for s in subjects for length, _ in s.passkey_cells})
    places = sorted({place for s in subjects for _, place in s.passkey_cells})

    def paint(canvas: Canvas) -> None:
        em = canvas.size.font / 72
        space = canvas.size.width - 5 * em
        needed = max(len(lengths) * NUMBER_WIDTH * em, 8 * em)
        per_row = max(1, min(len(subjects), int(space / (needed + em))))
        rows = -(-len(subjects) // per_row)
        cell_width = (space / per_row - em) / len(lengths)
        cell_height = CELL_HEIGHT * em * min(1.0, MOST_TALL / len(places))
        has_numbers = cell_width >= 0.9 * NUMBER_WIDTH * em and cell_height >= 1.1 * em
        height = rows * (max(len(places) * cell_height, 6 * em) + 2.4 * em) + 2.5 * em + BAR_HEIGHT * em
        canvas.figure.set_size_inches(canvas.size.width, height)
        grid_axes = canvas.figure.subplots(rows, per_row, sharex=True, sharey=True, squeeze=False)
        used = list(grid_axes.flat)[: len(subjects)]
        image: Any = None
        for axes, subject in zip(used, subjects, strict=True):
            image = _map(axes, subject.passkey_cells, lengths, places, has_numbers)
            within = sum(length <= trained for length in lengths) if trained is not None else 0
            if 0 < within < len(lengths):
                axes.axvline(within - 0.5, color="black", linewidth=1.6)
                axes.axvline(within - 0.5, color="white", linewidth=0.6, linestyle=(0, (3, 2)))
            name_axes(axes, title=fitted(subject.name, canvas.size.font, space / per_row - 0.5 * em))
        for axes in list(grid_axes.flat)[len(subjects) :]:
            axes.set_visible(False)
        for column in range(per_row):  # a column that ends early is labelled where it ends
            last = max(row for row in range(rows) if row * per_row + column < len(subjects))
            grid_axes[last, column].tick_params(labelbottom=True)
        _ticks(used[0], lengths, places, grid, trained, cell_width / em, cell_height / em)
        canvas.figure.supxlabel("prompt length [tokens]", fontsize=canvas.size.font)
        canvas.figure.supylabel(_PLACES[grid][0], fontsize=canvas.size.font)
        bar = canvas.figure.colorbar(image, ax=used, location="top", aspect=40, fraction=0.05, pad=0.02)
        bar.set_label("passkeys found [%]")
        bar.set_ticks([0, 25, 50, 75, 100])
        bar.outline.set_visible(False)
        if bar.solids is not None:
            bar.solids.set(rasterized=False, edgecolor="face")

    return paint


def _map(
    axes: Axes, cells: Mapping[tuple[int, float], float], lengths: Sequence[int], places: Sequence[float], numbers: bool
) -> Any:
    import numpy as np
    from matplotlib import colormaps
    from matplotlib.patches import Rectangle

    values = [[100 * cells.get((length, place), float("nan")) for length in lengths] for place in places]
    colours = colormaps[HEAT_COLOURS].with_extremes(bad=(1, 1, 1, 0))
    axes.add_patch(Rectangle((-0.5, -0.5), len(lengths), len(places), zorder=0, **NOT_MEASURED))
    # A mesh, not an image: an SVG of it has no bitmap inside, and its cells are sharp at any size.
    edges = [[index - 0.5 for index in range(count + 1)] for count in (len(lengths), len(places))]
    mesh = axes.pcolormesh(
        *edges,
        np.ma.masked_invalid(values),
        cmap=colours,
        vmin=0,
        vmax=100,
        edgecolors="white",
        linewidth=0.3,
        zorder=1,
    )
    axes.set_ylim(len(places) - 0.5, -0.5)
    axes.grid(False)
    axes.spines[:].set_visible(True)
    for row, line in enumerate(values if numbers else ()):
        for column, value in enumerate(line):
            if value == value:
                colour = "black" if value > 100 * LIGHT else "white"
                axes.text(column, row, f"{value:.0f}", ha="center", va="center", color=colour, fontsize="small")
    return mesh


def _ticks(
    axes: Axes,
    lengths: Sequence[int],
    places: Sequence[float],
    grid: str,
    trained: int | None,
    width: float,
    height: float,
) -> None:
    """Names as many columns and rows as there is room for; sizes of a cell are in font sizes."""
    names = [format_length(length) for length in lengths]
    step = max(1, -(-int(10 * 0.58 * (max(map(len, names)) + 0.4)) // max(1, int(10 * width))))
    axes.set_xticks(range(0, len(lengths), step), names[::step])
    if trained in lengths[::step]:
        labels = [f"{name}\n= L" if length == trained else name for name, length in zip(names, lengths, strict=True)]
        axes.set_xticks(range(0, len(lengths), step), labels[::step])
    rows = [f"{100 * place:.0f}" if grid == "depth" else format_length(int(place)) for place in places]
    step = max(1, -(-12 // max(1, int(10 * height))))
    axes.set_yticks(range(0, len(places), step), rows[::step])
