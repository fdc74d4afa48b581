"""Protocol ``sliding``: windows of N tokens move through each document, and each scores what is new in it.

The first window is scored whole, every later one its last S tokens (Position Interpolation, arXiv 2306.15595,
section 3.2, after Press et al., arXiv 2012.15832). Every token but the first is scored exactly once, so all
lengths score the same tokens; each after the first window has at least N - S tokens before it. Every window begins
with BOS where there is one, and then holds N - 1 tokens of text.
"""

from __future__ import annotations

from collections.abc import Iterator

from ropectl.evaluate.perplexity.protocol import MovingWindows
from ropectl.evaluate.perplexity.windows import PerplexityRequest, Window


class Sliding(MovingWindows):
    """Windows of N tokens, S apart, what is new in each scored."""

    name = "sliding"
    summary = "windows of N tokens, S apart: what is new in each is scored"
    same_targets = True

    def windows(self, request: PerplexityRequest, length: int) -> Iterator[Window]:
        """Yields windows to the end of each document; the last of one may be shorter."""
        assert request.stride is not None
        has_bos = request.documents.bos_token_id is not None
        for index, document in enumerate(request.documents.documents):
            num_tokens = len(document.input_ids)
            stop = min(length, num_tokens)
            yield Window(index, 0, stop, stop - 1)
            start = int(has_bos)
            while stop < num_tokens:
                start += request.stride
                scored_before, stop = stop, min(start + length - has_bos, num_tokens)
                yield Window(index, start, stop, stop - scored_before)
