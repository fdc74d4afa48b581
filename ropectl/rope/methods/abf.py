"""Adjusted Base Frequency: another rope_theta, nothing else."""

from __future__ import annotations

import math
from typing import Any

from pydantic import Field
from typing_extensions import Self

from ropectl.errors import MethodError
from ropectl.rope.config_patch import RopeConfigPatch
from ropectl.rope.frequencies import RopeFrequencies, reach_tokens, rebased_inv_freq
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.guide import CACHE_OF_STATIC, MethodGuide
from ropectl.rope.method import Reference, ScalingMethod


def critical_base(geometry: RopeGeometry, length: int) -> float:
    """Returns the base whose critical pair completes its turn within ``length`` instead of L tokens.

    b' = b^(ln(L'/2pi) / ln(L/2pi)): the critical base of Scaling Laws of RoPE-based Extrapolation
    (arXiv 2310.05209), with the pair index left real-valued.

    Raises:
        MethodError: If the trained length is too short for any pair to complete a turn.
    """
    turns = geometry.original_max_position_embeddings / (2 * math.pi)
    if turns <= 1:
        raise MethodError(
            f"No critical base exists for a trained length of {geometry.original_max_position_embeddings}."
        )
    exponent: float = math.log(length / (2 * math.pi)) / math.log(turns)
    return float(geometry.rope_theta**exponent)


class AdjustedBaseFrequency(ScalingMethod):
    """Trains or runs with a larger base: the slower a pair, the more it is slowed further."""

    name = "abf"
    title = "Adjusted Base Frequency"
    formula = "inv_freq_i = b'^(-2i/d); with a factor only: b' = b^(ln(sL/2pi) / ln(L/2pi))"
    reference = Reference("Effective Long-Context Scaling of Foundation Models", arxiv="2309.16039")
    native = "default with another rope_theta"
    guide = MethodGuide(
        fast="The fastest pair keeps its frequency, the others are slowed a little, more the slower they are.",
        slow="Slowed most. With a factor only, the new base lets the pair that just completed a turn in L complete one in s * L.",
        use="Before long continued training, as it is published; and where a runtime reads nothing but a base.",
        tuning="Works untuned at a price on short text. It is published as a setting for long continued pre-training.",
        short_text="Pairs that carry ordinary text are slowed too: more than under YaRN or Llama 3.1's form.",
        cache=CACHE_OF_STATIC,
        runtimes="Only rope_theta changes: every runtime reads it (llama.cpp: --rope-freq-base).",
        measured="builtin:tiny, factor 4, untuned: worst change of perplexity at 256 and 512 tokens +11.2 %, 25 of 25 passkeys at 4 L.",
    )

    rope_theta: float = Field(gt=1.0, description="the new base b'", json_schema_extra={"unit": "1"})

    @classmethod
    def fill_factor(cls, parameters: dict[str, Any], factor: float, geometry: RopeGeometry) -> dict[str, Any]:
        parameters.setdefault("rope_theta", round(critical_base(geometry, geometry.target_length(factor)), 1))
        return parameters

    @classmethod
    def check_written(cls, parameters: dict[str, Any], geometry: RopeGeometry) -> None:
        try:
            is_trained = float(parameters.get("rope_theta", math.nan)) == geometry.rope_theta
        except (TypeError, ValueError):  # no number at all, which the field refuses
            return
        if is_trained:
            raise MethodError(
                f"abf: rope_theta = {geometry.rope_theta:g} is the base that the model was trained with: it changes nothing.",
                f"Give another, such as abf:rope_theta={4 * geometry.rope_theta:g}, or only abf with --factor 4, which decides it.",
            )

    def frequencies(self, geometry: RopeGeometry, seq_len: int | None = None) -> RopeFrequencies:
        return RopeFrequencies(rebased_inv_freq(geometry, self.rope_theta))

    def target_length(self, geometry: RopeGeometry) -> int:
        """Returns the reach of the frequencies, since a base alone names no target."""
        trained = geometry.original_max_position_embeddings
        return max(trained, reach_tokens(geometry, self.frequencies(geometry)) or trained)

    def native_config(self, geometry: RopeGeometry) -> RopeConfigPatch:
        rope_parameters = {"rope_type": "default", "rope_theta": self.rope_theta}
        return RopeConfigPatch(rope_parameters, self.target_length(geometry))

    @classmethod
    def from_native(cls, rope_parameters: dict[str, Any], geometry: RopeGeometry) -> Self | None:
        """Returns the method for a base other than the trained one, if the geometry was not read from the same block."""
        base = rope_parameters.get("rope_theta", geometry.rope_theta)
        if rope_parameters["rope_type"] != "default" or base == geometry.rope_theta:
            return None
        return cls.create({"rope_theta": base})
