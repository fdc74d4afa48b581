"""LongRoPE: a divisor of its own for every pair, found by search."""

from __future__ import annotations

import math
from typing import Any

from pydantic import Field, model_validator
from typing_extensions import Self

from ropectl.errors import MethodError
from ropectl.rope.config_patch import RopeConfigPatch
from ropectl.rope.derived_value import DerivedValue
from ropectl.rope.frequencies import RopeFrequencies, trained_inv_freq
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.guide import MethodGuide
from ropectl.rope.method import Reference, ScalingMethod, factor_field

Divisors = tuple[float, ...]


class LongRope(ScalingMethod):
    """Given divisors for sequences past the trained length, and others up to it.

    With ``long_factor`` alone the one list serves every length.
    """

    name = "longrope"
    title = "LongRoPE (given divisors)"
    formula = "inv_freq_i = th_i / f_i, f = long_factor for n > L else short_factor; A = sqrt(1 + ln s / ln L)"
    reference = Reference("LongRoPE", arxiv="2402.13753")
    native = "longrope"
    varies_with_length = True
    guide = MethodGuide(
        fast="Divided by the numbers that you give.",
        slow="Divided by the numbers that you give.",
        use="With divisors that a search found for this model, or those that came with a checkpoint. ropectl does not search.",
        tuning="The paper tunes after its search; divisors for up to L (short_factor) keep short text as it was.",
        short_text="With a short_factor of ones none but the attention factor; else that of the divisors.",
        cache="With two lists the frequencies change at L, in transformers for the whole batch at once: keys cached before that "
        "keep the short list's. With one list nothing changes.",
        runtimes="Stock type longrope. vLLM and sglang derive the attention factor from the lengths, vLLM decides once per "
        "server which list holds; llama.cpp's converter drops the lists for LLaMA. patch says what each will do.",
    )

    factor: float = factor_field()
    long_factor: Divisors = Field(
        description="divisor of each pair past L: d/2 numbers joined by colons, or @FILE.json",
        json_schema_extra={"unit": "1"},
    )
    short_factor: Divisors | None = Field(
        None, description="divisor of each pair up to L; as long_factor if not given", json_schema_extra={"unit": "1"}
    )
    attention_factor: float | None = Field(
        None, gt=0, description="final A on cos and sin, instead of the formula", json_schema_extra={"unit": "1"}
    )

    @model_validator(mode="after")
    def _check_lists(self) -> LongRope:
        for name in ("long_factor", "short_factor"):
            values = getattr(self, name) or ()
            if any(value <= 0 for value in values):
                raise ValueError(f"{name} = {min(values):g} is not possible: every divisor must be greater than 0.")
        return self

    @property
    def depends_on_seq_len(self) -> bool:
        return self.short_factor not in (None, self.long_factor)

    def _divisors(self, name: str, geometry: RopeGeometry) -> Divisors:
        values = getattr(self, name) or self.long_factor
        if len(values) != geometry.num_pairs:
            raise MethodError(
                f"longrope: {name} has {len(values)} values, but this model rotates {geometry.num_pairs} pairs "
                f"(rotary_dim {geometry.rotary_dim}); it needs one value per pair."
            )
        return values

    def attention(self, geometry: RopeGeometry) -> float:
        """Returns A: the explicit value, else sqrt(1 + ln s / ln L), which keeps the variance of the logits."""
        if self.attention_factor is not None:
            return self.attention_factor
        if self.factor <= 1:
            return 1.0
        return math.sqrt(1 + math.log(self.factor) / math.log(geometry.original_max_position_embeddings))

    def frequencies(self, geometry: RopeGeometry, seq_len: int | None = None) -> RopeFrequencies:
        is_long = (seq_len or 0) > geometry.original_max_position_embeddings
        values = self._divisors("long_factor" if is_long else "short_factor", geometry)
        inv_freq = tuple(trained / value for trained, value in zip(trained_inv_freq(geometry), values, strict=True))
        return RopeFrequencies(inv_freq, self.attention(geometry))

    def derived(self, geometry: RopeGeometry) -> dict[str, DerivedValue]:
        found = {}
        for name in ("long_factor", "short_factor"):
            values = self._divisors(name, geometry)
            if name == "long_factor" or self.depends_on_seq_len:
                meaning = f"least and largest of {len(values)}"
                found[f"{name}s"] = DerivedValue([min(values), max(values)], "1", meaning)
        return found

    def native_config(self, geometry: RopeGeometry) -> RopeConfigPatch:
        rope_parameters: dict[str, Any] = {
            "rope_type": "longrope",
            "rope_theta": geometry.rope_theta,
            "factor": self.factor,
            "short_factor": list(self._divisors("short_factor", geometry)),
            "long_factor": list(self._divisors("long_factor", geometry)),
            "original_max_position_embeddings": geometry.original_max_position_embeddings,
            "attention_factor": self.attention(geometry),
        }
        return RopeConfigPatch(rope_parameters, self.target_length(geometry))

    @classmethod
    def from_native(cls, rope_parameters: dict[str, Any], geometry: RopeGeometry) -> Self | None:
        if rope_parameters["rope_type"] != "longrope":
            return None
        given = {name: rope_parameters[name] for name in cls.model_fields if rope_parameters.get(name) is not None}
        if given.get("short_factor") == given.get("long_factor"):  # one set of divisors for every length
            given.pop("short_factor", None)
        return cls.create({"factor": 1.0, **given})
