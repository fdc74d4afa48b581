"""Quality in a long context against its cost: the price on short text, and the training."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ropectl.lengths import format_length, lengths_text
from ropectl.report.figures.curves import OPEN_MARKERS, subject_looks
from ropectl.report.figures.drawing import Canvas, Drawing, name_axes, sample_line, value_axis
from ropectl.report.figures.style import Look
from ropectl.report.figures.subjects import PREFIX, Evidence, Subject

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Short-text prices are on a linear axis up to this much, and on a logarithmic one beyond [%].
LINEAR_PRICE = 10.0

#: How a ring around a marker is drawn.
_RING: dict[str, Any] = {"marker": "o", "markerfacecolor": "none", "markeredgewidth": 0.8}

#: Trainings are compared only where their lengths differ by at least this factor.
LEAST_RATIO = 1.05


@dataclass(frozen=True)
class _Tradeoff:
    """A subject with its price on short text [%] and its quality in the longest context, which it may not be made for."""

    subject: Subject
    price: float
    quality: float
    beyond: bool


def cost_drawings(evidence: Evidence) -> list[Drawing]:
    """Returns price against quality, and training against quality where trainings differ.

    Both axes of the first are perplexities, because that is what is given up and what is gained: x is the worst
    relative rise at the lengths measured up to the trained one (what a user with short prompts pays, every day), y is perplexity
    in the longest context that all were measured at (what the extension is for). Better is lower and further left. An
    arrow leads from a method to itself after training: what the training bought. Markers with a ring also find the
    planted numbers at that length, for perplexity alone does not show that a far token is used.
    """
    length, found = _tradeoffs(evidence)
    if len(found) < 2:
        return []
    drawings = [_price_drawing(evidence, length, found)]
    trained = [each for each in found if each.subject.training_tokens]
    tokens = [float(each.subject.training_tokens or 0) for each in trained]
    if len(trained) > 1 and max(tokens) / min(tokens) > LEAST_RATIO:
        drawings.append(_training_drawing(evidence, length, trained, tokens))
    return drawings


def _tradeoffs(evidence: Evidence) -> tuple[int, list[_Tradeoff]]:
    """Returns the longest context that all were measured at [tokens], and the subjects there; 0 and none if there is none."""
    curves = [
        (s, s.short_delta, {point.length: point for point in s.curve(PREFIX, in_bits=not evidence.same_tokens)})
        for s in evidence.subjects
        if s.short_delta is not None
    ]
    curves = [(subject, price, curve) for subject, price, curve in curves if curve]
    common = set.intersection(*(set(curve) for _, _, curve in curves)) if curves else set()
    if not common:
        return 0, []
    longest = max(common)
    found = [(subject, price, curve[longest]) for subject, price, curve in curves]
    return longest, [_Tradeoff(subject, 100 * price, point.value, point.beyond) for subject, price, point in found]


def _short_lengths(subject: Subject) -> list[int]:
    """Returns the lengths up to the trained one that its price was measured at [tokens]."""
    lengths = [point.length for point in subject.curve(PREFIX)]
    return [length for length in lengths if subject.trained_length is None or length <= subject.trained_length]


def _price_drawing(evidence: Evidence, length: int, found: Sequence[_Tradeoff]) -> Drawing:
    prices = [each.price for each in found]
    measured = lengths_text(n for each in found for n in _short_lengths(each.subject))

    def prepare(axes: Axes) -> None:
        _price_axis(axes, prices)
        axes.axvline(0.0, color="black", linewidth=0.8, zorder=1)
        _arrows(axes, found)

    caption = (
        f"Price and quality: across, the worst relative change of perplexity at {measured} tokens, against the "
        f"unscaled model (linear up to {LINEAR_PRICE:.0f} %, then logarithmic); up, {evidence.unit} of the first "
        f"{length} tokens. Lower and further left is better."
    )
    if any(each.subject.tuned for each in found):
        caption += " Arrows: the same method after its training."
    names = "cost-quality", "Price on short text against quality", caption
    x_name = f"worst change of perplexity at {measured} tokens [%]"
    return _quality_drawing(names, evidence, length, found, prices, x_name, prepare)


def _training_drawing(evidence: Evidence, length: int, found: Sequence[_Tradeoff], tokens: Sequence[float]) -> Drawing:
    def prepare(axes: Axes) -> None:
        from matplotlib.ticker import EngFormatter, NullLocator

        axes.set_xscale("log")
        axes.set_xlim(min(tokens) / 1.3, max(tokens) * 1.3)
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
        axes.set_xticks(sorted({min(tokens), max(tokens)}))

    caption = f"What training buys: {evidence.unit} of the first {length} tokens against the tokens of the training."
    names = "training-quality", "Training against quality", caption
    return _quality_drawing(names, evidence, length, found, tokens, "training [tokens]", prepare)


def _quality_drawing(
    names: tuple[str, str, str],
    evidence: Evidence,
    length: int,
    found: Sequence[_Tradeoff],
    x: Sequence[float],
    x_name: str,
    prepare: Callable[[Axes], None],
) -> Drawing:
    """Returns a figure of quality over ``x``, which ``prepare`` makes the axis of."""
    name, title, caption = names

    def paint(canvas: Canvas) -> None:
        (axes,) = canvas.panels([2.1])
        value_axis(axes, [each.quality for each in found])
        prepare(axes)
        remark = OPEN_MARKERS if any(each.beyond for each in found) else ""
        canvas.legend(_markers(axes, evidence, found, x, length), remark)
        name_axes(axes, x=x_name, y=f"{evidence.unit} at {format_length(length)}")

    if any(each.subject.uses is not None for each in found):
        caption += f" With a ring: also finds planted numbers at {length} tokens."
    if any(each.beyond for each in found):
        caption += f" {OPEN_MARKERS.capitalize()}."
    return Drawing(name, title, caption, paint)


def _price_axis(axes: Axes, prices: Sequence[float]) -> None:
    """Makes x an axis of relative changes [%]: fine near 0, where methods differ, and wide enough for one that fails."""
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


def _arrows(axes: Axes, found: Sequence[_Tradeoff]) -> None:
    before = {each.subject.family: each for each in found if not each.subject.tuned}
    for after in found:
        start = before.get(after.subject.family)
        if after.subject.tuned and start is not None:
            axes.annotate(
                "", (after.price, after.quality), xytext=(start.price, start.quality),
                arrowprops={"arrowstyle": "->", "color": "#555555", "linewidth": 0.7, "shrinkA": 3, "shrinkB": 3},
            )  # fmt: skip


def _markers(
    axes: Axes, evidence: Evidence, found: Sequence[_Tradeoff], x: Sequence[float], length: int
) -> list[tuple[str, Any]]:
    """Draws a marker per subject, with a ring if it uses the length and larger if it was trained; returns the legend."""
    styles, legend = subject_looks(evidence.subjects), []
    for each, across in zip(found, x, strict=True):
        subject = each.subject
        look = styles[subject.name]
        form: dict[str, Any] = {
            "marker": "o" if look.marker == "." else look.marker,
            "markersize": 6.5 if subject.tuned else 4.8,
            "color": look.color,
            "markerfacecolor": "white" if each.beyond else look.color,
        }
        axes.plot([across], [each.quality], linestyle="", zorder=4, **form)
        if (subject.uses or 0) >= length:
            ring = {**_RING, "markersize": form["markersize"] + 5, "color": look.color}
            axes.plot([across], [each.quality], linestyle="", zorder=4, **ring)
        legend.append((subject.name, sample_line(Look(look.color, "", look.marker), **form)))
    if any(each.subject.tuned for each in found):
        trained = sample_line(Look("#444444", "", "o"), markersize=6.5)
        legend.append(("larger: trained", trained))
    if any((each.subject.uses or 0) >= length for each in found):
        legend.append(("ring: finds passkeys", sample_line(Look("#444444", "", "o"), **_RING, markersize=8)))
    return legend
