"""Dynamic YaRN: YaRN by the factor that the length at hand needs."""

from __future__ import annotations

from pydantic import Field, model_validator

from ropectl.rope.frequencies import RopeFrequencies
from ropectl.rope.geometry import RopeGeometry
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
        return Yarn(factor=factor, **self.model_dump())

    def frequencies(self, geometry: RopeGeometry, seq_len: int | None = None) -> RopeFrequencies:
        factor = max(1.0, (seq_len or 0) / geometry.original_max_position_embeddings)
        return self._yarn(factor).frequencies(geometry)
