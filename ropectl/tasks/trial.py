"""A retrieval trial, which is a prompt in tokens, and the score of its answer. Nothing here depends on the task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Trial:
    """A question to a model.

    Attributes:
        input_ids: All tokens; prompt and answer if the answer is known token by token, else only the prompt.
        answer_start: Index of the first answer token; ``len(input_ids)`` if the answer is generated.
        references: Texts that a generated answer must contain; empty if the answer is known token by token.
        max_new_tokens: Tokens that may be generated; 0 if the answer is known token by token.
    """

    input_ids: list[int]
    answer_start: int
    references: tuple[str, ...] = ()
    max_new_tokens: int = 0

    @property
    def answer_ids(self) -> list[int]:
        """The tokens of the known answer; empty if it is generated."""
        return self.input_ids[self.answer_start :]

    @property
    def seq_len(self) -> int:
        """The longest sequence that the model sees for it: a length-dependent method is frozen at it [tokens]."""
        return len(self.input_ids) + self.max_new_tokens


def contained_share(text: str, references: Sequence[str]) -> float:
    """Returns the share of the references that a generated answer contains, ignoring letter case, in [0, 1].

    The rule of RULER (arXiv 2404.06654) for every task that asks for several things: neither their order matters, nor
    what else the answer says.
    """
    text = text.lower()
    return sum(reference.lower() in text for reference in references) / len(references)
