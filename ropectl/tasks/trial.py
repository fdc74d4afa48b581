"""A retrieval trial, which is a prompt in tokens, and the score of its answer. Nothing here depends on the task."""

from __future__ import annotations

import re
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


def first_number(text: str, is_cut: bool = False) -> str | None:
    """Returns the first complete number of a generated text, digits in a row; None if there is none.

    Words before it do not matter (``Sure! It is **12345**.``), nor does what follows. Digits are taken as they stand:
    whoever is asked for 12345 and writes 12,345 has written 12.

    Args:
        text: The text.
        is_cut: Whether the text was ended by its budget: a number at its very end might go on, and is not complete.
    """
    number = re.search(r"\d+(?=\D)" if is_cut else r"\d+", text)
    return None if number is None else number[0]


def contained_share(text: str, references: Sequence[str]) -> float:
    """Returns the share of the references that a generated answer contains, ignoring letter case, in [0, 1].

    The rule of RULER (arXiv 2404.06654) for every task that asks for several things: neither their order matters, nor
    what else the answer says.
    """
    text = text.lower()
    return sum(reference.lower() in text for reference in references) / len(references)
