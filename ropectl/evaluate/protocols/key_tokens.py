"""Protocol ``key-tokens``: perplexity over the tokens that need a long context (LongPPL, arXiv 2410.23771).

A token is a key token if the model that chooses gives it a log-probability that the long context of N tokens raises
by more than 2 nats over a short one of K (the long-short difference of the paper), and that is above -2 nats given
the long one (its long-context likelihood). Tokens with no more than K before them are no candidates. The short
context of a token has between K and 1.25 K tokens, so that one window serves many.

The paper lets a strong model choose. A model that chooses its own key tokens says with their number how much it
draws from afar, but with their perplexity little: each has, by the rule, a loss below 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from ropectl.errors import ConfigError
from ropectl.evaluate.protocols.prefix import passes as prefix_passes
from ropectl.evaluate.protocols.protocol import Options, Pass, Protocol, Request, Window
from ropectl.records import PerplexityPoint

#: Least gain of a key token's log-probability, and the log-probability it has at least [nats].
MIN_GAIN, MIN_LOGPROB = 2.0, -2.0

#: Tokens scored in a short window, as a share of K: the paper scores 1024 behind 4096.
SHORT_WINDOW_SHARE = 4


def short_context(request: Request, length: int) -> int:
    """Returns K at one length: what was asked for, else the trained length or half the length if that is less."""
    if request.short_context is not None:
        return request.short_context
    return min(request.trained_length, length // 2)


def _block(request: Request, length: int) -> int:
    """Tokens scored in a short window."""
    context = short_context(request, length)
    return min(length - context, max(1, context // SHORT_WINDOW_SHARE))


def _short_windows(request: Request, length: int) -> Iterator[Window]:
    """The candidates of each document in order, each once."""
    has_bos = request.documents.bos_token_id is not None
    context, block = short_context(request, length), _block(request, length)
    for index in range(len(request.documents.documents)):
        for first in range(context, length, block):
            start, stop = first - context, min(first + block, length)
            yield Window(index, start + has_bos if start else 0, stop, stop - first)


def short_passes(request: Request) -> list[Pass]:
    """Returns the passes that score the candidates given K tokens; lengths with the same short windows share them."""
    groups: dict[tuple[int, int], list[int]] = {}
    for length in sorted(set(request.possible)):
        groups.setdefault((short_context(request, length), _block(request, length)), []).append(length)
    return [
        Pass(context + block, tuple(lengths), partial(_short_windows, request, lengths[-1]))
        for (context, block), lengths in groups.items()
    ]


def passes(request: Request) -> list[Pass]:
    """Returns the passes of protocol ``prefix``, and those in short windows where the measured model chooses."""
    return prefix_passes(request) + (short_passes(request) if request.keys is None else [])


def check(request: Request) -> None:
    """Checks that every length has candidates.

    Raises:
        ConfigError: If the short context leaves none.
    """
    shortest = min(request.lengths)
    if request.short_context is not None and request.short_context >= shortest:
        raise ConfigError(
            f"short-context = {request.short_context} is not possible at length {shortest}: no token there has more "
            "than that before it.",
            f"Use --short-context {max(2, shortest // 2)} or less, or longer lengths.",
        )


def measure(model: Any, request: Request, options: Options, protocol: Protocol) -> list[PerplexityPoint]:
    """Returns the points. Torch loads here."""
    from ropectl.evaluate.key_tokens import measure_key_tokens

    return measure_key_tokens(model, request, options)


KEY_TOKENS = Protocol(
    "key-tokens",
    "the tokens that gain from a long context, given N (LongPPL)",
    passes,
    takes=frozenset({"short_context", "key_model"}),
    measure=measure,
    check=check,
    has_baseline=False,
)
