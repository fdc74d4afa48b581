"""No scaling: the baseline takes the same path as every method."""

from __future__ import annotations

from typing import Any

from typing_extensions import Self

from ropectl.rope.frequencies import RopeFrequencies, trained_inv_freq
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.method import Reference, RopeConfigPatch, ScalingMethod


class NoScaling(ScalingMethod):
    """RoPE as trained. Positions past the trained length turn slow pairs into angles never seen."""

    name = "none"
    title = "RoPE as trained"
    formula = "inv_freq_i = b^(-2i/d)"
    reference = Reference("RoFormer", arxiv="2104.09864")
    native = "default"

    def frequencies(self, geometry: RopeGeometry, seq_len: int | None = None) -> RopeFrequencies:
        return RopeFrequencies(trained_inv_freq(geometry))

    def native_config(self, geometry: RopeGeometry) -> RopeConfigPatch:
        rope_parameters = {"rope_type": "default", "rope_theta": geometry.rope_theta}
        return RopeConfigPatch(rope_parameters, geometry.original_max_position_embeddings)

    @classmethod
    def from_native(cls, rope_parameters: dict[str, Any], geometry: RopeGeometry) -> Self | None:
        is_as_trained = rope_parameters.get("rope_theta", geometry.rope_theta) == geometry.rope_theta
        return cls() if rope_parameters["rope_type"] == "default" and is_as_trained else None
