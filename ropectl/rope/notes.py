"""Notes to read before relying on a method's numbers; arithmetic only."""

from __future__ import annotations

from ropectl.rope.frequencies import reach_tokens
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.method import ScalingMethod


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
