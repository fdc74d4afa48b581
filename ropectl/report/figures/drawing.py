"""Figures that are drawn on request, in the width of a column or of a page, and what all of them share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ropectl.lengths import format_length
from ropectl.report.figures.style import SMALL, TRAINED_COLOUR, Look, Size, fitted, house_style, text_width, wrapped
from ropectl.report.figures.ticks import tick_texts, value_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


#: Widest names [inch] in a column's legend by how many are put side by side.
COLUMNS = {3: 0.62, 2: 1.16}


@dataclass(frozen=True)
class Drawing:
    """A figure that is drawn on request.

    Attributes:
        name: File stem; no two of one record are equal.
        title: What it shows, in a few words.
        caption: How to read it, and how much was measured. Plain text: names in it come from records.
        paint: Fills an empty canvas.
    """

    name: str
    title: str
    caption: str
    paint: Callable[[Canvas], None]

    def draw(self, wide: bool = False) -> Figure:
        """Draws the figure in the width of a column, or of a whole page if ``wide``.

        The layout is computed once, when all is painted, so that saving the figure again changes nothing.
        """
        from matplotlib.figure import Figure

        size = Size.PAGE if wide else Size.COLUMN
        with house_style(size):
            figure = Figure(figsize=(size.width, 2.3), dpi=300, layout="constrained")
            figure.set_label(self.title)
            self.paint(Canvas(figure, size))
            figure.align_ylabels()
            for _ in range(2):  # ticks change with the size of their panel, and the panel with the width of its ticks
                figure.draw_without_rendering()
            figure.set_layout_engine("none")
        return figure


@dataclass
class Canvas:
    """An empty figure of a size, which panels and a legend are added to."""

    figure: Figure
    size: Size

    @property
    def is_narrow(self) -> bool:
        """Whether it is a column of a paper."""
        return self.size is Size.COLUMN

    def panels(self, heights: Sequence[float], share_x: bool = False) -> list[Axes]:
        """Returns panels above each other, of about these heights in a column [inch]; the legend comes on top of that."""
        scale = 1.0 if self.is_narrow else 1.45
        self.figure.set_size_inches(self.size.width, scale * sum(heights))
        grid = self.figure.subplots(len(heights), 1, height_ratios=list(heights), sharex=share_x, squeeze=False)
        return list(grid[:, 0])

    def legend(self, entries: Sequence[tuple[str, Any]], remark: str = "") -> None:
        """Explains lines below the panels in a column, where height is free, and beside them on a page.

        Args:
            entries: Name and line of each.
            remark: What their markers have in common; stands above them.
        """
        points = SMALL * self.size.font
        names = [fitted(name, points, self.size.label) for name, _ in entries]
        longest = max((text_width(name, points) for name in names), default=0.0)
        lines = wrapped(remark, points, self.size.label + 0.3)
        columns = 1
        if self.is_narrow:
            columns = next((n for n, width in COLUMNS.items() if longest <= width and n <= len(names)), 1)
            rows = -(-len(names) // columns) + len(lines)
            self.figure.set_figheight(self.figure.get_figheight() + 0.06 + 0.135 * rows)
        else:
            needed = 0.3 + 0.185 * (len(names) + len(lines))
            self.figure.set_figheight(max(self.figure.get_figheight(), needed))
        legend = self.figure.legend(
            handles=[line for _, line in entries],
            # Names come after: one that begins with an underscore would be left out.
            labels=[str(index) for index in range(len(names))],
            loc="outside lower center" if self.is_narrow else "outside right upper",
            ncols=columns,
            handlelength=3.2,
            labelspacing=0.35,
            columnspacing=1.2,
            borderaxespad=0.2,
            title="\n".join(lines) or None,
            alignment="left",
        )
        for label, name in zip(legend.get_texts(), names, strict=True):
            label.set_text(name)
            label.set_parse_math(False)


def sample_line(look: Look, **changes: Any) -> Any:
    """Returns a line for a legend."""
    from matplotlib.lines import Line2D

    return Line2D([], [], **{**look.line, "marker": look.marker, "markersize": 3.6, **changes})


def name_axes(axes: Axes, x: str = "", y: str = "", title: str = "") -> None:
    """Sets titles as plain text: a dollar sign in a name does not begin a formula."""
    for set_text, words in ((axes.set_xlabel, x), (axes.set_ylabel, y)):
        if words:
            set_text(words, parse_math=False)
    if title:
        axes.set_title(title, loc="left", parse_math=False)


def length_axis(
    axes: Axes, lengths: Sequence[float], most_ticks: int, within: tuple[float, float] | None = None
) -> None:
    """Makes x a logarithmic axis of tokens with ticks at given lengths, as many as there is room for.

    Args:
        axes: The panel.
        lengths: Where ticks may be.
        most_ticks: About as many are shown.
        within: What the axis spans, where that is more than the lengths.
    """
    from matplotlib import rcParams
    from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

    low, high = within or (min(lengths), max(lengths))
    widest = max(text_width(format_length(int(length)), SMALL * float(rcParams["font.size"])) for length in lengths)
    most_ticks = max(1, min(most_ticks, int(axes.bbox.width / axes.figure.dpi / (widest + 0.06))))
    axes.set_xscale("log", base=2)
    axes.set_xlim(low / 1.15 if low < high else low / 2, high * 1.15 if low < high else high * 2)
    ratio = (high / low) ** (1 / most_ticks)
    shown: list[float] = []
    for length in sorted(set(lengths)):
        if not shown or length / shown[-1] >= ratio * 0.999:
            shown.append(length)
    axes.xaxis.set_major_locator(FixedLocator(shown))
    axes.xaxis.set_major_formatter(FixedFormatter([format_length(int(length)) for length in shown]))
    axes.xaxis.set_minor_locator(NullLocator())


def value_axis(axes: Axes, values: Sequence[float]) -> None:
    """Makes y a logarithmic axis that shows all values, with ticks that can be read."""
    from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

    low, high = min(values), max(values)
    margin = max(1.01, (high / low) ** 0.06)
    axes.set_yscale("log")
    axes.set_ylim(low / margin, high * margin)
    ticks = value_ticks(low / margin, high * margin)
    axes.yaxis.set_major_locator(FixedLocator(ticks))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FixedFormatter(tick_texts(ticks)))


def share_axis(axes: Axes) -> None:
    """Makes y an axis of shares, in per cent."""
    axes.set_ylim(-4, 104)
    axes.set_yticks([0, 25, 50, 75, 100])


def mark_trained(axes: Axes, length: int | None, name: bool = True) -> None:
    """Shades what is within the trained length, and names it, if the axis reaches there."""
    low, high = axes.get_xlim()
    if length is None or not low < length:
        return
    axes.axvspan(low, min(length, high), color=TRAINED_COLOUR, zorder=0, linewidth=0)
    if length >= high:
        return
    axes.axvline(length, color="black", linewidth=0.8, zorder=1)
    if name:
        name_mark(axes, length, f"L = {format_length(length)}", to_left=length > (low * high) ** 0.5)


def name_mark(axes: Axes, x: float, text: str, to_left: bool, inside: bool = False, **style: Any) -> None:
    """Names a vertical line at its upper end: above the panel, or inside of it, to the left or right of the line."""
    right, up = (5, 0) if inside else (2, 1)
    axes.annotate(
        text, (x, 0.97 if inside else 1.0), xycoords=("data", "axes fraction"), textcoords="offset points",
        xytext=(-right if to_left else right, up), ha="right" if to_left else "left",
        va="top" if inside else "bottom", **{"fontsize": "small", **style},
    )  # fmt: skip
