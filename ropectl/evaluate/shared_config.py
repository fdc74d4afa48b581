"""Settings that measurements share: the model and how it runs, the text, the grid of passkeys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from ropectl.data.sources import source_spellings
from ropectl.hf.model_settings import INPUTS, LOADING, Attention, Device, ModelSettings, WeightType
from ropectl.hf.run_names import BosPolicy, check_attention, check_device
from ropectl.lengths import parse_length
from ropectl.option import Group, Option, Panel
from ropectl.setting_types import Lengths, Tokens

DEFAULT_TEXT = "builtin:stdlib"

#: Most documents to score, and most windows where documents are cut.
DEFAULT_DOCUMENTS, DEFAULT_WINDOWS = 12, 36

#: What ``--split`` takes beside a number of tokens.
SPLITS: Mapping[str, str] = {"auto": "windows of the longest length"}

#: The most that the loss may be above the unscaled model's to count as modelled [nats a token].
MODELS_TOLERANCE = 0.02

#: Share of the hidden numbers that must be retrieved for a length to count as used.
USES_ACCURACY = 0.9

#: Sequences of a forward pass; no device holds the keys of more.
MAX_BATCH = 2**16

#: Trials of a cell from which its interval is narrower than any difference that matters, by far.
MAX_TRIALS = 10_000

#: Three times the largest context that a released model claims [tokens]. The tokens of a prompt still fit in memory.
MAX_MEASURED = 32 * 2**20

VERDICT = Group("limits that verdicts use")
PASSKEYS = Group("which passkeys are asked for")

Text = Annotated[
    str,
    Field(description=f"text to measure on: {source_spellings()}"),
    Option(Panel.measurement, "SOURCE", offers="sources"),
    INPUTS,
]


def _measurable(lengths: tuple[int, ...]) -> tuple[int, ...]:
    if lengths and max(lengths) > MAX_MEASURED:
        raise ValueError(
            f"{max(lengths)} tokens are more than any model was ever run on; at most {MAX_MEASURED} are measured"
        )
    return lengths


MeasuredLengths = Annotated[
    Lengths,
    AfterValidator(_measurable),
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
    Field(ge=1, le=1000, description="depths of what is asked for, evenly spaced over [0, 1]"),
    Option(Panel.measurement, "N"),
    PASSKEYS,
]
Trials = Annotated[
    int,
    Field(ge=1, le=MAX_TRIALS, description="prompts per length and depth"),
    Option(Panel.measurement, "N"),
    PASSKEYS,
]
Seed = Annotated[
    int, Field(description="chooses keys, filler and everything else that is random"), Option(Panel.measurement, "N")
]
Seeds = Annotated[
    int,
    Field(ge=1, le=1000, description="repeat all prompts with so many seeds, one after the other"),
    Option(Panel.measurement, "K"),
    PASSKEYS,
]
Chat = Annotated[
    bool,
    Field(description="ask in the turns of the tokenizer's chat template (instruct models)"),
    Option(Panel.measurement),
]


def _split(value: Any) -> Any:
    if isinstance(value, str) and value not in SPLITS:
        return parse_length(value, "split", f"Type for example: --split 8k, or --split {', '.join(SPLITS)}")
    if isinstance(value, int) and value < 2:
        raise ValueError("it must be at least 2")
    return value


#: A number of tokens, or a word.
Split = Annotated[
    int | str | None,
    BeforeValidator(_split),
    Field(
        description="cut documents into disjoint windows of N tokens that count as documents do; auto: of the longest length "
        "[tokens]"
    ),
    Option(Panel.measurement, "N", default="whole documents", offers="ropectl.evaluate.shared_config:SPLITS"),
]


def number_of_units(documents: int | None, split: int | str | None) -> int:
    """Returns the most documents to score, or windows of them: those asked for, else a default."""
    return documents or (DEFAULT_DOCUMENTS if split is None else DEFAULT_WINDOWS)


def evenly_spaced(depths: int) -> list[float]:
    """Returns ``depths`` shares of a length from 0 to 1; a single one is the middle."""
    return [0.5] if depths == 1 else [index / (depths - 1) for index in range(depths)]


class ModelConfig(ModelSettings):
    """The model, and how it is loaded and run."""

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
    """A model, and the text that it is measured on."""

    strict: Annotated[
        bool,
        Field(description="treat warnings about the checkpoint's config, and lengths that no document has, as errors"),
        Option(Panel.model),
        LOADING,
    ] = False
    text: Text = DEFAULT_TEXT
    documents: Annotated[
        int | None,
        Field(ge=1, description="most documents to score, or windows of --split"),
        Option(Panel.measurement, "N", default=f"{DEFAULT_DOCUMENTS}, with --split {DEFAULT_WINDOWS}"),
    ] = None
    split: Split = None
    batch_size: Annotated[
        int, Field(ge=1, le=MAX_BATCH, description="documents per forward pass"), Option(Panel.measurement, "N")
    ] = 1

    @property
    def most_units(self) -> int:
        """Most documents to score, or windows of them."""
        return number_of_units(self.documents, self.split)


class PasskeyGrid(ModelConfig):
    """The grid of passkey trials."""

    depths: Depths = 5
    trials: Trials = 8
    distractors: Annotated[
        int,
        Field(ge=0, le=9, description="other labelled keys in the haystack"),
        Option(Panel.measurement, "N"),
        PASSKEYS,
    ] = 0
    seed: Seed = 0
    seeds: Seeds = 1
