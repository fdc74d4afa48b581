"""The record of a training, while it runs and in its result. Other programs read it: extend, never rename."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from ropectl.records.bounds import AboveZero, Length, Share
from ropectl.records.json_form import optional


@dataclass(frozen=True)
class ValidationRecord:
    """The measurements on held-out text at one step.

    Attributes:
        perplexity: Perplexity by context length.
        passkey: Passkey accuracy by length; empty where it was not measured.
        short_delta: Largest relative rise of perplexity over the unscaled model's, up to the trained length; None if
            not measured.
    """

    perplexity: dict[Length, AboveZero] = field(default_factory=dict)
    passkey: dict[Length, Share] = field(default_factory=dict)
    short_delta: float | None = None


@dataclass(frozen=True)
class MetricsLine:
    """A line of ``metrics.jsonl``: an optimizer step, or a validation.

    Attributes:
        step: Finished steps.
        loss: Mean loss of the step [nats a token].
        grad_norm: Norm of the gradient; None in a step that was left out because it overflowed.
        learning_rate: Learning rate of the step.
        tokens: Tokens that were predicted so far.
        tokens_per_second: Speed of the step.
        seconds: Time spent in steps so far [s].
        validation: What was measured on held-out text.
        best: Whether that validation is the best so far.
    """

    step: int
    loss: float | None = optional()
    grad_norm: float | None = optional(beside="loss")
    learning_rate: float | None = optional()
    tokens: int | None = optional()
    tokens_per_second: float | None = optional()
    seconds: float | None = optional()
    validation: ValidationRecord | None = optional()
    best: bool | None = optional()


@dataclass(frozen=True)
class TrainingEngine:
    """The hardware and software that a training ran on.

    Attributes:
        kind: How it was distributed, in the words of Accelerate.
        processes: Processes.
        device: Kind of device.
        precision: Arithmetic.
    """

    kind: str | None = None
    processes: int | None = None
    device: str | None = None
    precision: str | None = None


@dataclass(frozen=True, kw_only=True)
class TrainingRecord:
    """The settings and the result of a training.

    Attributes:
        id: Hash of all that decides the result.
        settings: All that decides the result, by name.
        seq_len: Tokens of a training sequence.
        learning_rate: Peak learning rate.
        steps: Optimizer steps.
        step: The step whose weights were written: the best validation's, else the last.
        tokens: Tokens that were predicted.
        seconds: Time spent in steps [s].
        epochs: How often the text was seen.
        first_loss: Mean loss of the first step [nats a token].
        last_loss: Mean loss of the last ten [nats a token].
        validation_before: Held-out text before the first step; None if it was not measured.
        validation: Held-out text at ``step``; None if it was not measured.
        engine: What it ran on.
        metrics: File with one line per step.
    """

    id: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    seq_len: int | None = None
    learning_rate: float | None = None
    steps: int | None = None
    step: int | None = None
    tokens: int | None = None
    seconds: float | None = None
    epochs: float | None = None
    first_loss: float | None = None
    last_loss: float | None = None
    validation_before: ValidationRecord | None = None
    validation: ValidationRecord | None = None
    engine: TrainingEngine = field(default_factory=TrainingEngine)
    metrics: str | None = None


@dataclass(frozen=True)
class UnfinishedTraining:
    """``run.json`` of a training that is not finished.

    Attributes:
        settings: All that decides the result, by name.
        versions: Versions of Python and of the packages that decide numbers.
    """

    kind: ClassVar[str] = "run"
    written_by: ClassVar[str] = "finetune"
    known_by: ClassVar[frozenset[str]] = frozenset({"settings", "versions"})

    settings: dict[str, Any]
    versions: dict[str, str] = field(default_factory=dict)
