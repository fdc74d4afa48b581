"""What perplexity alone says about how far a method reaches and what it costs, in numbers and in a plain sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ropectl.evaluate.config import MODELS_TOLERANCE
from ropectl.evaluate.protocols.protocol import Request
from ropectl.evaluate.reach import models_length, short_delta
from ropectl.records import FEW_DOCUMENTS, NO_CHANGE, PerplexityPoint
from ropectl.rope.methods.none import NoScaling


def perplexity_verdict(
    protocol: str,
    points: Sequence[PerplexityPoint],
    unscaled: Sequence[PerplexityPoint],
    request: Request,
    tolerance: float | None,
) -> dict[str, Any]:
    """Returns ``reach`` (only the sense that perplexity measures), ``short_delta`` and ``verdict``, a list of sentences.

    Args:
        protocol: Its name; ``tail`` alone judges how far a method models text.
        points: The method's points.
        unscaled: Those of the unscaled model on the same targets; empty where the method is that model.
        request: What was measured.
        tolerance: Accepted rise of the loss; None for the default [nats a token].
    """
    trained = request.trained_length
    tolerance = MODELS_TOLERANCE if tolerance is None else tolerance
    sentences = []
    models = None
    if protocol == "tail":
        base = points if request.method == NoScaling() else unscaled
        baseline = next((point for point in base if point.context_length == trained), None)
        models = models_length(points, baseline, tolerance)
        if models is not None:
            assert baseline is not None
            sentences.append(_models_sentence(models, trained, tolerance, baseline.num_documents))
    delta = short_delta(points, unscaled, trained)
    if delta is not None:
        change = f"{delta:+.1%}" if abs(delta) >= NO_CHANGE else "no change"
        sentences.append(
            f"Perplexity up to the trained length ({trained} tokens) against the unscaled model: {change} at worst."
        )
    return {"reach": {"models": models}, "short_delta": delta, "verdict": sentences}


def _models_sentence(models: int, trained: int, tolerance: float, num_documents: int) -> str:
    few = f"; few documents, at least {FEW_DOCUMENTS} wanted" if num_documents < FEW_DOCUMENTS else ""
    basis = f"(within {tolerance:g} nats a token, 95 % interval over {num_documents} documents{few})"
    reference = f"the unscaled model given {trained} {basis}."
    if models:
        return f"models up to {models} tokens: given so many, the same text is predicted no worse than by {reference}"
    return f"models no evaluated length: at each, the same text is predicted worse than by {reference}"


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
            messages.append(f"The perplexity at {length} tokens is {value:.6g}, above {limit:g} (--fail-above).")
    return messages
