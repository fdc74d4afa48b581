"""The rows that a walk over a tree runs side by side, and how many passes it makes; planned without a model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ropectl.evaluate.retrieval.prefix_tree import Node, build_tree
from ropectl.tasks.trial import Trial

#: Most tokens that the rows of a cache hold together; a prompt longer than this has one of its own.
MAX_BATCH_TOKENS = 8192

#: Tokens of a piece where there is a cache before it. transformers then makes a mask of all its pairs, and half of
#: the pairs inside the piece are computed in vain: shorter ones waste less, longer ones cost fewer calls.
PIECE = 512

#: Most entries of such a mask (a byte each).
MAX_MASK = 2**26


@dataclass(frozen=True)
class TreeRow:
    """A place in the tree: ``offset`` tokens of ``node`` are done. It continues row ``source`` of a cache."""

    source: int
    node: Node
    offset: int = 0

    @property
    def height(self) -> int:
        """Tokens of the longest path from here to a leaf."""
        return self.node.height - self.offset

    @property
    def rest(self) -> int:
        """Tokens of the node that are not done."""
        return len(self.node.tokens) - self.offset


def longest_piece(depth: int, chunk: int | None, longest: int) -> int:
    """Returns how many tokens a row may take at once.

    Args:
        depth: Tokens before them.
        chunk: Most tokens that were asked for.
        longest: Tokens of the longest prompt, for where no cache comes before them.
    """
    if depth == 0:
        return chunk or longest
    return max(1, min(chunk or PIECE, MAX_MASK // (depth + PIECE)))


def grouped(rows: Sequence[TreeRow], depth: int, max_batch_tokens: int) -> list[list[TreeRow]]:
    """Returns rows that end equally far away together, as many as a cache may hold; the longest last.

    Args:
        rows: Rows at one depth.
        depth: Tokens before them.
        max_batch_tokens: Most tokens that the rows of a cache hold together.
    """
    by_height: dict[int, list[TreeRow]] = defaultdict(list)
    for row in rows:
        by_height[row.height].append(row)
    groups: list[list[TreeRow]] = []
    for height in sorted(by_height):
        room = max_batch_tokens // (depth + height)
        taken = room + 1
        for row in by_height[height]:
            if taken + row.node.width > room:
                groups.append([])
                taken = 0
            groups[-1].append(row)
            taken += row.node.width
    return groups


def following(rows: Sequence[TreeRow], step: int) -> Iterator[TreeRow]:
    """Yields the rows that come after the next ``step`` tokens of each row."""
    for index, row in enumerate(rows):
        if row.rest > step:
            yield TreeRow(index, row.node, row.offset + step)
        else:
            yield from (TreeRow(index, child) for child in row.node.children)


def count_passes(trials: Sequence[Trial]) -> int:
    """Returns the passes of a walk over the tree of some trials; what has no known answer is generated to its full length."""
    longest = max(len(trial.input_ids) for trial in trials)

    def passes(rows: Sequence[TreeRow], depth: int) -> int:
        count = 0
        while rows:
            step = min(min(row.rest for row in rows), longest_piece(depth, None, longest))
            count, depth = count + 1, depth + step
            new = [trials[trial].max_new_tokens for row in rows if row.rest == step for trial in row.node.ends]
            count += -(-len(new) // max(1, MAX_BATCH_TOKENS // (depth + 1))) * max(new, default=0)
            *sides, rows = grouped(list(following(rows, step)), depth, MAX_BATCH_TOKENS) or [[]]
            count += sum(passes(side, depth) for side in sides)
        return count

    roots = [TreeRow(0, node) for node in build_tree(trials)]
    return sum(passes(group, 0) for group in grouped(roots, 0, MAX_BATCH_TOKENS))
