"""Dynamic NTK: the NTK-aware base of the length at hand."""

from __future__ import annotations

from typing import Any

from pydantic import Field
from typing_extensions import Self

from ropectl.rope.frequencies import RopeFrequencies, rebased_inv_freq
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.method import MAX_FACTOR, Reference, RopeConfigPatch, ScalingMethod
from ropectl.rope.methods.ntk import ntk_base


class DynamicNtk(ScalingMethod):
    """Exactly the trained model up to L; past it, NTK-aware scaling by what the sequence at hand needs.

    ``inner_factor`` f = 1 is the paper's form, s(n) = max(1, n/L). transformers calls f ``factor``; it is
    not an extension factor: with f = s the effective scale at n = sL is s^2 - s + 1.
    """

    name = "dynamic-ntk"
    title = "Dynamic NTK"
    formula = "inv_freq_i = b(n)^(-2i/d), b(n) = b * (f n/L - (f - 1))^(d/(d-2)) for n > L, else b"
    reference = Reference("Dynamically scaled RoPE, described in YaRN", arxiv="2309.00071")
    native = "dynamic"
    varies_with_length = True

    inner_factor: float = Field(
        1.0, ge=1.0, le=MAX_FACTOR, description="f; how fast the base grows past L", json_schema_extra={"unit": "1"}
    )

    def frequencies(self, geometry: RopeGeometry, seq_len: int | None = None) -> RopeFrequencies:
        scale = self._scale(geometry, seq_len or 0)
        return RopeFrequencies(rebased_inv_freq(geometry, ntk_base(geometry, scale)))

    def _scale(self, geometry: RopeGeometry, seq_len: int) -> float:
        ratio = seq_len / geometry.original_max_position_embeddings
        return self.inner_factor * ratio - (self.inner_factor - 1) if ratio > 1 else 1.0

    def native_config(self, geometry: RopeGeometry) -> RopeConfigPatch:
        # transformers takes max_position_embeddings for L here: raising it would switch the scaling off.
        rope_parameters = {"rope_type": "dynamic", "rope_theta": geometry.rope_theta, "factor": self.inner_factor}
        return RopeConfigPatch(rope_parameters, geometry.original_max_position_embeddings)

    def frozen_config(self, geometry: RopeGeometry, seq_len: int) -> RopeConfigPatch:
        """One length needs one base, which every runtime reads."""
        scale = self._scale(geometry, seq_len)
        rope_parameters = {"rope_type": "default", "rope_theta": ntk_base(geometry, scale)}
        return RopeConfigPatch(rope_parameters, max(seq_len, geometry.original_max_position_embeddings))

    @classmethod
    def from_native(cls, rope_parameters: dict[str, Any], geometry: RopeGeometry) -> Self | None:
        if rope_parameters["rope_type"] != "dynamic":
            return None
        return cls.create({"inner_factor": rope_parameters.get("factor")})
