"""What can be set for a measurement, declared once: flags, YAML files and the Python API share it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from ropectl.data.sources import source_spellings
from ropectl.hf.model_settings import (
    CHECKPOINT,
    EXTENT,
    SCALING,
    Attention,
    Device,
    Factor,
    MethodSpec,
    MethodSpecs,
    ModelSettings,
    WeightType,
)
from ropectl.hf.run_names import BosPolicy, check_attention, check_device
from ropectl.option import Group, Option, Panel
from ropectl.setting_types import HomePath, Lengths, Positions, Texts, Tokens

DEFAULT_TEXT = "builtin:stdlib"

#: Loss over the unscaled model's that still counts as modelled [nats a token].
MODELS_TOLERANCE = 0.02

#: Share of planted numbers that has to be retrieved for a length to count as used.
USES_ACCURACY = 0.9

VERDICT = Group("limits that verdicts are made with")
PASSKEYS = Group("which passkeys are asked for")

Text = Annotated[
    str,
    Field(description=f"text to measure on: {source_spellings()}"),
    Option(Panel.measurement, "SOURCE", offers="sources"),
]
MeasuredLengths = Annotated[
    Lengths,
    Field(description="lengths: 8k, 2048,4096, 1k..32k (doublings) or 1k..16k/1k (steps); repeatable [tokens]"),
    Option(Panel.measurement, "N", ("--length",), default="half the trained length, and doublings up to the target"),
]
Bos = Annotated[
    BosPolicy,
    Field(
        description="beginning-of-sequence token before each window or document: auto (as the tokenizer does), always, "
        "available (where there is one) or never"
    ),
    Option(Panel.measurement, "WHEN"),
]
Depths = Annotated[
    int,
    Field(ge=1, description="depths of what is asked for, evenly spaced over [0, 1]"),
    Option(Panel.measurement, "N"),
    PASSKEYS,
]
Trials = Annotated[
    int, Field(ge=1, description="prompts per length and depth"), Option(Panel.measurement, "N"), PASSKEYS
]
Seed = Annotated[
    int, Field(description="chooses keys, filler and all else that is drawn"), Option(Panel.measurement, "N")
]
Chat = Annotated[
    bool,
    Field(description="ask in the turns of the tokenizer's chat template (instruct models)"),
    Option(Panel.measurement),
]


def evenly_spaced(depths: int) -> list[float]:
    """Returns so many depths, 0 and 1 included; a single one is the middle."""
    return [0.5] if depths == 1 else [index / (depths - 1) for index in range(depths)]


class ModelConfig(ModelSettings):
    """A model, and how it is loaded and run."""

    dtype: WeightType = "auto"
    device: Device = "auto"
    attention: Attention = None
    bos: Bos = "auto"
    prefill_chunk: Annotated[
        Tokens | None,
        Field(ge=2, description="tokens per forward pass, to save memory [tokens]"),
        Option(Panel.measurement, "N", default="whole windows"),
    ] = None

    def check_typed(self) -> None:
        """Checks device and attention implementation."""
        check_device(self.device)
        check_attention(self.attention, self.trust_remote_code)


class TextConfig(ModelConfig):
    """Which text, and how much of it."""

    text: Text = DEFAULT_TEXT
    documents: Annotated[int, Field(ge=1, description="most documents to score"), Option(Panel.measurement, "N")] = 12
    batch_size: Annotated[
        int, Field(ge=1, description="documents per forward pass"), Option(Panel.measurement, "N")
    ] = 1


class PasskeyGrid(ModelConfig):
    """The grid of passkey trials."""

    depths: Depths = 5
    trials: Trials = 5
    distractors: Annotated[
        int,
        Field(ge=0, le=9, description="other labelled keys in the haystack"),
        Option(Panel.measurement, "N"),
        PASSKEYS,
    ] = 0
    seed: Seed = 0

    def depth_values(self) -> list[float]:
        """Returns the depths, in [0, 1]."""
        return evenly_spaced(self.depths)


class PerplexityConfig(TextConfig):
    """``eval-perplexity``."""

    method: MethodSpec = None
    lengths: MeasuredLengths = ()
    protocol: Annotated[
        str,
        Field(
            description="what is scored: prefix (first N tokens), sliding (windows of N), overlapping (all of each window), "
            "tail (the same last tokens, given N) or key-tokens (those that gain from a long context)"
        ),
        Option(Panel.protocol, "NAME", offers="protocols"),
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
    """``eval-passkey``."""

    method: MethodSpec = None
    lengths: MeasuredLengths = ()
    trials: Trials = 10
    grid: Annotated[
        Literal["depth", "position"],
        Field(description="where needles stand: depth (at shares of each length) or position (at fixed tokens)"),
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
        bool, Field(description="decode the answers greedily too, and compare"), Option(Panel.measurement)
    ] = False
    chat: Chat = False
    min_accuracy: Annotated[
        float | None,
        Field(gt=0, le=1, description="exit with code 3 where a length's accuracy is below, in (0, 1]"),
        Option(Panel.measurement, "A"),
        VERDICT,
    ] = None


class CompareConfig(TextConfig, PasskeyGrid):
    """``compare-methods``."""

    factor: Annotated[Factor, Option(Panel.scaling, "S", is_repeated=True)] = None
    others: Annotated[
        Texts,
        Field(description="further models, each measured as it is beside the first"),
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
    max_short_regression: Annotated[
        float | None,
        Field(ge=0, description="exit with code 3 if the pick's perplexity up to L rises by more than this share"),
        Option(Panel.gates, "R"),
        VERDICT,
    ] = None
    min_accuracy: Annotated[
        float | None,
        Field(
            gt=0,
            le=1,
            description="exit with code 3 if the pick retrieves a smaller share of passkeys at any length up to the target; it "
            f"then counts as used from there on, else from {USES_ACCURACY:g}",
        ),
        Option(Panel.gates, "A"),
        VERDICT,
    ] = None
    fail_above: Annotated[
        float | None,
        Field(
            gt=0, description="exit with code 3 if the pick's perplexity is above this at any length up to the target"
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
        """``factor`` may be a list; a list of one is that one."""
        given = values.get("factor") if isinstance(values, dict) else None
        if not isinstance(given, list | tuple):
            return values
        rest = {name: value for name, value in values.items() if name != "factor"}
        return {**rest, **({"factor": given[0]} if len(given) == 1 else {"factors": tuple(given)})}

    @property
    def all_factors(self) -> tuple[float, ...]:
        """The extension factors asked for, whether one or several."""
        return self.factors or ((self.factor,) if self.factor is not None else ())

    @property
    def uses_accuracy(self) -> float:
        """Passkey accuracy that counts as used."""
        return USES_ACCURACY if self.min_accuracy is None else self.min_accuracy
