"""Protocol ``key-tokens``: perplexity over the tokens that need a long context (LongPPL, arXiv 2410.23771).

A token is a key token if the model that chooses gives it a log-probability that the long context of N tokens raises
by more than 2 nats over a short one of K (the long-short difference of the paper), and that is above -2 nats given
the long one (its long-context likelihood). Tokens with no more than K before them are not candidates. The short
context of a token has between K and 1.25 K tokens, so that one window serves many.

The paper lets a strong model choose. If a model chooses its own key tokens, their number says how much it gains from a
long context, but their perplexity says little: by the rule, each has a loss below 2.

Legend: D documents, C candidates of each (the tokens with at least K before them).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from ropectl.errors import ConfigError
from ropectl.evaluate.perplexity.protocol import Losses
from ropectl.evaluate.perplexity.protocols.prefix import Prefix
from ropectl.evaluate.perplexity.windows import Pass, PerplexityRequest, Window
from ropectl.records import PerplexityPoint

if TYPE_CHECKING:
    from torch import Tensor

#: Least gain of a key token's log-probability, and the log-probability it has at least [nats].
MIN_GAIN, MIN_LOGPROB = 2.0, -2.0

#: K over the tokens scored in a short window: the paper scores 1024 after 4096.
SHORT_WINDOW_SHARE = 4


class KeyTokens(Prefix):
    """The tokens that gain from a long context, given N: windows of ``prefix``, and short ones to choose them by."""

    name = "key-tokens"
    summary = "the tokens that gain from a long context, given N (LongPPL)"
    takes = frozenset({"short_context", "key_model"})
    by_position = False
    has_baseline = False

    def passes(self, request: PerplexityRequest) -> list[Pass]:
        """Returns the passes of protocol ``prefix``, and those in short windows if the measured model chooses."""
        return super().passes(request) + (_short_passes(request) if request.keys is None else [])

    def completed(self, request: PerplexityRequest) -> PerplexityRequest:
        """Returns the request, in which every length has candidates.

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
        return request

    def measure(self, request: PerplexityRequest, losses: Losses) -> list[PerplexityPoint]:
        """Returns one point per length: perplexity over the key tokens, weighted by token over all documents."""
        from ropectl.evaluate.perplexity.tally import missing_point  # torch loads here

        long = _candidate_nll(request, super().passes(request), losses)
        keys = request.keys if request.keys is not None else _key_masks(request, long, losses)
        return [
            _point(request, length, long[length], keys[length])
            if length in long
            else missing_point(length, request.beyond(length))
            for length in request.lengths
        ]

    def choose(self, request: PerplexityRequest, losses: Losses) -> dict[int, Tensor]:
        """Returns which candidates a model considers key tokens, (D, C) bool by length.

        Args:
            request: The method of the model that chooses, the documents and the lengths.
            losses: Runs a pass of that model.
        """
        return _key_masks(request, _candidate_nll(request, super().passes(request), losses), losses)


def _short_context(request: PerplexityRequest, length: int) -> int:
    """Returns K at one length: the one asked for, else the trained length, or half the length if that is less."""
    if request.short_context is not None:
        return request.short_context
    return min(request.trained_length, length // 2)


def _num_scored(request: PerplexityRequest, length: int) -> int:
    """Returns how many tokens are scored in a short window."""
    context = _short_context(request, length)
    return min(length - context, max(1, context // SHORT_WINDOW_SHARE))


def _short_windows(request: PerplexityRequest, length: int) -> Iterator[Window]:
    """Yields windows that score the candidates of each document in order, each once."""
    has_bos = request.documents.bos_token_id is not None
    context, num_scored = _short_context(request, length), _num_scored(request, length)
    for index in range(len(request.documents.documents)):
        for first in range(context, length, num_scored):
            start, stop = first - context, min(first + num_scored, length)
            yield Window(index, start + has_bos if start else 0, stop, stop - first)


def _short_passes(request: PerplexityRequest) -> list[Pass]:
    """Returns the passes that score the candidates given K tokens; lengths with the same short windows share them."""
    groups: dict[tuple[int, int], list[int]] = {}
    for length in sorted(set(request.possible)):
        groups.setdefault((_short_context(request, length), _num_scored(request, length)), []).append(length)
    return [
        Pass(context + num_scored, tuple(lengths), partial(_short_windows, request, lengths[-1]))
        for (context, num_scored), lengths in groups.items()
    ]


def _candidate_nll(request: PerplexityRequest, passes: Sequence[Pass], losses: Losses) -> dict[int, Tensor]:
    """Returns losses of the candidates by length, (D, C) float64 [nats]; windows come in any order."""
    import torch

    found = {}
    for one in passes:
        values = torch.zeros(len(request.documents.documents), max(one.lengths), dtype=torch.float64)
        scored = torch.zeros_like(values, dtype=torch.bool)
        for window, nll in losses(one):
            place = slice(window.stop - window.num_scored, window.stop)
            values[window.document, place], scored[window.document, place] = nll, True
        for length in one.lengths:
            candidates = slice(_short_context(request, length), length)
            assert bool(scored[:, candidates].all())
            found[length] = values[:, candidates]
    return found


def _key_masks(request: PerplexityRequest, long: dict[int, Tensor], losses: Losses) -> dict[int, Tensor]:
    """Returns which candidates are key tokens, by their losses given N tokens and given K."""
    short = _candidate_nll(request, _short_passes(request), losses)
    return {n: (short[n] - long[n] > MIN_GAIN) & (-long[n] > MIN_LOGPROB) for n in long}


def _point(request: PerplexityRequest, length: int, long: Tensor, keys: Tensor) -> PerplexityPoint:
    from ropectl.evaluate.perplexity.tally import summarize

    beyond, clusters = request.beyond(length), request.documents.clusters
    every = summarize(length, long.sum(dim=1).tolist(), [long.shape[1]] * len(long), beyond, clusters)
    of_keys = long.masked_fill(~keys, 0.0)
    return replace(
        summarize(length, of_keys.sum(dim=1).tolist(), keys.sum(dim=1).tolist(), beyond, clusters),
        short_context=_short_context(request, length),
        num_candidates=every.num_tokens,
        candidates_perplexity=every.perplexity,
    )
