"""Protocol ``overlapping``: whole windows of N tokens, S apart, and all tokens of every window are scored.

LongLoRA's script does the same (arXiv 2309.12307, github.com/dvlab-research/LongLoRA, eval.py), but over one stream of
all text and not document by document. Most tokens are scored in several windows, at every position of them, so a
long window has many tokens with little context. A last window that is not full is left out.
"""

from __future__ import annotations

from collections.abc import Iterator

from ropectl.evaluate.perplexity.protocol import MovingWindows
from ropectl.evaluate.perplexity.windows import PerplexityRequest, Window


class Overlapping(MovingWindows):
    """Whole windows of N tokens, S apart, all tokens of each scored."""

    name = "overlapping"
    summary = "whole windows of N tokens, S apart: all tokens of each are scored"

    def windows(self, request: PerplexityRequest, length: int) -> Iterator[Window]:
        """Yields the windows that a document fills; the first always."""
        assert request.stride is not None
        has_bos = request.documents.bos_token_id is not None
        for index, document in enumerate(request.documents.documents):
            yield Window(index, 0, length, length - 1)
            start = has_bos + request.stride
            while start + length - has_bos <= len(document.input_ids):
                yield Window(index, start, start + length - has_bos, length - 1)
                start += request.stride
