"""Dynamic NTK: the NTK-aware base of the length at hand."""

from __future__ import annotations

from typing import Any

from pydantic import Field
from typing_extensions import Self

from ropectl.rope.config_patch import RopeConfigPatch
from ropectl.rope.frequencies import RopeFrequencies, rebased_inv_freq
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.guide import MethodGuide
from ropectl.rope.method import MAX_FACTOR, Reference, ScalingMethod
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
    guide = MethodGuide(
        fast="As trained up to L. Past it the fastest pair stays, the others are slowed by what the sequence needs.",
        slow="As trained up to L. Past it slowed by up to n/L (with inner_factor 1), critical pairs before the last by less.",
        use="Untuned, where short text must not change at all and the length at hand is known.",
        tuning="Meant to be used untuned. finetune trains it frozen at one length.",
        short_text="None up to L: it is the trained model.",
        cache="Frequencies follow the length, so keys in the cache keep those of the step that wrote them: generation past L "
        "drifts from a fresh pass. ropectl measures it frozen at each length; to serve it, freeze one length.",
        runtimes="Stock type dynamic in transformers only, where results depend on the order of inputs. Others compute "
        "something else: patch with --freeze-at N.",
        measured="builtin:tiny at 4 L: worst change of perplexity at 256 and 512 tokens +0.0 %, 18 of 25 passkeys.",
    )

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
        """Returns the base of one length, which every runtime reads."""
        scale = self._scale(geometry, seq_len)
        rope_parameters = {"rope_type": "default", "rope_theta": ntk_base(geometry, scale)}
        return RopeConfigPatch(rope_parameters, max(seq_len, geometry.original_max_position_embeddings))

    @classmethod
    def from_native(cls, rope_parameters: dict[str, Any], geometry: RopeGeometry) -> Self | None:
        if rope_parameters["rope_type"] != "dynamic":
            return None
        return cls.create({"inner_factor": rope_parameters.get("factor")})
