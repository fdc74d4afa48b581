"""YaRN as every runtime computes it: a ramp in the dimension index, and a sharper attention."""

from __future__ import annotations

import math
from typing import Any

from pydantic import Field, model_validator
from typing_extensions import Self

from ropectl.rope.config_patch import RopeConfigPatch
from ropectl.rope.derived_value import DerivedValue
from ropectl.rope.frequencies import RopeFrequencies, blend, clamp_unit, correction_dim, yarn_attention_factor
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.guide import CACHE_OF_STATIC, MethodGuide
from ropectl.rope.method import Reference, ScalingMethod, factor_field

#: Widens an empty ramp, as transformers and the authors' code do, so that its slope is finite.
EMPTY_RAMP_WIDTH = 0.001


def correction_range(geometry: RopeGeometry, beta_fast: float, beta_slow: float, truncate: bool) -> tuple[float, float]:
    """Returns the pair indices between which the ramp runs.

    The lower end is at least 0, the upper at most d - 1 (not d/2 - 1): for long trained lengths with a
    small base the last pairs then stay partly as trained, in all runtimes.

    Args:
        geometry: The model's rotary geometry.
        beta_fast: Rotations within L at the lower end.
        beta_slow: Rotations within L at the upper end.
        truncate: Whether to round outwards to whole indices.
    """
    low, high = correction_dim(beta_fast, geometry), correction_dim(beta_slow, geometry)
    if truncate:
        low, high = math.floor(low), math.ceil(high)
    return max(low, 0), min(high, geometry.rotary_dim - 1)


def blend_by_index(
    geometry: RopeGeometry, factor: float, beta_fast: float, beta_slow: float, truncate: bool
) -> tuple[float, ...]:
    """Returns frequencies kept below the ramp, divided by ``factor`` above it; the ramp variable is the pair index i."""
    low, high = correction_range(geometry, beta_fast, beta_slow, truncate)
    if low == high:
        high += EMPTY_RAMP_WIDTH
    return blend(geometry, factor, [1.0 - clamp_unit((i - low) / (high - low)) for i in range(geometry.num_pairs)])


class Yarn(ScalingMethod):
    """NTK-by-parts frequencies, and cos and sin multiplied by A = 0.1 ln s + 1, which sharpens attention.

    With equal betas, as Kimi K2 has them, the ramp is a step, or one pair wide where it is rounded outwards.
    """

    name = "yarn"
    title = "YaRN"
    formula = (
        "inv_freq_i = (1-g_i) th_i/s + g_i th_i, g_i = 1 - clamp((i - lo)/(hi - lo), 0, 1), "
        "lo = floor(c(beta_fast)), hi = ceil(c(beta_slow)); A = 0.1 ln s + 1"
    )
    reference = Reference("YaRN", arxiv="2309.00071")
    native = "yarn"
    guide = MethodGuide(
        fast="As trained, if they turn more than beta_fast = 32 times within L.",
        slow="Divided by s, if they turn fewer than beta_slow = 1 times within L: no unseen angle.",
        use="Untuned for a few times the trained length, and with a short training further.",
        tuning="Works untuned; the paper tunes for 400 steps, which removes the price on short text.",
        short_text="Small to medium; part of it is the attention factor, which sharpens attention at every length.",
        cache=CACHE_OF_STATIC,
        runtimes="Stock type yarn in all of them. Old versions of transformers take the ramp or the factor from "
        "max_position_embeddings; llama.cpp and sglang do not read an explicit attention_factor. patch writes what each reads.",
        measured="builtin:tiny, factor 4: worst change of perplexity at 256 and 512 tokens +10.8 % untuned, -5.3 % after 150 steps; 25 of 25 passkeys at 4 L "
        "both times. SmolLM2-135M, factor 2, untuned: +3.2 % at 8192 tokens, and text modelled at 16384 tokens as at 8192.",
    )

    factor: float = factor_field()
    beta_fast: float = Field(
        32.0, gt=0, description="pairs with more turns in L stay as trained", json_schema_extra={"unit": "rotations"}
    )
    beta_slow: float = Field(
        1.0, gt=0, description="pairs with fewer turns in L are divided by s", json_schema_extra={"unit": "rotations"}
    )
    attention_factor: float | None = Field(
        None, gt=0, description="final A on cos and sin, instead of the formula", json_schema_extra={"unit": "1"}
    )
    mscale: float | None = Field(
        None,
        gt=0,
        description="with mscale_all_dim: A = m(mscale)/m(mscale_all_dim), m(x) = 0.1 x ln s + 1",
        json_schema_extra={"unit": "1"},
    )
    mscale_all_dim: float | None = Field(None, gt=0, description="see mscale", json_schema_extra={"unit": "1"})
    truncate: bool = Field(True, description="round the ramp outwards to whole pair indices")

    @model_validator(mode="after")
    def _check_together(self) -> Yarn:
        if self.beta_fast < self.beta_slow:
            raise ValueError(f"beta_fast = {self.beta_fast:g} must not be less than beta_slow = {self.beta_slow:g}.")
        if (self.mscale is None) != (self.mscale_all_dim is None):
            raise ValueError("mscale and mscale_all_dim have an effect only together; give both or neither.")
        return self

    def attention(self) -> float:
        """Returns A: the explicit value as it is, else the ratio of the mscales, else the paper's formula."""
        if self.attention_factor is not None:
            return self.attention_factor
        if self.mscale is not None and self.mscale_all_dim is not None:
            return yarn_attention_factor(self.factor, self.mscale) / yarn_attention_factor(
                self.factor, self.mscale_all_dim
            )
        return yarn_attention_factor(self.factor)

    def frequencies(self, geometry: RopeGeometry, seq_len: int | None = None) -> RopeFrequencies:
        inv_freq = blend_by_index(geometry, self.factor, self.beta_fast, self.beta_slow, self.truncate)
        return RopeFrequencies(inv_freq, self.attention())

    def derived(self, geometry: RopeGeometry) -> dict[str, DerivedValue]:
        low, high = correction_range(geometry, self.beta_fast, self.beta_slow, self.truncate)
        return {
            "ramp_pairs": DerivedValue(
                [low, high], "pairs", "as trained up to the first, divided by s from the last on"
            )
        }

    def native_config(self, geometry: RopeGeometry) -> RopeConfigPatch:
        rope_parameters: dict[str, Any] = {
            "rope_type": "yarn",
            "rope_theta": geometry.rope_theta,
            **self.model_dump(exclude_none=True, exclude_defaults=True),
            "factor": self.factor,
            "original_max_position_embeddings": geometry.original_max_position_embeddings,
        }
        return RopeConfigPatch(rope_parameters, self.target_length(geometry), self._hints())

    def _hints(self) -> dict[str, Any]:
        """Returns keys with which vLLM before mid-2026 and sglang apply an explicit attention factor, which they do not read."""
        if self.attention_factor is None or self.mscale is not None:
            return {}
        if self.attention_factor == 1.0:
            return {"mscale": 1.0, "mscale_all_dim": 1.0}
        return {"attn_factor": self.attention_factor / yarn_attention_factor(self.factor)}

    @classmethod
    def from_native(cls, rope_parameters: dict[str, Any], geometry: RopeGeometry) -> Self | None:
        if rope_parameters["rope_type"] != "yarn":
            return None
        given = {name: rope_parameters[name] for name in cls.model_fields if rope_parameters.get(name) is not None}
        if not (given.get("mscale") and given.get("mscale_all_dim")):  # runtimes read the two together or not at all
            given = {name: value for name, value in given.items() if not name.startswith("mscale")}
        if given.get("attention_factor") == given.get("mscale") == given.get("mscale_all_dim") == 1.0:
            given = {name: value for name, value in given.items() if not name.startswith("mscale")}  # as _hints wrote
        return cls.create(given)
