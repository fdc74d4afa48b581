"""Dynamic YaRN: YaRN by the factor that the length at hand needs."""

from __future__ import annotations

from pydantic import Field, model_validator

from ropectl.rope.derived_value import DerivedValue
from ropectl.rope.frequencies import RopeFrequencies
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.guide import MethodGuide
from ropectl.rope.method import Reference, ScalingMethod
from ropectl.rope.methods.yarn import Yarn


class DynamicYarn(ScalingMethod):
    """Exactly the trained model up to L; past it, YaRN with s(n) = n/L, attention factor included."""

    name = "dynamic-yarn"
    title = "Dynamic YaRN"
    formula = "YaRN with s(n) = max(1, n/L)"
    reference = Reference("YaRN, section 3.3", arxiv="2309.00071")
    native = "none; freeze one length"
    varies_with_length = True
    guide = MethodGuide(
        fast="As trained at every length.",
        slow="As trained up to L; past it divided by what the sequence needs, n/L.",
        use="Untuned, where short text must not change at all and long text has to be found again.",
        tuning="Meant to be used untuned. finetune trains it frozen at one length.",
        short_text="None up to L: it is the trained model.",
        cache="Frequencies follow the length, so keys in the cache keep those of the step that wrote them: generation past L "
        "drifts from a fresh pass. ropectl measures it frozen at each length; to serve it, freeze one length.",
        runtimes="No runtime has a type for it: patch with --freeze-at N writes the frequencies of one length, which all load.",
        measured="builtin:tiny at 4 L: worst change of perplexity at 256 and 512 tokens +0.0 %, 25 of 25 passkeys.",
    )

    beta_fast: float = Field(
        32.0, gt=0, description="pairs with more turns in L stay as trained", json_schema_extra={"unit": "rotations"}
    )
    beta_slow: float = Field(
        1.0, gt=0, description="pairs with fewer turns in L are divided by s", json_schema_extra={"unit": "rotations"}
    )
    truncate: bool = Field(True, description="round the ramp outwards to whole pair indices")

    @model_validator(mode="after")
    def _check_as_yarn(self) -> DynamicYarn:
        self._yarn(1.0)
        return self

    def _yarn(self, factor: float) -> Yarn:
        return Yarn.create({"factor": factor, **self.model_dump()})

    def derived(self, geometry: RopeGeometry) -> dict[str, DerivedValue]:
        return self._yarn(1.0).derived(geometry)

    def frequencies(self, geometry: RopeGeometry, seq_len: int | None = None) -> RopeFrequencies:
        factor = max(1.0, (seq_len or 0) / geometry.original_max_position_embeddings)
        return self._yarn(factor).frequencies(geometry)
