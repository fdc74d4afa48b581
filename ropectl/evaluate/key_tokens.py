"""Key tokens: choosing them by what a long context gives, and the perplexity over them (LongPPL, arXiv 2410.23771).

Legend: D documents, C candidates of each (the tokens with at least K before them).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from ropectl.evaluate.perplexity import scored_windows
from ropectl.evaluate.protocols.key_tokens import MIN_GAIN, MIN_LOGPROB, long_pass, short_context, short_pass
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
    chosen = {}
    for length in request.possible:
        long = _candidate_nll(model, request, length, long_pass(request, length), options)
        chosen[length] = _key_mask(model, request, length, long, options)
    return chosen


def measure_key_tokens(model: Any, request: Request, options: Options) -> list[PerplexityPoint]:
    """Returns one point per length: perplexity over the key tokens, weighted by token over all documents.

    Args:
        model: The measured model; it chooses the key tokens where the request brings none.
        request: What is measured.
        options: How passes are run.
    """
    points = []
    for length in request.lengths:
        if length not in request.possible:
            points.append(missing_point(length, options.beyond(length)))
            continue
        long = _candidate_nll(model, request, length, long_pass(request, length), options)
        keys = request.keys[length] if request.keys is not None else _key_mask(model, request, length, long, options)
        points.append(_point(request, length, long, keys, options))
    return points


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


def _key_mask(model: Any, request: Request, length: int, long: Tensor, options: Options) -> Tensor:
    short = _candidate_nll(model, request, length, short_pass(request, length), options)
    return (short - long > MIN_GAIN) & (-long > MIN_LOGPROB)


def _candidate_nll(model: Any, request: Request, length: int, one: Pass, options: Options) -> Tensor:
    """(D, C) float64 [nats]; windows come in any order and know their place."""
    first = short_context(request, length)
    losses = torch.empty(len(request.documents.documents), length - first, dtype=torch.float64)
    num_scored = 0
    for window, nll in scored_windows(model, request, one, options):
        losses[window.document, window.stop - window.num_scored - first : window.stop - first] = nll
        num_scored += len(nll)
    assert num_scored == losses.numel(), "every candidate is scored once"
    return losses
