"""The method that a comparison prefers, and what it comes to in plain sentences."""

from __future__ import annotations

from collections.abc import Sequence

from ropectl.records import NO_CHANGE, MethodRow, Pick
from ropectl.rope.method import short_spec


def pick_method(rows: Sequence[MethodRow]) -> Pick | None:
    """Returns the row with the longest ``uses``, then ``models``, then the smallest ``short_delta``, and why.

    None where nothing was measured that could decide.
    """
    candidates = [
        row for row in rows if not row.errors and (row.reach.uses is not None or row.reach.models is not None)
    ]
    if not candidates:
        return None
    best = min(
        candidates,
        key=lambda row: (
            -(row.reach.uses or 0),
            -(row.reach.models or 0),
            row.short_delta if row.short_delta is not None else 0.0,
        ),
    )
    reasons = []
    if best.reach.uses is not None:
        reasons.append(f"uses {_tokens(best.reach.uses)}: {_rank('uses', best, candidates)}")
    if best.reach.models is not None:
        reasons.append(f"models {_tokens(best.reach.models)}: {_rank('models', best, candidates)}")
    if best.short_delta is not None:
        if abs(best.short_delta) < NO_CHANGE:
            change = "does not change"
        elif best.short_delta < 0:
            change = f"falls by {-best.short_delta:.1%} or more"
        else:
            change = f"rises by {best.short_delta:.1%} at worst"
        reasons.append(f"perplexity up to the trained length {change}")
    return Pick(best.model, best.method, reasons, best.training.id if best.training else None)


def _tokens(length: int) -> str:
    return f"{length} tokens" if length else "no evaluated length"


def _rank(sense: str, best: MethodRow, rows: Sequence[MethodRow]) -> str:
    values = [getattr(row.reach, sense) or 0 for row in rows]
    own = getattr(best.reach, sense) or 0
    if own < max(values):
        return f"{max(values)} is the longest"
    ties = values.count(own) - 1
    return "the longest" if not ties else f"the longest, shared with {ties} other{'s' if ties > 1 else ''}"


def comparison_verdict(rows: Sequence[MethodRow], pick: Pick | None, target_length: int) -> list[str]:
    """Returns how far the pick reaches of the context asked for, in each sense, and whether another reaches it all.

    Args:
        rows: All rows.
        pick: The preferred one; None where nothing could decide.
        target_length: The context that the comparison is about [tokens].
    """
    if pick is None:
        return ["Nothing was measured that could decide between the methods."]
    row = next(row for row in rows if _key(row) == (pick.model, pick.method, pick.training))
    name = short_spec(row.method) + (", tuned" if row.training else "")
    if row.model != rows[0].model:
        name = f"{row.model}, {name}"
    sentences = [
        f"Of the {target_length} tokens asked for, the pick ({name}) " + "; ".join(_senses(row, target_length)) + "."
    ]
    measured = [each for each in rows if each.reach.uses is not None]
    if measured and all((each.reach.uses or 0) < target_length for each in measured):
        longest = max(max((entry.length for entry in each.passkey), default=0) for each in measured)
        what = "no method was measured there" if longest < target_length else "no method uses them all"
        sentences.append(f"Retrieval: {what}.")
    return sentences


def _key(row: MethodRow) -> tuple[str, str, str | None]:
    return row.model, row.method, row.training.id if row.training else None


def _senses(row: MethodRow, target_length: int) -> list[str]:
    reach = row.reach
    computes = target_length if reach.computes is None else min(reach.computes, target_length)
    senses = [f"computes {computes} (rotations seen in training)"]
    if reach.models is None:
        senses.append("models: not judged")
    else:
        senses.append(f"models {reach.models or 'none of the lengths'} (loss as low as the unscaled model's)")
    if reach.uses is None:
        senses.append("uses: not judged")
    else:
        senses.append(f"uses {reach.uses or 'none of the lengths'} (passkeys retrieved)")
    return senses
