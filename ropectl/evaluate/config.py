"""The settings of measurements, declared once for the command line, YAML files and the Python API."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from ropectl.evaluate.shared_config import (
    MODELS_TOLERANCE,
    USES_ACCURACY,
    VERDICT,
    Chat,
    MeasuredLengths,
    PasskeyGrid,
    TextConfig,
    Trials,
)
from ropectl.hf.model_settings import CHECKPOINT, EXTENT, INPUTS, SCALING, Factor, MethodSpec, MethodSpecs
from ropectl.option import Option, Panel
from ropectl.setting_types import HomePath, Positions, Texts, Tokens


class PerplexityConfig(TextConfig):
    """The settings of ``eval-perplexity``."""

    method: MethodSpec = None
    lengths: MeasuredLengths = ()
    protocol: Annotated[
        str,
        Field(
            description="what is scored: prefix (first N tokens), sliding (windows of N), overlapping (all of each window), "
            "tail (the same last tokens, given N) or key-tokens (those that gain from a long context)"
        ),
        Option(Panel.protocol, "NAME", offers="ropectl.evaluate.perplexity.find_protocol:all_protocols"),
    ] = "prefix"
    preset: Annotated[
        str | None,
        Field(description="measure as pi, yarn or longlora did: protocol, stride and BOS of their numbers"),
        Option(Panel.protocol, "NAME", default="none", offers="ropectl.evaluate.perplexity.presets:PRESETS"),
    ] = None
    stride: Annotated[
        int | None,
        Field(ge=1, description="tokens from one window to the next [tokens]"),
        Option(Panel.protocol, "S", default="256, or half the shortest length"),
    ] = None
    document_tokens: Annotated[
        Tokens | None,
        Field(ge=2, description="most tokens of a document in moving windows [tokens]"),
        Option(Panel.protocol, "N", default="twice the longest length"),
    ] = None
    short_context: Annotated[
        Tokens | None,
        Field(ge=2, description="short context that key tokens are chosen against [tokens]"),
        Option(Panel.protocol, "K", default="the trained length, or half of N"),
    ] = None
    key_model: Annotated[
        str | None,
        Field(description="model that chooses the key tokens"),
        Option(Panel.protocol, "MODEL", default="the measured one", offers="models"),
        INPUTS,
    ] = None
    tolerance: Annotated[
        float | None,
        Field(ge=0, description="tail: loss above the unscaled model's that still counts as modelled [nats a token]"),
        Option(Panel.protocol, "NATS", default=f"{MODELS_TOLERANCE:g}"),
        VERDICT,
    ] = None
    fail_above: Annotated[
        float | None,
        Field(gt=0, description="exit with code 3 if a perplexity is above this"),
        Option(Panel.protocol, "PPL"),
        VERDICT,
    ] = None


class PasskeyConfig(PasskeyGrid):
    """The settings of ``eval-passkey``."""

    method: MethodSpec = None
    lengths: MeasuredLengths = ()
    trials: Trials = 10
    grid: Annotated[
        Literal["depth", "position"],
        Field(description="where needles are: depth (at shares of each length) or position (at fixed tokens)"),
        Option(Panel.measurement, "KIND"),
    ] = "depth"
    needle_positions: Annotated[
        Positions,
        Field(description="needle positions of --grid position, as lengths are written; repeatable [tokens]"),
        Option(
            Panel.measurement,
            "N",
            ("--position",),
            default="0, half the shortest length, and each length but the longest",
        ),
    ] = ()
    generate: Annotated[
        bool,
        Field(description="decode greedily too, and count texts whose first number is the key"),
        Option(Panel.measurement),
    ] = False
    chat: Chat = False
    min_accuracy: Annotated[
        float | None,
        Field(gt=0, le=1, description="exit with code 3 where a length's accuracy is below, in (0, 1]"),
        Option(Panel.measurement, "A"),
        VERDICT,
    ] = None


class CompareConfig(TextConfig, PasskeyGrid):
    """The settings of ``compare-methods``."""

    factor: Annotated[Factor, Option(Panel.scaling, "S", is_repeated=True)] = None
    others: Annotated[
        Texts,
        Field(description="further models, each measured as it is next to the first"),
        Option(goes_on="model"),
        CHECKPOINT,
    ] = ()
    methods: Annotated[MethodSpecs, Option(Panel.scaling, "SPEC", ("--method", "-m"), "every method", "methods")] = ()
    factors: Annotated[
        tuple[Annotated[float, Field(ge=1)], ...],
        Field(description="several extension factors s = L'/L, each with every method that does not name its own"),
        SCALING,
        EXTENT,
    ] = ()
    lengths: MeasuredLengths = ()
    passkey: Annotated[
        bool, Field(description="measure passkey retrieval too, which is the default"), Option(Panel.measurement)
    ] = True
    tolerance: Annotated[
        float,
        Field(ge=0, description="loss above the unscaled model's that still counts as modelled [nats a token]"),
        Option(Panel.measurement, "NATS"),
        VERDICT,
    ] = MODELS_TOLERANCE
    against: Annotated[
        Texts,
        Field(description="methods (or further models) that the others are compared with, in pairs; repeatable"),
        Option(Panel.measurement, "METHOD", default="the unscaled model and the pick", offers="methods"),
        VERDICT,
    ] = ()
    max_short_regression: Annotated[
        float | None,
        Field(
            ge=0,
            description="exit with code 3 if the pick's perplexity rises by more than this share at a measured length up to L",
        ),
        Option(Panel.gates, "R"),
        VERDICT,
    ] = None
    min_accuracy: Annotated[
        float | None,
        Field(
            gt=0,
            le=1,
            description="exit with code 3 if the pick retrieves a smaller share of passkeys at a measured length up to the target; it "
            f"then counts as used from there on, else from {USES_ACCURACY:g}",
        ),
        Option(Panel.gates, "A"),
        VERDICT,
    ] = None
    fail_above: Annotated[
        float | None,
        Field(
            gt=0,
            description="exit with code 3 if the pick's perplexity is above this at a measured length up to the target",
        ),
        Option(Panel.gates, "PPL"),
        VERDICT,
    ] = None
    finetune: Annotated[
        HomePath | None,
        Field(
            description="train every method equally, by the settings of finetune in this YAML file, and measure it again"
        ),
        Option(Panel.training, "FILE"),
    ] = None

    @model_validator(mode="before")
    @classmethod
    def _one_factor_or_several(cls, values: Any) -> Any:
        """Reads ``factor``, which may be a list; a list of one is the same as its one factor."""
        given = values.get("factor") if isinstance(values, dict) else None
        if not isinstance(given, list | tuple):
            return values
        rest = {name: value for name, value in values.items() if name != "factor"}
        return {**rest, **({"factor": given[0]} if len(given) == 1 else {"factors": tuple(given)})}

    @property
    def all_factors(self) -> tuple[float, ...]:
        """The extension factors that were asked for."""
        return self.factors or ((self.factor,) if self.factor is not None else ())

    @property
    def uses_accuracy(self) -> float:
        """Passkey accuracy that counts as used."""
        return USES_ACCURACY if self.min_accuracy is None else self.min_accuracy
