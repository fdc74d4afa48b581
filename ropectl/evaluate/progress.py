"""How measurements report their progress, without knowing who listens."""

from __future__ import annotations

from collections.abc import Callable

#: Called after each forward pass with the number of tokens it took.
Progress = Callable[[int], None]


def no_progress(tokens: int) -> None:
    """Reports nothing."""
