"""What figures are about, as numbers that can be drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ropectl.rope.geometry import RopeGeometry

PREFIX, TAIL = "prefix", "tail"


@dataclass(frozen=True)
class Point:
    """One value at one length; ``low`` and ``high`` bound its 95 % interval where there is one.

    Attributes:
        length: Context or prompt length [tokens].
        value: What was measured.
        low: Lower end of its interval.
        high: Upper end.
        beyond: Whether the length passes what the method is made for.
        samples: Documents or trials behind it.
    """

    length: int
    value: float
    low: float | None = None
    high: float | None = None
    beyond: bool = False
    samples: int = 0


@dataclass(frozen=True)
class Cell:
    """Share of passkeys found at one length and place of the needle."""

    length: int
    place: float
    share: float


@dataclass(frozen=True)
class Cost:
    """What a method costs and brings; None where it was not measured.

    Attributes:
        short_delta: Relative change of perplexity up to the trained length, against the unscaled model.
        tokens: Tokens of its training.
        seconds: Time of its training [s].
        uses: Longest length up to which planted numbers are found; 0 if none.
    """

    short_delta: float | None = None
    tokens: float | None = None
    seconds: float | None = None
    uses: float | None = None


@dataclass(frozen=True)
class Subject:
    """What a curve or a panel is about: a row of a comparison, or the model of one evaluation.

    Attributes:
        name: How it is called.
        method: Method spec.
        family: Subjects of one family have one colour: the same method, trained or not.
        tuned: Whether it was trained.
        trained_length: L, context of the pre-training [tokens].
        perplexity: Points by protocol.
        bits: The same in bits per byte.
        nll: Mean loss by position, (position, nats a token), in the longest context that has it.
        window: That context [tokens]; 0 where there is none.
        passkey: Share of passkeys found by length.
        cells: The same by place of the needle.
        grid: What ``place`` is: ``depth`` (share of the length) or ``position`` [tokens].
        tasks: Score by length, by task.
        cost: What it costs.
    """

    name: str
    method: str = ""
    family: str = ""
    tuned: bool = False
    trained_length: int | None = None
    perplexity: Mapping[str, Sequence[Point]] = field(default_factory=dict)
    bits: Mapping[str, Sequence[Point]] = field(default_factory=dict)
    nll: Sequence[tuple[float, float]] = ()
    window: int = 0
    passkey: Sequence[Point] = ()
    cells: Sequence[Cell] = ()
    grid: str = "depth"
    tasks: Mapping[str, Sequence[Point]] = field(default_factory=dict)
    cost: Cost = Cost()

    @property
    def is_reference(self) -> bool:
        """Whether it is the model as it was trained, which everything is compared with."""
        return self.method == "none" and not self.tuned


@dataclass(frozen=True)
class Evidence:
    """All that the figures of a record, or of several, are drawn from.

    Attributes:
        subjects: What was measured, in the order of the record.
        same_tokens: Whether all subjects read the text in the same tokens; else perplexities do not compare.
        remarks: Sentences that belong under every figure of perplexity.
        geometry: Of the model as it was trained, where it is one and known.
        target_length: L' [tokens], where it is known.
    """

    subjects: Sequence[Subject]
    same_tokens: bool = True
    remarks: Sequence[str] = ()
    geometry: RopeGeometry | None = None
    target_length: int | None = None
