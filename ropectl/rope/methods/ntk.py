"""NTK-aware scaling: one larger base, chosen so that the slowest pair is interpolated by exactly s."""

from __future__ import annotations

from ropectl.errors import MethodError
from ropectl.rope.config_patch import RopeConfigPatch
from ropectl.rope.frequencies import RopeFrequencies, rebased_inv_freq
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.guide import CACHE_OF_STATIC, MethodGuide
from ropectl.rope.method import Reference, ScalingMethod, factor_field


def ntk_base(geometry: RopeGeometry, factor: float) -> float:
    """Returns b * s^(d / (d - 2)), by which the last pair is slowed by s.

    Where only the first k pairs turn, pair k - 1 is the slowest, and the exponent d / (2k - 2).

    Raises:
        MethodError: Where one pair turns: there is no second one to spread the change over.
    """
    if geometry.rotary_dim == 2:
        raise MethodError("NTK-aware scaling needs a rotary_dim of at least 4; this model has 2.")
    if geometry.turning_pairs == 1:
        raise MethodError("NTK-aware scaling needs at least 2 pairs that turn; in this model 1 does.")
    return float(geometry.rope_theta * factor ** (geometry.rotary_dim / (2 * geometry.turning_pairs - 2)))


class NtkAware(ScalingMethod):
    """Leaves the fastest pair alone and slows the others more the slower they are, the last one by s.

    Critical pairs above the last are slowed by less than s, so the usable length ends before s * L.
    """

    name = "ntk"
    title = "NTK-aware scaling"
    formula = "inv_freq_i = b'^(-2i/d), b' = b * s^(d/(d-2)); the divisor of pair i is s^(2i/(d-2))"
    reference = Reference("NTK-aware scaled RoPE, described in YaRN", arxiv="2309.00071")
    native = "default with another rope_theta"
    guide = MethodGuide(
        fast="The fastest pair keeps its frequency, the next ones nearly.",
        slow="The last pair is slowed by exactly s; critical pairs before it by less, so they pass their trained angles "
        "before s * L.",
        use="Untuned and for modest extension, with a factor above the one that is wanted; or before a short training.",
        tuning="Works untuned up to the length that it computes. Training removes that limit.",
        short_text="Small to medium.",
        cache=CACHE_OF_STATIC,
        runtimes="Only rope_theta changes: every runtime reads it. vLLM's own type ntk is another formula.",
        measured="builtin:tiny, factor 4: worst change of perplexity at 256 and 512 tokens +5.0 % untuned, and 18 of 25 passkeys at 4 L, past the 1072 tokens "
        "that it computes; after 150 steps -5.2 % and 25 of 25.",
    )

    factor: float = factor_field()

    def frequencies(self, geometry: RopeGeometry, seq_len: int | None = None) -> RopeFrequencies:
        return RopeFrequencies(rebased_inv_freq(geometry, ntk_base(geometry, self.factor)))

    def native_config(self, geometry: RopeGeometry) -> RopeConfigPatch:
        rope_parameters = {"rope_type": "default", "rope_theta": ntk_base(geometry, self.factor)}
        return RopeConfigPatch(rope_parameters, self.target_length(geometry))
