"""Figures of a training: its loss, and the validations in between."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ropectl.lengths import format_length
from ropectl.records import MetricsLine
from ropectl.report.figures.drawing import (
    Canvas,
    Drawing,
    name_axes,
    name_mark,
    sample_line,
    share_axis,
    value_axis,
)
from ropectl.report.figures.style import REFERENCE_COLOUR, Look, looks, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Most steps that the smoothed loss is a mean over; in short runs a tenth of the steps.
WINDOW = 20

#: Most steps drawn, so that an SVG stays small; of more, every second, third ... is drawn.
MOST_STEPS = 4000

#: The name of the axis for each kind of validation.
KINDS = {"perplexity": "perplexity", "passkey": "passkeys [%]"}

Measured = dict[int, dict[int, float]]


def training_drawings(metrics: Sequence[MetricsLine], settings: Mapping[str, Any]) -> list[Drawing]:
    """Returns the curves of a training: loss by step, and perplexity and passkeys of the validations by length.

    Args:
        metrics: Lines of a run's ``metrics.jsonl``. Of a step that is there twice, the last counts: a run that was
            continued repeats steps.
        settings: The settings of the training by name.
    """
    losses = dict(sorted({line.step: line.loss for line in metrics if line.loss is not None}.items()))
    measured = {kind: found for kind in KINDS if (found := _validations(metrics, kind))}
    if len(losses) < 2 and not measured:
        return []
    best = max((line.step for line in metrics if line.best), default=None) if measured else None
    last = max(line.step for line in metrics)
    lengths = sorted({length for curves in measured.values() for length in curves})

    def paint(canvas: Canvas) -> None:
        heights = ([1.25] if losses else []) + [1.05] * len(measured)
        panels = canvas.panels(heights, share_x=True)
        legend = _paint_losses(panels[0], losses) if losses else []
        styles = dict(zip(lengths, looks([(length, False, False) for length in lengths]), strict=True))
        for axes, (kind, curves) in zip(panels[len(heights) - len(measured) :], measured.items(), strict=True):
            _paint_validations(axes, kind, curves, styles)
        legend += [(f"{format_length(length)} tokens", sample_line(styles[length])) for length in lengths]
        if best is not None:
            for axes in panels:
                axes.axvline(best, color="black", linewidth=0.8, linestyle=(0, (3, 2)), zorder=1)
            name_mark(panels[0], best, f"best: step {best}", to_left=best > last / 2)
        name_axes(panels[-1], x="step")
        canvas.legend(legend)

    return [Drawing("training", "Training", _caption(metrics, settings, measured, best), paint)]


def _validations(metrics: Sequence[MetricsLine], kind: str) -> Measured:
    """Returns the values of one kind of validation by length [tokens], by step."""
    found: Measured = {}
    for line in sorted((line for line in metrics if line.validation), key=lambda line: line.step):
        assert line.validation is not None
        values = line.validation.perplexity if kind == "perplexity" else line.validation.passkey
        for length, value in values.items():
            found.setdefault(length, {})[line.step] = value if kind == "perplexity" else 100 * value
    return {length: found[length] for length in sorted(found)}


def smoothed(values: Sequence[float], window: int) -> list[float]:
    """Returns the mean of each value and those before it, ``window`` in all or as many as there are."""
    means, total = [], 0.0
    for index, value in enumerate(values):
        total += value - (values[index - window] if index >= window else 0.0)
        means.append(total / min(index + 1, window))
    return means


def _paint_losses(axes: Axes, losses: Mapping[int, float]) -> list[tuple[str, Any]]:
    from matplotlib.ticker import MaxNLocator

    steps, values = list(losses), list(losses.values())
    window = max(1, min(WINDOW, len(values) // 10))
    means = smoothed(values, window)
    thin = slice(None, None, -(-len(steps) // MOST_STEPS))
    each, mean = Look(REFERENCE_COLOUR, "-", ""), Look("black", "-", "")
    axes.plot(steps[thin], values[thin], **{**each.line, "linewidth": 0.5})
    axes.plot(steps[thin], means[thin], **mean.line)
    axes.yaxis.set_major_locator(MaxNLocator(4))
    name_axes(axes, y="loss [nats a token]")
    words = "loss of a step", f"mean of {window} step{'s' if window > 1 else ''}"
    return [(words[0], sample_line(each, linewidth=0.8)), (words[1], sample_line(mean))]


def _paint_validations(axes: Axes, kind: str, curves: Measured, styles: Mapping[int, Look]) -> None:
    for length, curve in curves.items():
        look = styles[length]
        axes.plot(list(curve), list(curve.values()), **look.line, marker=look.marker, markersize=3.2)
    if kind == "perplexity":
        value_axis(axes, [value for curve in curves.values() for value in curve.values()])
    else:
        share_axis(axes)
    name_axes(axes, y=KINDS[kind])


def _caption(
    metrics: Sequence[MetricsLine],
    settings: Mapping[str, Any],
    measured: Mapping[str, Measured],
    best: int | None,
) -> str:
    what = [shorten(str(settings[key])) for key in ("model", "method", "strategy") if settings.get(key)]
    caption = f"Training{' of ' + ', '.join(what) if what else ''}: loss of each step and its running mean"
    tokens = max((line.tokens or 0 for line in metrics), default=0)
    if tokens:
        caption += f", {tokens:,.0f} tokens in all"
    if measured:
        caption += "; below, held-out text and planted numbers at several lengths"
    if best is not None:
        caption += f"; dashed: step {best}, the best validation, whose weights were kept"
    return caption + "."
