"""Key tokens: choosing them by what a long context gives, and the perplexity over them (LongPPL, arXiv 2410.23771).

Legend: D documents, C candidates of each (the tokens with at least K before them).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from ropectl.evaluate.perplexity import scored_windows
from ropectl.evaluate.protocols.key_tokens import MIN_GAIN, MIN_LOGPROB, short_context, short_passes
from ropectl.evaluate.protocols.prefix import passes as prefix_passes
from ropectl.evaluate.protocols.protocol import Options, Pass, Request
from ropectl.evaluate.tally import missing_point, summarize
from ropectl.records import PerplexityPoint


def choose_key_tokens(model: Any, request: Request, options: Options) -> dict[int, Tensor]:
    """Returns which candidates are key tokens in the eyes of a model, (D, C) bool by length.

    Args:
        model: The model that chooses.
        request: Its method, the documents and the lengths.
        options: How passes are run.
    """
    return _key_masks(model, request, _candidate_nll(model, request, prefix_passes(request), options), options)


def measure_key_tokens(model: Any, request: Request, options: Options) -> list[PerplexityPoint]:
    """Returns one point per length: perplexity over the key tokens, weighted by token over all documents.

    Args:
        model: The measured model; it chooses the key tokens where the request brings none.
        request: What is measured.
        options: How passes are run.
    """
    long = _candidate_nll(model, request, prefix_passes(request), options)
    keys = request.keys if request.keys is not None else _key_masks(model, request, long, options)
    return [
        _point(request, length, long[length], keys[length], options)
        if length in long
        else missing_point(length, options.beyond(length))
        for length in request.lengths
    ]


def _point(request: Request, length: int, long: Tensor, keys: Tensor, options: Options) -> PerplexityPoint:
    beyond = options.beyond(length)
    every = summarize(length, long.sum(dim=1).tolist(), [long.shape[1]] * len(long), beyond)
    sums, counts = torch.where(keys, long, 0.0).sum(dim=1).tolist(), keys.sum(dim=1).tolist()
    return replace(
        summarize(length, sums, counts, beyond),
        short_context=short_context(request, length),
        num_candidates=every.num_tokens,
        candidates_perplexity=every.perplexity,
    )


def _key_masks(model: Any, request: Request, long: dict[int, Tensor], options: Options) -> dict[int, Tensor]:
    short = _candidate_nll(model, request, short_passes(request), options)
    return {n: (short[n] - long[n] > MIN_GAIN) & (-long[n] > MIN_LOGPROB) for n in long}


def _candidate_nll(model: Any, request: Request, passes: Sequence[Pass], options: Options) -> dict[int, Tensor]:
    """Losses of the candidates by length, (D, C) float64 [nats]; windows come in any order and know their place."""
    found = {}
    for one in passes:
        losses = torch.zeros(len(request.documents.documents), max(one.lengths), dtype=torch.float64)
        scored = torch.zeros_like(losses, dtype=torch.bool)
        for window, nll in scored_windows(model, request, one, options):
            place = slice(window.stop - window.num_scored, window.stop)
            losses[window.document, place], scored[window.document, place] = nll, True
        for length in one.lengths:
            candidates = slice(short_context(request, length), length)
            assert bool(scored[:, candidates].all())
            found[length] = losses[:, candidates]
    return found
