"""No scaling: the baseline takes the same path as every method."""

from __future__ import annotations

from typing import Any

from typing_extensions import Self

from ropectl.rope.config_patch import RopeConfigPatch
from ropectl.rope.frequencies import RopeFrequencies, trained_inv_freq
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.guide import CACHE_OF_STATIC, MethodGuide
from ropectl.rope.method import Reference, ScalingMethod


class NoScaling(ScalingMethod):
    """RoPE as trained. Positions past the trained length turn slow pairs into angles never seen."""

    name = "none"
    title = "RoPE as trained"
    formula = "inv_freq_i = b^(-2i/d)"
    reference = Reference("RoFormer", arxiv="2104.09864")
    native = "default"
    guide = MethodGuide(
        fast="As trained.",
        slow="As trained: past L they reach angles that the model never saw.",
        use="As the baseline of every comparison, and up to the trained length.",
        tuning="Needs none up to L. Tuned on long text without any scaling, a model learns part of the way.",
        short_text="Nothing.",
        cache=CACHE_OF_STATIC,
        runtimes="The checkpoint as it is; every runtime reads it.",
        measured="builtin:tiny at 4 L: perplexity 26.30 against 9.10 at L, and no passkey of 25; "
        "after 150 steps of tuning on long text 18 of 25.",
    )

    def frequencies(self, geometry: RopeGeometry, seq_len: int | None = None) -> RopeFrequencies:
        return RopeFrequencies(trained_inv_freq(geometry))

    def native_config(self, geometry: RopeGeometry) -> RopeConfigPatch:
        rope_parameters = {"rope_type": "default", "rope_theta": geometry.rope_theta}
        return RopeConfigPatch(rope_parameters, geometry.original_max_position_embeddings)

    @classmethod
    def from_native(cls, rope_parameters: dict[str, Any], geometry: RopeGeometry) -> Self | None:
        is_as_trained = rope_parameters.get("rope_theta", geometry.rope_theta) == geometry.rope_theta
        return cls() if rope_parameters["rope_type"] == "default" and is_as_trained else None
