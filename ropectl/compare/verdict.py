"""What a comparison comes to, in plain sentences."""

from __future__ import annotations

from collections.abc import Sequence

from ropectl.records import MethodRow, Pick
from ropectl.rope.method import short_spec


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
