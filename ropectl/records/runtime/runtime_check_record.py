"""The record of ``verify-runtime``. Other programs read it: extend, never rename."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from annotated_types import MinLen

from ropectl.records.bounds import Length, NotNegative
from ropectl.records.json_form import optional
from ropectl.records.manifest import EvaluationRecord, RanOn
from ropectl.records.runtime.runtime_reading import ReadingEvidence


@dataclass(frozen=True, kw_only=True)
class ReadingFit:
    """How well one reading of the checkpoint explains what a program computed.

    Attributes:
        code: Stable name of the reading, such as ``unscaled``; ``as-meant`` for the right one.
        text: What is computed, in a few words.
        runtimes: The versions of runtimes whose rules make this reading of the config.
        nll: Loss of the compared tokens under it, in transformers [nats a token].
        distance: Mean absolute difference of log-probabilities from the program's [nats a token].
        distance_below: The same for tokens up to the trained length; None without such tokens.
        distance_beyond: The same for tokens past it; None without such tokens.
        largest: Largest difference on one token [nats].
        behind: How much further off it is than the nearest reading, paired by token [nats a token].
        behind_low: Lower end of the interval of three standard errors.
        behind_high: Upper end.
        fits: Whether it cannot be told from the nearest reading.
    """

    code: str
    text: str
    runtimes: list[str] = field(default_factory=list)
    nll: float
    distance: NotNegative
    distance_below: NotNegative | None
    distance_beyond: NotNegative | None
    largest: NotNegative
    behind: float
    behind_low: float
    behind_high: float
    fits: bool


@dataclass(frozen=True, kw_only=True)
class AskedServer:
    """The server that was asked.

    Attributes:
        url: Its address.
        kind: ``vllm``, ``sglang``, ``llama-server`` or ``OpenAI-compatible``, as its own answers show.
        version: What it says of its version; "" if nothing.
        model: The model that was asked, by the name under which it is served.
        context: The most tokens of a sequence that it says it takes [tokens]; None if it says nothing.
        details: What else it says of the model, by name.
        evidence: How the way of asking such a server is known.
    """

    url: str
    kind: str
    version: str
    model: str
    context: int | None = None
    details: dict[str, str] = field(default_factory=dict)
    evidence: ReadingEvidence


@dataclass(frozen=True, kw_only=True)
class RuntimeCheckRecord(RanOn, EvaluationRecord):
    """Which reading of a checkpoint another program computes, by log-probabilities of the same text.

    Device, type and attention are those of the readings in transformers.

    Attributes:
        runtime: The program that was asked.
        runtime_version: Its version, as it says.
        num_tokens: Length of the text [tokens].
        num_compared: How many tokens of it were compared.
        num_past_trained_length: How many of these stand past the trained length.
        nll_transformers: Loss of the compared tokens in transformers, read as meant [nats a token].
        nll_runtime: The same in the program.
        mean_difference: Mean absolute difference from the reading that was meant [nats a token].
        mean_difference_past_trained_length: The same past the trained length; None without such tokens.
        max_difference: Largest difference on one token [nats].
        allowed: The mean difference up to which both compute the same in float32 [nats a token].
        agrees: Whether they do.
        verdict: Code of the reading that the program computes; ``none`` where none of them fits, ``undecided`` where
            several do.
        reason: Why none fits; "" otherwise.
        as_meant: Whether it computes what was meant and served the text that was asked for.
        noise: Mean absolute difference from the nearest reading: what arithmetic and quantisation add [nats a token].
        margin: How much further off the next reading is that can be told apart [nats a token]; None without one.
        margin_low: Lower end of its interval of three standard errors.
        margin_high: Upper end.
        alike: Codes of readings that fit as well as the verdict's; all that fit, where it is ``undecided``.
        capped_at: The most tokens that the server takes, where that is less than was asked for [tokens].
        target_length: The context that the checkpoint is meant for [tokens].
        reference: The folder that a GGUF file was converted from, where it was computed in place of the file.
        server: The server that was asked; None for a program that was started.
        readings: The readings, nearest first.
        skipped: Readings that could not be computed for this family, each with the reason.
        versions: Versions of Python and of the packages that decide numbers.
        command: The command as typed, one word per entry.
    """

    kind: ClassVar[str] = "runtime-check"
    written_by: ClassVar[str] = "verify-runtime"
    known_by: ClassVar[frozenset[str]] = frozenset({"nll_runtime", "readings"})

    runtime: str
    runtime_version: str
    num_tokens: Length
    num_compared: Length
    num_past_trained_length: int
    nll_transformers: float
    nll_runtime: float
    mean_difference: NotNegative
    mean_difference_past_trained_length: NotNegative | None
    max_difference: NotNegative
    allowed: NotNegative
    agrees: bool
    verdict: str
    reason: str = ""
    as_meant: bool
    noise: NotNegative
    margin: float | None
    margin_low: float | None
    margin_high: float | None
    alike: list[str] = field(default_factory=list)
    capped_at: int | None = None
    target_length: int
    reference: str | None = None
    server: AskedServer | None = optional()
    readings: Annotated[list[ReadingFit], MinLen(1)]
    skipped: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    command: list[str] = field(default_factory=list)

    @property
    def winner(self) -> ReadingFit | None:
        """The reading that the program computes; None where none was found."""
        return next((reading for reading in self.readings if reading.code == self.verdict and reading.fits), None)

    def named(self, code: str) -> ReadingFit:
        """Returns the nearest reading with a code."""
        return next(reading for reading in self.readings if reading.code == code)


#: Verdicts that are no reading.
NONE, UNDECIDED = "none", "undecided"
