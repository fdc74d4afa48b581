"""Cost against quality: what a longer context costs on short text, and what training it takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ropectl.lengths import format_length
from ropectl.report.figures.curves import subject_looks
from ropectl.report.figures.drawing import Canvas, Drawing, drawing, name_axes, sample_line, value_axis
from ropectl.report.figures.style import Look
from ropectl.report.figures.subjects import PREFIX, Evidence, Subject

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Short-text prices are on a linear axis up to this much, and on a logarithmic one beyond [%].
LINEAR_PRICE = 10.0

#: Most trainings have one length; time is drawn only where these differ by more than rounding.
LEAST_RATIO = 1.05


@dataclass(frozen=True)
class _Place:
    """Where a subject stands: its price on short text [%], and its quality in the longest context."""

    subject: Subject
    price: float
    quality: float


def cost_drawings(evidence: Evidence) -> list[Drawing]:
    """Returns price against quality, and training against quality where trainings differ.

    Both axes of the first are perplexities, because that is what is given up and what is gained: x is the worst
    relative rise up to the trained length (what a user with short prompts pays, every day), y is perplexity
    in the longest context that all were measured at (what the extension is for). Better is lower and further left. An
    arrow leads from a method to itself after training: what the training bought. Filled markers also find the
    planted numbers at that length, for perplexity alone does not show that a far token is used.
    """
    length, places = _places(evidence)
    if length is None or len(places) < 2:
        return []
    found = [_price_drawing(evidence, length, places)]
    trained = [place for place in places if place.subject.training_tokens]
    tokens = [place.subject.training_tokens or 0 for place in trained]
    if len(trained) > 1 and max(tokens) / min(tokens) > LEAST_RATIO:
        found.append(_training_drawing(evidence, length, trained))
    return found


def _places(evidence: Evidence) -> tuple[int | None, list[_Place]]:
    priced = [s for s in evidence.subjects if s.short_delta is not None]
    curves = [s.curve(PREFIX, in_bits=not evidence.same_tokens) for s in priced]
    lengths = [{point.length for point in curve} for curve in curves if curve]
    common = set.intersection(*lengths) if lengths else set()
    if not common:
        return None, []
    longest, found = max(common), []
    for subject, curve in zip(priced, curves, strict=True):
        for point in curve:
            if point.length == longest and subject.short_delta is not None:
                found.append(_Place(subject, 100 * subject.short_delta, point.value))
    return longest, found


def _price_drawing(evidence: Evidence, length: int, places: Sequence[_Place]) -> Drawing:
    unit = "perplexity" if evidence.same_tokens else "bits per byte"

    def paint(canvas: Canvas) -> None:
        (axes,) = canvas.panels([2.1])
        price_axis(axes, [place.price for place in places])
        value_axis(axes, [place.quality for place in places])
        axes.axvline(0.0, color="black", linewidth=0.8, zorder=1)
        _arrows(axes, places)
        _markers(canvas, axes, evidence, places, [place.price for place in places], length)
        name_axes(axes, x="change of perplexity up to the trained length [%]", y=f"{unit} at {format_length(length)}")

    caption = (
        f"Price and quality: across, the worst relative change of perplexity up to the trained length, against the "
        f"unscaled model (linear up to {LINEAR_PRICE:.0f} %, then logarithmic); up, {unit} of the first "
        f"{length} tokens. Lower and further left is better. "
    )
    if any(place.subject.tuned for place in places):
        caption += "Arrows: the same method after its training. "
    caption += f"Filled: also finds planted numbers at {length} tokens."
    return drawing("cost-quality", "Price on short text against quality", caption, paint)


def _training_drawing(evidence: Evidence, length: int, places: Sequence[_Place]) -> Drawing:
    unit = "perplexity" if evidence.same_tokens else "bits per byte"

    def paint(canvas: Canvas) -> None:
        from matplotlib.ticker import EngFormatter, NullLocator

        (axes,) = canvas.panels([2.0])
        tokens = [float(place.subject.training_tokens or 0) for place in places]
        value_axis(axes, [place.quality for place in places])
        axes.set_xscale("log")
        axes.set_xlim(min(tokens) / 1.3, max(tokens) * 1.3)
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
        axes.set_xticks(sorted({min(tokens), max(tokens)}))
        _markers(canvas, axes, evidence, places, tokens, length)
        name_axes(axes, x="training [tokens]", y=f"{unit} at {format_length(length)}")

    caption = f"What training buys: {unit} of the first {length} tokens against the tokens of the training. "
    caption += f"Filled: also finds planted numbers at {length} tokens."
    return drawing("training-quality", "Training against quality", caption, paint)


def price_axis(axes: Axes, prices: Sequence[float]) -> None:
    """Makes x an axis of relative changes [%]: fine near 0, where methods differ, and still wide enough for a broken one."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

    low, high = min(*prices, 0.0), max(*prices, 0.0)
    if max(abs(low), high) > 3 * LINEAR_PRICE:
        axes.set_xscale("symlog", linthresh=LINEAR_PRICE, linscale=1.6)
        steps = [sign * LINEAR_PRICE * 10.0**power for power in range(99) for sign in (-1, 1)]
        inside = [step for step in steps if 1.6 * low - 2 <= step <= 1.6 * high + 2]
        halves = [-LINEAR_PRICE / 2, LINEAR_PRICE / 2]
        ticks = sorted({0.0, *(inside if len(inside) < 6 else inside[:: len(inside) // 4])})
        axes.xaxis.set_major_locator(FixedLocator(sorted({*ticks, *(h for h in halves if low <= h <= high)})))
        axes.set_xlim(1.6 * low - 2, 1.6 * high + 2)
    else:
        margin = max(0.06 * (high - low), 0.5)
        axes.set_xlim(low - margin, high + margin)
        axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:+g}" if value else "0"))


def _arrows(axes: Axes, places: Sequence[_Place]) -> None:
    before = {place.subject.family: place for place in places if not place.subject.tuned}
    for place in places:
        start = before.get(place.subject.family)
        if place.subject.tuned and start is not None:
            axes.annotate(
                "", (place.price, place.quality), xytext=(start.price, start.quality),
                arrowprops={"arrowstyle": "->", "color": "#555555", "linewidth": 0.7, "shrinkA": 3, "shrinkB": 3},
            )  # fmt: skip


def _markers(
    canvas: Canvas, axes: Axes, evidence: Evidence, places: Sequence[_Place], x: Sequence[float], length: int
) -> None:
    """Draws a marker a subject, filled where it uses the length; those that were trained are larger."""
    styles, legend = subject_looks(evidence.subjects), []
    for place, across in zip(places, x, strict=True):
        subject = place.subject
        look = styles[subject.name]
        form: dict[str, Any] = {
            "marker": "o" if look.marker == "." else look.marker,
            "markersize": 6.5 if subject.tuned else 4.8,
            "color": look.color,
            "markerfacecolor": look.color if (subject.uses or 0) >= length else "white",
        }
        axes.plot([across], [place.quality], linestyle="", zorder=4, **form)
        legend.append((subject.name, sample_line(Look(look.color, "", look.marker), **form)))
    if any(place.subject.tuned for place in places):
        legend.append(
            ("larger: trained", sample_line(Look("#444444", "", "o"), markersize=6.5, markerfacecolor="white"))
        )
    canvas.legend(legend)
