"""What follows from a method on a geometry, in one table: shown by dry runs and ``inspect``, and kept in records."""

from __future__ import annotations

from ropectl.rope.derived_value import DerivedValue
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.method import ScalingMethod


def derived_values(
    method: ScalingMethod, geometry: RopeGeometry, seq_len: int | None = None, target_length: int | None = None
) -> dict[str, DerivedValue]:
    """Returns every value that a method's spec does not spell out, by name: the common ones, then the method's own.

    Attention factor and base of a method that follows the length are those of the length it is frozen at, else of the
    target.

    Args:
        method: The method.
        geometry: The geometry that the model was trained with.
        seq_len: The length that a length-dependent method is frozen at [tokens]; None if it is not.
        target_length: The context that was asked for; by default the one that the method is made for [tokens].

    Raises:
        MethodError: If the method cannot work on this geometry.
    """
    trained = geometry.original_max_position_embeddings
    target = target_length or seq_len or method.target_length(geometry)
    at = seq_len or target
    where = f", at {at} tokens" if method.depends_on_seq_len else ""
    base = float(method.frozen_config(geometry, at).rope_parameters.get("rope_theta", geometry.rope_theta))
    values = {
        "factor": DerivedValue(getattr(method, "factor", target / trained), "1", "s = L'/L"),
        "attention_factor": DerivedValue(
            method.frequencies(geometry, at).attention_factor, "1", f"A, on cos and sin{where}"
        ),
        "base": DerivedValue(base, "1", f"rope_theta in the config{where}"),
        "trained_length": DerivedValue(trained, "tokens", "L"),
        "target_length": DerivedValue(target, "tokens", "L'"),
    }
    if seq_len is not None:
        values["frozen_at"] = DerivedValue(seq_len, "tokens", "its frequencies are used at every length")
    elif method.depends_on_seq_len:
        values["changes_after"] = DerivedValue(trained, "tokens", "up to it the frequencies are those of L")
    return {**values, **method.derived(geometry)}
