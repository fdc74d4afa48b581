"""What may change in a model's rotary config, and the form in which stock transformers carries any frequencies."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ropectl.rope.frequencies import RopeFrequencies, whole_table_divisors
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.proportional import SHARE, STOPPING_DIVISOR


@dataclass(frozen=True)
class RopeConfigPatch:
    """The only thing that may change a model's rotary config.

    Attributes:
        rope_parameters: The whole block in the transformers 5 dialect, ``rope_theta`` always explicit.
        max_position_embeddings: The context the config declares [tokens]; its meaning depends on the
            type, which is why it belongs to the patch.
        hints: Further keys of the block that change nothing in transformers and make other runtimes
            compute the same. Not for models whose attention reads such keys too (multi-head latent
            attention takes its softmax scale from ``mscale_all_dim``).
    """

    rope_parameters: dict[str, Any]
    max_position_embeddings: int
    hints: dict[str, Any] = field(default_factory=dict)


def universal_config(geometry: RopeGeometry, frequencies: RopeFrequencies, length: int) -> RopeConfigPatch:
    """Returns the form in which stock transformers can carry any static frequencies.

    ``longrope`` with the divisors as both lists. Original and declared length are the same number, so
    that runtimes which derive an attention factor from their ratio derive 1; the true factor is given. The
    divisors are those of a table in which all pairs turn, so that a pair that stands still has a very large one.
    """
    length = max(length, geometry.original_max_position_embeddings)
    factors = [min(divisor, STOPPING_DIVISOR) for divisor in whole_table_divisors(geometry, frequencies)]
    rope_parameters: dict[str, Any] = {
        "rope_type": "longrope",
        "rope_theta": geometry.rope_theta,
        "factor": 1.0,
        "short_factor": factors,
        "long_factor": list(factors),
        "original_max_position_embeddings": length,
        "attention_factor": frequencies.attention_factor,
    }
    if geometry.num_turning is not None:
        rope_parameters[SHARE] = 1.0  # the share in the model's own block would shorten this table
    factor = frequencies.attention_factor
    hints = {} if factor == 1.0 else {"short_mscale": factor, "long_mscale": factor}  # all that vLLM and sglang read
    return RopeConfigPatch(rope_parameters, length, hints)
