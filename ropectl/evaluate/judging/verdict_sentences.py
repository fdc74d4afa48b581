"""Verdicts in sentences: how far a method models text, what it costs, and what is not resolved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ropectl.data.units import counted
from ropectl.evaluate.judging.verdicts import Reached, first_open
from ropectl.lengths import lengths_text
from ropectl.records import FEW_DOCUMENTS, NO_CHANGE, Difference, PerplexityPoint


def perplexity_verdict(
    models: Reached,
    baseline: PerplexityPoint | None,
    delta: Difference | None,
    compared_at: Sequence[int],
    trained_length: int,
    tolerance: float,
    unit: str = "document",
) -> list[str]:
    """Returns the verdict of perplexity in sentences: how far the method reaches, and what it costs.

    Args:
        models: How far text is modelled.
        baseline: The unscaled model's point at its trained length, against which it was judged.
        delta: Worst relative change of those lengths; None if not measured.
        compared_at: The lengths at which it was compared with the unscaled model [tokens].
        trained_length: L [tokens].
        tolerance: Accepted rise of the loss [nats a token].
        unit: What intervals are over: ``document``, or ``window`` where there is one document.
    """
    sentences = []
    if models.certain is not None and baseline is not None:
        sentences += _models_sentences(models, trained_length, tolerance, unit)
    if delta is not None:
        change = f"{delta.value:+.1%}" if abs(delta.value) >= NO_CHANGE else "no change"
        has_interval = delta.ci_low is not None and abs(delta.value) >= NO_CHANGE
        interval = f" (95 % interval {delta.ci_low:+.1%} to {delta.ci_high:+.1%})" if has_interval else ""
        worst = f" at worst, at {delta.length}" if len(compared_at) > 1 else ""
        measured = f"Perplexity at {lengths_text(compared_at)} tokens"
        sentences.append(f"{measured} against the unscaled model: {change}{worst}{interval}.")
    return sentences


def _models_sentences(models: Reached, trained: int, tolerance: float, unit: str) -> list[str]:
    units = models.at[0].units
    few = f"; few {unit}s, at least {FEW_DOCUMENTS} wanted" if units < FEW_DOCUMENTS else ""
    judged = lengths_text(each.length for each in models.at)
    basis = f"(within {tolerance:g} nats a token, 95 % interval over {counted(units, unit)}{few}; judged at {judged} tokens)"
    reference = f"the unscaled model given {trained} {basis}."
    if models.certain:
        first = f"models up to {models.certain} tokens: given so many, the same text is predicted no worse than by {reference}"
    elif models.possible:
        first = f"models: not resolved at any evaluated length, against {reference}"
    else:
        first = f"models no evaluated length: the same text is predicted worse than by {reference}"
    return [first, *open_sentences("models", models, f"{unit}s", trained)]


def open_sentences(sense: str, found: Reached, units: str, trained_length: int) -> list[str]:
    """Returns a sentence on what is not resolved, and what would resolve it; none where everything is.

    Args:
        sense: Name of what is judged.
        found: How far it goes.
        units: What it is judged on, such as ``documents``.
        trained_length: L [tokens].
    """
    if found.certain is None or found.possible is None or found.possible <= found.certain:
        return []
    first = first_open(found.at, found.certain, trained_length)
    needed = (
        f"about {first.units_needed} {units} would tell"
        if first.units_needed
        else f"no number of {units} is known to tell"
    )
    return [
        f"{sense} at {first.length} tokens: not resolved, the 95 % interval holds the limit; {needed} ({first.units} measured)."
    ]


def limit_messages(points: Sequence[Mapping[str, Any]], limit: float) -> list[str]:
    """Returns a sentence for each length whose perplexity is above a limit, or was not measured.

    Args:
        points: The points of a record.
        limit: Largest accepted perplexity.
    """
    messages = []
    for point in points:
        length, value = point["context_length"], point["perplexity"]
        if value is None:
            messages.append(
                f"No perplexity was measured at {length} tokens: --fail-above {limit:g} cannot be kept there."
            )
        elif value > limit:
            messages.append(
                f"The perplexity at {length} tokens is {value:.6g}, above {limit:g} (--fail-above){doubt(point, limit, '.6g')}."
            )
    return messages


def doubt(measured: Mapping[str, Any], limit: float, form: str) -> str:
    """Returns what to add to a limit that is not kept, where chance alone may be why: its interval; else nothing.

    Args:
        measured: What is on the wrong side of the limit, with ``ci_low`` and ``ci_high``.
        limit: The limit.
        form: How its numbers are written.
    """
    low, high = measured.get("ci_low"), measured.get("ci_high")
    if low is None or high is None:
        return " (no interval)"
    return f" (not resolved: 95 % interval {low:{form}} to {high:{form}})" if low <= limit <= high else ""
