"""Protocol ``prefix``: the first N tokens of each document are one window, and all are scored.

With causal attention the losses of a prefix are the prefix of the losses, so for frequencies that do not depend
on the length one pass over the longest context gives every shorter one exactly. A length-dependent method is
frozen at each length and takes a pass for each.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ropectl.evaluate.perplexity.protocol import PerplexityProtocol
from ropectl.evaluate.perplexity.windows import Pass, PerplexityRequest, Window


class Prefix(PerplexityProtocol):
    """The first N tokens of each document, all scored."""

    name = "prefix"
    summary = "the first N tokens of each document, all scored"
    by_position = True

    def windows(self, request: PerplexityRequest, length: int) -> Iterator[Window]:
        """Yields one window a document."""
        for index in range(len(request.documents.documents)):
            yield Window(index, 0, length, length - 1)

    def passes(self, request: PerplexityRequest) -> list[Pass]:
        """Returns the fewest passes that give exact numbers for all lengths."""
        ordered = sorted(set(request.possible))
        groups = [(length,) for length in ordered] if request.method.depends_on_seq_len else [tuple(ordered)]
        return [Pass(group[-1], group, partial(self.windows, request, group[-1])) for group in groups if group]
