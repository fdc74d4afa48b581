"""What is asked of a program: which tokens of a text, after how many others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Passage:
    """The beginning of the text as one sequence, and the tokens of it that are compared.

    Attributes:
        num_tokens: Length of the sequence [tokens].
        positions: Ascending; each is compared given all tokens before it.
    """

    num_tokens: int
    positions: tuple[int, ...]


def spread(num_tokens: int, wanted: int | None) -> list[int]:
    """Returns ``wanted`` positions, evenly spread over a text; all but the first where None."""
    if wanted is None or wanted >= num_tokens - 1:
        return list(range(1, num_tokens))
    return sorted({round(1 + k * (num_tokens - 2) / max(wanted - 1, 1)) for k in range(wanted)})


def one_passage(num_tokens: int, positions: Sequence[int]) -> list[Passage]:
    """Returns the whole text as one sequence."""
    return [Passage(num_tokens, tuple(positions))]


def below_and_beyond(num_tokens: int, positions: Sequence[int], trained: int) -> list[Passage]:
    """Returns the text up to the trained length as one sequence, and the whole of it as another.

    A program whose frequencies follow the length of the sequence is then asked for both.

    Args:
        num_tokens: Length of the text [tokens].
        positions: What is compared.
        trained: The trained length [tokens].
    """
    below = tuple(position for position in positions if position < trained)
    beyond = tuple(position for position in positions if position >= trained)
    found = [Passage(min(trained, num_tokens), below), Passage(num_tokens, beyond)]
    return [passage for passage in found if passage.positions]
