"""Types that say how a runtime reads a checkpoint, and how it is started on one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


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
class RuntimeReading:
    """The reading of a checkpoint by one version of a runtime.

    Attributes:
        runtime: Name of the runtime.
        version: The version whose rules these are.
        loads: Whether the model can be built at all.
        rope_type: The type that the runtime reads from the file; None if it does not get that far.
        inv_freq: (P,) frequencies for a sequence of the target length [radians/token].
        attention_factor: A, on cos and sin, at the target length.
        max_deviation: Largest relative difference of a frequency from what the author meant, over the lengths that
            are compared; 1 where a pair turns that was meant to stand still.
        usable_length: Tokens that the runtime serves without further settings; None where it sets no limit.
        problems: Why it does not compute what was meant; empty if it does.
    """

    runtime: str
    version: str
    loads: bool
    rope_type: str | None
    inv_freq: tuple[float, ...] | None
    attention_factor: float | None
    max_deviation: float | None
    usable_length: int | None
    problems: tuple[Problem, ...]

    @property
    def ok(self) -> bool:
        """True if the runtime computes and serves what the author meant."""
        return self.loads and not self.problems

    def to_json(self) -> dict[str, Any]:
        """Returns the reading as JSON values, ``ok`` among them."""
        return {
            **vars(self),
            "inv_freq": None if self.inv_freq is None else list(self.inv_freq),
            "problems": [vars(problem) for problem in self.problems],
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
