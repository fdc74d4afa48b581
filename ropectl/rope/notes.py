"""Notes to read before relying on a method's numbers; arithmetic only."""

from __future__ import annotations

import math

from ropectl.rope.frequencies import REACH_TOLERANCE, reach_tokens, trained_inv_freq
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.method import ScalingMethod


def computes_as_trained(method: ScalingMethod, geometry: RopeGeometry, seq_len: int | None = None) -> bool:
    """Returns whether a method leaves everything as it was in training, at a length where it depends on it."""
    found = method.frequencies(geometry, seq_len)
    pairs = zip(found.inv_freq, trained_inv_freq(geometry), strict=True)
    return found.attention_factor == 1 and all(
        math.isclose(one, other, rel_tol=REACH_TOLERANCE) for one, other in pairs
    )


def method_notes(method: ScalingMethod, geometry: RopeGeometry, seq_len: int | None = None) -> list[str]:
    """Returns sentences about a method on a geometry; empty if there is nothing to say.

    Args:
        method: The method.
        geometry: The geometry that the model was trained with.
        seq_len: The sequence length at which a length-dependent method is evaluated [tokens].
    """
    notes: list[str] = []
    trained = geometry.original_max_position_embeddings
    if getattr(method, "factor", None) == 1.0:
        notes.append(f"{method.label}: factor 1 extends nothing.")
    elif method.name != "none" and not method.depends_on_seq_len and computes_as_trained(method, geometry):
        notes.append(f"{method.label} computes what the model was trained with: it extends nothing.")
    if method.depends_on_seq_len and seq_len is None:
        notes.append(f"{method.name} depends on the sequence length; shown for {trained} tokens. Another: --seq-len N")
    target, computed = method.target_length(geometry), reach_tokens(geometry, method.frequencies(geometry, seq_len))
    if not method.depends_on_seq_len and computed is not None and computed < target:
        reached = computed / trained
        notes.append(
            f"{method.label}: past {computed} tokens ({reached:.2f}x of {trained}) slow pairs turn further than in training, "
            f"short of the target {target}. Measure there, or ask for a larger factor."
        )
    return notes
