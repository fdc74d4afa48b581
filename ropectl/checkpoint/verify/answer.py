"""What a program answered, whichever way it was asked."""

from __future__ import annotations

from dataclasses import dataclass

from ropectl.checkpoint.verify.passages import Passage
from ropectl.records import AskedServer


@dataclass(frozen=True)
class Answer:
    """Log-probabilities of a program.

    Attributes:
        runtime: The program.
        version: Its version, as it says.
        ids: The text.
        passages: What was asked of it.
        logprobs: One for each position of the passages, in their order [nats].
        server: The server, where one was asked.
        capped_at: The most tokens that it takes, where that is less than was asked for [tokens].
    """

    runtime: str
    version: str
    ids: list[int]
    passages: list[Passage]
    logprobs: list[float]
    server: AskedServer | None = None
    capped_at: int | None = None

    @property
    def positions(self) -> list[int]:
        """The compared positions, in the order of the log-probabilities."""
        return [position for passage in self.passages for position in passage.positions]
