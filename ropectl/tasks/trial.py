"""Defines a retrieval trial: a prompt in tokens, and what counts as its answer. Scoring knows no more of the task."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Trial:
    """One question to a model.

    Attributes:
        input_ids: All tokens; prompt and answer where the answer is known token by token, else the prompt alone.
        answer_start: Index of the first answer token; ``len(input_ids)`` where the answer is generated.
        references: Texts that a generated answer must contain; empty where the answer is known token by token.
        max_new_tokens: Tokens that may be generated; 0 where the answer is known token by token.
    """

    input_ids: list[int]
    answer_start: int
    references: tuple[str, ...] = ()
    max_new_tokens: int = 0

    @property
    def answer_ids(self) -> list[int]:
        """The tokens of the known answer; empty where it is generated."""
        return self.input_ids[self.answer_start :]

    @property
    def seq_len(self) -> int:
        """The longest sequence that the model sees for it: a length-dependent method is frozen at it [tokens]."""
        return len(self.input_ids) + self.max_new_tokens
