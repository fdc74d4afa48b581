"""Position Interpolation: all positions squeezed into the trained range."""

from __future__ import annotations

from typing import Any

from typing_extensions import Self

from ropectl.rope.config_patch import RopeConfigPatch
from ropectl.rope.frequencies import RopeFrequencies, trained_inv_freq
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.guide import CACHE_OF_STATIC, MethodGuide
from ropectl.rope.method import Reference, ScalingMethod, factor_field


class PositionInterpolation(ScalingMethod):
    """Divides every frequency by s. No unseen angle remains, but neighbours move s times closer together."""

    name = "pi"
    title = "Position Interpolation (linear)"
    formula = "inv_freq_i = th_i / s"
    reference = Reference("Extending Context Window via Position Interpolation", arxiv="2306.15595")
    native = "linear"
    guide = MethodGuide(
        fast="Slowed by s, as all pairs: neighbouring tokens move s times closer together than the model ever saw them.",
        slow="Slowed by s: every angle up to s * L was seen in training.",
        use="With training, where the simplest change is wanted, and as the classic to compare with.",
        tuning="Needed: without it the model reads text whose neighbours lie too close. The paper tunes for about 1000 steps.",
        short_text="The largest of all methods until it is tuned, for fast pairs tell neighbours apart.",
        cache=CACHE_OF_STATIC,
        runtimes="Stock type linear. vLLM and sglang multiply max_position_embeddings by the factor themselves, so the "
        "config keeps L; vLLM takes no integer factor. patch writes both as they have to be.",
        measured="builtin:tiny, factor 4: worst change of perplexity at 256 and 512 tokens +492.0 % untuned and no passkey; after 150 steps +7.4 %, and "
        "12 of 25 passkeys at 4 L.",
    )

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
