"""The progress of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass
class RunProgress:
    """All that a saved state has to hold beside weights, optimizer and random states.

    Attributes:
        step: Finished steps.
        tokens: Tokens that were predicted so far.
        seconds: Time spent in steps [s].
        unscaled: Perplexity of the model as it was given, by length.
        start_score: Score of the validation before the first step.
        best_step: Step of the best validation since then; None before the first.
        best_score: Its score.
        since_best: Validations since then.
    """

    step: int = 0
    tokens: int = 0
    seconds: float = 0.0
    unscaled: dict[int, float] = field(default_factory=dict)
    start_score: list[float] = field(default_factory=list)
    best_step: int | None = None
    best_score: list[float] = field(default_factory=list)
    since_best: int = 0

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> RunProgress:
        """Returns the progress that a state holds."""
        known = {name: values[name] for name in cls.__dataclass_fields__ if name in values}
        known["unscaled"] = {int(length): value for length, value in known.get("unscaled", {}).items()}
        return cls(**known)

    @property
    def is_at_best(self) -> bool:
        """True if the present weights are those to write: no validation chose others."""
        return self.best_step in (None, self.step)

    def forget_best(self) -> None:
        """Forgets the best validation, whose weights are lost."""
        self.best_step, self.best_score, self.since_best = None, [], 0
