"""The scaling of Llama 3.1 and 3.2."""

from __future__ import annotations

from typing import Any

from pydantic import Field, model_validator
from typing_extensions import Self

from ropectl.rope.config_patch import RopeConfigPatch
from ropectl.rope.derived_value import DerivedValue
from ropectl.rope.frequencies import RopeFrequencies
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.guide import CACHE_OF_STATIC, MethodGuide
from ropectl.rope.method import Reference, ScalingMethod, factor_field
from ropectl.rope.methods.ntk_by_parts import blend_by_rotations, ramp_wavelengths


class Llama3(ScalingMethod):
    """NTK-by-parts with a narrower ramp: pairs with more than four turns in the trained length are kept.

    With equal bounds, as Llama 4 Scout has them, the ramp is a step.
    """

    name = "llama3"
    title = "Llama 3.1 scaling"
    formula = "inv_freq_i = (1-g_i) th_i/s + g_i th_i, g_i = clamp((r_i - low)/(high - low), 0, 1)"
    reference = Reference("The Llama 3 Herd of Models", arxiv="2407.21783")
    native = "llama3"
    guide = MethodGuide(
        fast="As trained, if they turn more than high_freq_factor = 4 times within L: more pairs than YaRN keeps.",
        slow="Divided by s, if they turn fewer than low_freq_factor = 1 times within L: no unseen angle.",
        use="Untuned, for the smallest change of short text among the methods that compute the whole target at every length.",
        tuning="Works untuned. The models that ship with it were trained with it.",
        short_text="The smallest of the methods that do not follow the length.",
        cache=CACHE_OF_STATIC,
        runtimes="Stock type llama3: transformers from 4.43, vLLM, sglang; llama.cpp's converter for LLaMA-like models.",
        measured="builtin:tiny, factor 4, untuned: worst change of perplexity at 256 and 512 tokens +4.6 %, 25 of 25 passkeys at 4 L.",
    )

    factor: float = factor_field()
    low_freq_factor: float = Field(
        1.0, gt=0, description="pairs with fewer turns in L are divided by s", json_schema_extra={"unit": "rotations"}
    )
    high_freq_factor: float = Field(
        4.0, gt=0, description="pairs with more turns in L stay as trained", json_schema_extra={"unit": "rotations"}
    )

    @model_validator(mode="after")
    def _check_order(self) -> Llama3:
        if self.high_freq_factor < self.low_freq_factor:
            raise ValueError(
                f"high_freq_factor = {self.high_freq_factor:g} must not be less than low_freq_factor = {self.low_freq_factor:g}."
            )
        return self

    def frequencies(self, geometry: RopeGeometry, seq_len: int | None = None) -> RopeFrequencies:
        return RopeFrequencies(blend_by_rotations(geometry, self.factor, self.low_freq_factor, self.high_freq_factor))

    def derived(self, geometry: RopeGeometry) -> dict[str, DerivedValue]:
        return {"ramp_wavelengths": ramp_wavelengths(geometry, self.low_freq_factor, self.high_freq_factor)}

    def native_config(self, geometry: RopeGeometry) -> RopeConfigPatch:
        rope_parameters: dict[str, Any] = {
            "rope_type": "llama3",
            "rope_theta": geometry.rope_theta,
            **self.model_dump(),
            "original_max_position_embeddings": geometry.original_max_position_embeddings,
        }
        return RopeConfigPatch(rope_parameters, self.target_length(geometry))

    @classmethod
    def from_native(cls, rope_parameters: dict[str, Any], geometry: RopeGeometry) -> Self | None:
        if rope_parameters["rope_type"] != "llama3":
            return None
        return cls.create({name: rope_parameters[name] for name in cls.model_fields if name in rope_parameters})
