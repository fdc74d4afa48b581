"""Position Interpolation: all positions squeezed into the trained range."""

from __future__ import annotations

from typing import Any

from typing_extensions import Self

from ropectl.rope.frequencies import RopeFrequencies, trained_inv_freq
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.method import Reference, RopeConfigPatch, ScalingMethod, factor_field


class PositionInterpolation(ScalingMethod):
    """Divides every frequency by s. No unseen angle remains, but neighbours move s times closer together."""

    name = "pi"
    title = "Position Interpolation (linear)"
    formula = "inv_freq_i = th_i / s"
    reference = Reference("Extending Context Window via Position Interpolation", arxiv="2306.15595")
    native = "linear"

    factor: float = factor_field()

    def frequencies(self, geometry: RopeGeometry, seq_len: int | None = None) -> RopeFrequencies:
        return RopeFrequencies(tuple(trained / self.factor for trained in trained_inv_freq(geometry)))

    def native_config(self, geometry: RopeGeometry) -> RopeConfigPatch:
        # vLLM and sglang multiply max_position_embeddings by the factor themselves, so it stays at L.
        rope_parameters = {"rope_type": "linear", "rope_theta": geometry.rope_theta, "factor": self.factor}
        return RopeConfigPatch(rope_parameters, geometry.original_max_position_embeddings)

    @classmethod
    def from_native(cls, rope_parameters: dict[str, Any], geometry: RopeGeometry) -> Self | None:
        if rope_parameters["rope_type"] != "linear":
            return None
        return cls.create({"factor": rope_parameters.get("factor")})
