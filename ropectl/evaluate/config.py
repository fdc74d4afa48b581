"""What can be set for a measurement, declared once: flags, YAML files and the Python API share it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, field_validator, model_validator

from ropectl.data.sources import source_spellings
from ropectl.hf.settings import ModelSettings

DEFAULT_TEXT = "builtin:stdlib"

#: Loss over the unscaled model's that still counts as modelled [nats a token].
MODELS_TOLERANCE = 0.02

#: Share of planted numbers that has to be retrieved for a length to count as used.
USES_ACCURACY = 0.9


class ModelConfig(ModelSettings):
    """A model, and how it is loaded and run."""

    dtype: str = Field("auto", description="auto, float32, bfloat16 or float16")
    device: str = Field("auto", description="auto, cpu, cuda, cuda:1, mps, ...")
    attention: str | None = Field(None, description="attention implementation of transformers")
    bos: str = Field("auto", description="beginning-of-sequence token: auto, always, available or never")
    prefill_chunk: int | None = Field(None, ge=2, description="tokens per forward pass, to save memory [tokens]")


class TextConfig(ModelConfig):
    """Which text, and how much of it."""

    text: str = Field(
        DEFAULT_TEXT,
        description=f"text to measure on: {source_spellings()}",
    )
    documents: int = Field(12, ge=1, description="most documents to score")
    batch_size: int = Field(1, ge=1, description="documents per forward pass")


class PasskeyGrid(ModelConfig):
    """The grid of passkey trials."""

    depths: int = Field(5, ge=1, description="needle depths, evenly spaced over [0, 1]")
    trials: int = Field(5, ge=1, description="prompts per length and depth")
    distractors: int = Field(0, ge=0, le=9, description="other labelled keys in the haystack")
    seed: int = Field(0, description="chooses keys and filler")

    def depth_values(self) -> list[float]:
        """Returns the depths, 0 and 1 included; a single one is the middle."""
        if self.depths == 1:
            return [0.5]
        return [index / (self.depths - 1) for index in range(self.depths)]


class PerplexityConfig(TextConfig):
    """``eval-perplexity``."""

    method: str | None = Field(None, description="method spec; the checkpoint's own scaling by default")
    lengths: tuple[int, ...] = Field((), description="context lengths [tokens]")
    protocol: str = Field("prefix", description="prefix, sliding, overlapping, tail or key-tokens")
    preset: str | None = Field(None, description="pi, yarn or longlora: protocol, stride and BOS of their numbers")
    stride: int | None = Field(None, ge=1, description="tokens from one window to the next [tokens]")
    document_tokens: int | None = Field(None, ge=2, description="most tokens of a document in sliding windows [tokens]")
    short_context: int | None = Field(None, ge=2, description="short context of protocol key-tokens [tokens]")
    key_model: str | None = Field(None, description="model that chooses the key tokens; the measured one by default")
    tolerance: float | None = Field(None, ge=0, description="loss that still counts as modelled [nats a token]")
    fail_above: float | None = Field(None, gt=0, description="perplexity above which the command fails")


class PasskeyConfig(PasskeyGrid):
    """``eval-passkey``."""

    method: str | None = Field(None, description="method spec; the checkpoint's own scaling by default")
    lengths: tuple[int, ...] = Field((), description="lengths of prompt and answer [tokens]")
    trials: int = Field(10, ge=1, description="prompts per length and depth")
    grid: str = Field("depth", description="depth (needles at shares of each length) or position (at fixed tokens)")
    needle_positions: tuple[int, ...] = Field((), description="needle positions of grid = position [tokens]")
    generate: bool = Field(False, description="decode the answers greedily too, and compare")
    chat: bool = Field(False, description="ask through the tokenizer's chat template")
    min_accuracy: float | None = Field(None, gt=0, le=1, description="fail where a length's accuracy is below")


class CompareConfig(TextConfig, PasskeyGrid):
    """``compare-methods``."""

    others: tuple[str, ...] = Field((), description="further models, each measured as it is")
    methods: tuple[str, ...] = Field((), description="method specs; every method by default")
    factors: tuple[Annotated[float, Field(ge=1)], ...] = Field(
        (), description="several extension factors s = L'/L, each with every method that does not name its own"
    )
    lengths: tuple[int, ...] = Field(
        (), description="context lengths [tokens]; from half the trained one to the target by default"
    )
    passkey: bool = Field(True, description="measure passkey retrieval too")
    tolerance: float = Field(MODELS_TOLERANCE, ge=0, description="loss that still counts as modelled [nats a token]")
    max_short_regression: float | None = Field(
        None, ge=0, description="gate: the pick's largest relative perplexity rise up to the trained length"
    )
    min_accuracy: float | None = Field(
        None, gt=0, le=1, description="gate: the pick's passkey accuracy at every length; it then counts as used too"
    )
    fail_above: float | None = Field(None, gt=0, description="gate: the pick's largest perplexity at any length")
    finetune: Path | None = Field(
        None, description="YAML file of training settings: every method is trained equally and measured again"
    )

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

    @field_validator("finetune")
    @classmethod
    def _in_home(cls, path: Path | None) -> Path | None:
        """A shell leaves ``~`` alone in ``--finetune=~/x``, and so does YAML."""
        return path.expanduser() if path is not None else None
