"""Types that say how a runtime reads a checkpoint, and how it is started on one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class Problem:
    """A reason why a runtime does not compute what the author meant.

    Attributes:
        code: Stable name of the kind, such as ``theta-dropped``.
        text: One short sentence with the numbers; does not name the version, so that equal ones can be grouped.
    """

    code: str
    text: str


@dataclass(frozen=True)
class ReadingEvidence:
    """How a reading is known.

    Attributes:
        kind: ``run``: this version was run on this family and this form of scaling; ``read``: its source was read;
            ``unknown``: neither, and nothing is claimed.
        version: The release that was run or read, such as ``4.44.2``; None where nothing is known.
        date: When, as ``2026-12-01``; None where nothing is known.
        source: What was run or read, in a few words.
    """

    kind: Literal["run", "read", "unknown"]
    version: str | None = None
    date: str | None = None
    source: str = ""


@dataclass(frozen=True)
class RuntimeReading:
    """The reading of a checkpoint by one version of a runtime.

    Attributes:
        runtime: Name of the runtime.
        version: The version whose rules these are.
        loads: Whether the model can be built at all; None where that is not known.
        rope_type: The type that the runtime reads from the file; None if it does not get that far.
        inv_freq: (P,) frequencies for a sequence of the target length [radians/token].
        attention_factor: A, on cos and sin, at the target length.
        max_deviation: Largest relative difference of a frequency from what the author meant, over the lengths that
            are compared; 1 where a pair turns that was meant to stand still.
        usable_length: Tokens that the runtime serves without further settings; None where it sets no limit.
        problems: Why it does not compute what was meant; empty if it does.
        evidence: How this is known.
    """

    runtime: str
    version: str
    loads: bool | None
    rope_type: str | None
    inv_freq: tuple[float, ...] | None
    attention_factor: float | None
    max_deviation: float | None
    usable_length: int | None
    problems: tuple[Problem, ...]
    evidence: ReadingEvidence

    @property
    def ok(self) -> bool:
        """True if the runtime is known to compute and serve what the author meant."""
        return bool(self.loads) and not self.problems

    def to_json(self) -> dict[str, Any]:
        """Returns the reading as JSON values, ``ok`` among them."""
        return {
            **vars(self),
            "inv_freq": None if self.inv_freq is None else list(self.inv_freq),
            "problems": [vars(problem) for problem in self.problems],
            "evidence": vars(self.evidence),
            "ok": self.ok,
        }


@dataclass(frozen=True)
class NextStep:
    """The command that starts one runtime on a checkpoint, or the reason why there is none.

    Attributes:
        runtime: Name of the runtime.
        command: What a person types; None if refused.
        refusal: The reason, and what to do instead; None if there is a command.
        notes: What else to know.
    """

    runtime: str
    command: str | None
    refusal: str | None
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Returns the step as JSON values."""
        return {**vars(self), "notes": list(self.notes)}
