"""Protocol ``sliding``: windows of N tokens move through each document, and each scores what is new in it.

The first window is scored whole, every later one its last S tokens (Position Interpolation, arXiv 2306.15595,
section 3.2, after Press et al., arXiv 2012.15832). Every token but the first is scored exactly once, so all
lengths score the same tokens; each behind the first window has at least N - S tokens before it. Every window begins
with BOS where there is one, and then holds N - 1 tokens of text.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ropectl.evaluate.protocols.protocol import Pass, Protocol, Request, Window, check_stride

DEFAULT_STRIDE = 256


def document_windows(index: int, num_tokens: int, length: int, stride: int, has_bos: bool) -> Iterator[Window]:
    """Yields the windows of one document.

    Args:
        index: Index of the document.
        num_tokens: Its tokens, BOS included.
        length: N, the longest window [tokens].
        stride: S, new tokens of each window after the first, less than N.
        has_bos: Whether the document, and so every window, begins with BOS.
    """
    stop = min(length, num_tokens)
    yield Window(index, 0, stop, stop - 1)
    start = int(has_bos)
    while stop < num_tokens:
        start += stride
        scored_before, stop = stop, min(start + length - has_bos, num_tokens)
        yield Window(index, start, stop, stop - scored_before)


def _windows(request: Request, length: int) -> Iterator[Window]:
    assert request.stride is not None
    has_bos = request.documents.bos_token_id is not None
    for index, document in enumerate(request.documents.documents):
        yield from document_windows(index, len(document.input_ids), length, request.stride, has_bos)


def passes(request: Request) -> list[Pass]:
    """Returns one pass per length."""
    return [Pass(length, (length,), partial(_windows, request, length)) for length in request.possible]


SLIDING = Protocol(
    "sliding",
    "windows of N tokens, S apart: what is new in each is scored",
    passes,
    takes=frozenset({"stride", "document_tokens"}),
    check=check_stride,
    default_stride=DEFAULT_STRIDE,
    same_targets=True,
)
