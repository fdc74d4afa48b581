"""Protocol ``tail``: the same last K tokens of each document are scored, given the N tokens that end with them.

Only N varies, so a difference is what the longer context, or the longer positions, did to the same text. One pass
per length.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ropectl.evaluate.gain import with_gain
from ropectl.evaluate.protocols.protocol import Options, Pass, Protocol, Request, Window, run_passes
from ropectl.records import PerplexityPoint


def num_tail_targets(lengths: Sequence[int]) -> int:
    """Returns K: half the shortest context, so that every target has at least as much before it."""
    return max(1, min(lengths) // 2)


def _windows(request: Request, length: int) -> Iterator[Window]:
    assert request.num_targets is not None
    has_bos = request.documents.bos_token_id is not None
    for index, document in enumerate(request.documents.documents):
        stop = len(document.input_ids)
        start = 0 if length == stop else stop - length + has_bos
        yield Window(index, start, stop, request.num_targets)


def passes(request: Request) -> list[Pass]:
    """Returns one pass per length."""
    if request.num_targets is None:
        request = replace(request, num_targets=num_tail_targets(request.lengths))
    return [Pass(length, (length,), partial(_windows, request, length)) for length in request.possible]


def measure(model: Any, request: Request, options: Options, protocol: Protocol) -> list[PerplexityPoint]:
    """Returns the points, each with what its context gains over the trained length."""
    points = run_passes(model, request, options, protocol)
    return with_gain(points, request.trained_length)


TAIL = Protocol(
    "tail", "the same last tokens of each document, given the N that end with them", passes, measure=measure,
    takes=frozenset({"tolerance"}), same_targets=True,
)  # fmt: skip
