"""A running server: what it is, what it serves, and how it is asked."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ropectl.checkpoint.endpoint.client import Client
from ropectl.errors import MeasurementError
from ropectl.records import ReadingEvidence

#: Takes the number of tokens that an answer was worth.
Advance = Callable[[int], None]


@dataclass(frozen=True)
class Server(ABC):
    """A server of one kind. Subclasses say how it is recognised and asked.

    Attributes:
        client: How it is reached.
        version: What it says of its version; "" if nothing.
        models: Names of the models that it serves.
        limit: The most tokens of a sequence, one generated token included [tokens]; None if it does not say.
        model: Name of the model that is asked.
        details: What else it says of the model, by name.
    """

    client: Client
    version: str
    models: tuple[str, ...]
    limit: int | None
    model: str
    details: dict[str, str]

    kind: ClassVar[str]
    #: How it is known that such a server is asked rightly.
    evidence: ClassVar[ReadingEvidence]
    #: Whether each compared token takes a request of its own.
    one_by_one: ClassVar[bool] = False

    @classmethod
    @abstractmethod
    def recognise(cls, client: Client, listed: Sequence[dict[str, Any]], wanted: str | None) -> Server | None:
        """Returns the server if it is of this kind.

        Args:
            client: How it is reached.
            listed: The models that it lists, as it says it.
            wanted: Name of the model that was asked for; None for the only one.
        """

    @abstractmethod
    def score(self, ids: Sequence[int], positions: Sequence[int], advance: Advance) -> list[float]:
        """Returns the log-probabilities of some tokens of one sequence, each given all before it [nats].

        Args:
            ids: The sequence.
            positions: Which of its tokens, ascending.
            advance: Takes progress.

        Raises:
            Refusal: If the server says no.
            MeasurementError: If what it answers is not what was asked.
        """

    def check_count(self, read: object, sent: int) -> None:
        """Checks that the server read the tokens that were sent.

        Raises:
            MeasurementError: If it read more or fewer.
        """
        if read != sent:
            raise MeasurementError(f"{self.client.url} read {read} tokens of a text of {sent}.")

    def no_logprobs(self) -> MeasurementError:
        """Returns the error for a server that gives no log-probabilities of a given text."""
        return MeasurementError(
            f"{self.client.url} ({self.kind}) returned no log-probabilities of the text it was given.",
            "vLLM, sglang and llama-server do.",
        )
