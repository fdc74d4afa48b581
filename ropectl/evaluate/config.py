"""What can be set for a measurement, declared once: flags, YAML files and the Python API share it."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, field_validator

from ropectl.hf.settings import ModelSettings

DEFAULT_TEXT = "builtin:stdlib"


class ModelConfig(ModelSettings):
    """A model, and how it is loaded and run."""

    dtype: str = Field("auto", description="auto, float32, bfloat16 or float16")
    device: str = Field("auto", description="auto, cpu, cuda, cuda:1, mps, ...")
    attention: str | None = Field(None, description="attention implementation of transformers")
    bos: str = Field("auto", description="beginning-of-sequence token: auto, always or never")
    prefill_chunk: int | None = Field(None, ge=2, description="tokens per forward pass, to save memory [tokens]")


class TextConfig(ModelConfig):
    """Which text, and how much of it."""

    text: str = Field(
        DEFAULT_TEXT,
        description="builtin:stdlib, a file, a folder, a glob, FILE.jsonl#FIELD, a saved data set or hf:NAME",
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
    protocol: str = Field("prefix", description="prefix or tail")


class PasskeyConfig(PasskeyGrid):
    """``eval-passkey``."""

    method: str | None = Field(None, description="method spec; the checkpoint's own scaling by default")
    lengths: tuple[int, ...] = Field((), description="lengths of prompt and answer [tokens]")
    trials: int = Field(10, ge=1, description="prompts per length and depth")
    grid: str = Field("depth", description="depth (needles at shares of each length) or position (at fixed tokens)")
    positions: tuple[int, ...] = Field((), description="needle positions of grid = position [tokens]")
    generate: bool = Field(False, description="decode the answers greedily too, and compare")
    chat: bool = Field(False, description="ask through the tokenizer's chat template")
    min_accuracy: float | None = Field(None, gt=0, le=1, description="fail where a length's accuracy is below")


class CompareConfig(TextConfig, PasskeyGrid):
    """``compare-methods``."""

    methods: tuple[str, ...] = Field((), description="method specs; every method by default")
    lengths: tuple[int, ...] = Field(
        (), description="context lengths [tokens]; from half the trained one to the target by default"
    )
    passkey: bool = Field(True, description="measure passkey retrieval too")
    tolerance: float = Field(0.02, ge=0, description="loss that still counts as modelled [nats a token]")
    min_accuracy: float = Field(0.9, gt=0, le=1, description="passkey accuracy that counts as used")
    max_short_regression: float | None = Field(
        None, ge=0, description="fail above this relative perplexity rise up to the trained length"
    )
    finetune: Path | None = Field(
        None, description="YAML file of training settings: every method is trained equally and measured again"
    )

    @field_validator("finetune")
    @classmethod
    def _in_home(cls, path: Path | None) -> Path | None:
        """A shell leaves ``~`` alone in ``--finetune=~/x``, and so does YAML."""
        return path.expanduser() if path is not None else None
