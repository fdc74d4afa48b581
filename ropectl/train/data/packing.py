"""Cuts documents into training blocks: plans which tokens of which document are in which block.

A plan is arithmetic on lengths alone, as arrays: no token is read for it, and millions of documents are planned in a
second.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ropectl.errors import DataError

PACKINGS = ("concat", "isolated", "none")

#: A last piece of this length is always long enough on its own [tokens]; shorter ones teach little and cost a step.
MIN_LONE_PIECE = 64


class Piece(NamedTuple):
    """Consecutive tokens of a document: from ``start`` up to but not including ``stop``."""

    document: int
    start: int
    stop: int


@dataclass(frozen=True)
class BlockPlan:
    """Blocks as pieces of documents.

    Attributes:
        documents: Document of each piece, ``(pieces,)``.
        starts: First token of each piece in its document, ``(pieces,)`` [tokens].
        stops: One past its last token, ``(pieces,)`` [tokens].
        offsets: Pieces of block b are ``offsets[b]`` to ``offsets[b + 1] - 1``, ``(num_blocks + 1,)``.
        num_dropped_tokens: Tokens that are in no block.
        num_dropped_pieces: Ends of documents that are in no block, or not wholly.
    """

    documents: np.ndarray
    starts: np.ndarray
    stops: np.ndarray
    offsets: np.ndarray
    num_dropped_tokens: int
    num_dropped_pieces: int

    @property
    def num_blocks(self) -> int:
        """The number of blocks."""
        return len(self.offsets) - 1

    @property
    def num_tokens(self) -> int:
        """Tokens in all blocks."""
        return int((self.stops - self.starts).sum())

    def pieces(self, block: int) -> list[Piece]:
        """Returns the pieces of a block, in order."""
        part = slice(self.offsets[block], self.offsets[block + 1])
        rows = zip(self.documents[part], self.starts[part], self.stops[part], strict=True)
        return [Piece(int(document), int(start), int(stop)) for document, start, stop in rows]


def min_lone_piece(seq_len: int) -> int:
    """Returns the least length of a document's last piece where pieces are not joined [tokens]: half a block, but 2 to 64."""
    return max(2, min(MIN_LONE_PIECE, seq_len // 2))


def plan_blocks(lengths: np.ndarray, seq_len: int, packing: str) -> BlockPlan:
    """Returns the blocks of a text.

    ``concat`` first cuts from every document as many whole blocks as it has, so that long documents stay
    contiguous; what remains of the documents is joined, in order, into further whole blocks. Only the
    end that fills no block is dropped. ``isolated`` makes the same blocks; the pieces in them are then
    kept apart. ``none`` joins nothing: whole blocks, and a document's last piece if it has at least
    :func:`min_lone_piece` tokens.

    Args:
        lengths: Tokens of each document, ``(documents,)``.
        seq_len: Tokens of a block, at least 2.
        packing: One of ``PACKINGS``.

    Raises:
        DataError: If the text gives no block, with the counts.
    """
    lengths = np.asarray(lengths, dtype=np.int64)
    plan = _separate(lengths, seq_len) if packing == "none" else _joined(lengths, seq_len)
    if plan.num_blocks == 0:
        raise _no_block(lengths, seq_len, packing)
    return plan


def _whole_blocks(lengths: np.ndarray, seq_len: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns document and first token of every block that lies within one document."""
    counts = lengths // seq_len
    documents = np.repeat(np.arange(len(lengths)), counts)
    first = np.cumsum(counts) - counts
    return documents, (np.arange(len(documents)) - first[documents]) * seq_len


def _joined(lengths: np.ndarray, seq_len: int) -> BlockPlan:
    documents, starts = _whole_blocks(lengths, seq_len)
    rest = lengths % seq_len
    kept = np.flatnonzero(rest)
    ends = np.cumsum(rest[kept])  # in the stream of all remainders
    total = int(ends[-1]) if len(ends) else 0
    used = total - total % seq_len
    # A piece ends where a remainder ends and where a block does.
    edges = np.sort(np.concatenate([ends[ends < used], np.arange(0, used + 1, seq_len)]), kind="stable")
    edges = edges[np.flatnonzero(np.diff(edges, prepend=-1))]
    owner = np.searchsorted(ends, edges[:-1], side="right")
    into = edges[:-1] - (ends[owner] - rest[kept][owner])
    joined_starts = (lengths - rest)[kept][owner] + into
    joined_offsets = np.searchsorted(edges, np.arange(0, used + 1, seq_len))
    return BlockPlan(
        documents=np.concatenate([documents, kept[owner]]),
        starts=np.concatenate([starts, joined_starts]),
        stops=np.concatenate([starts + seq_len, joined_starts + np.diff(edges)]),
        offsets=np.concatenate([np.arange(len(documents)), len(documents) + joined_offsets]),
        num_dropped_tokens=total - used,
        num_dropped_pieces=int((ends > used).sum()),
    )


def _separate(lengths: np.ndarray, seq_len: int) -> BlockPlan:
    documents, starts = _whole_blocks(lengths, seq_len)
    rest = lengths % seq_len
    kept = np.flatnonzero(rest >= min_lone_piece(seq_len))
    documents = np.concatenate([documents, kept])
    starts = np.concatenate([starts, (lengths - rest)[kept]])
    stops = np.minimum(starts + seq_len, lengths[documents])
    order = np.lexsort((starts, documents))  # the source's order
    dropped = (rest > 0) & (rest < min_lone_piece(seq_len))
    return BlockPlan(
        documents=documents[order],
        starts=starts[order],
        stops=stops[order],
        offsets=np.arange(len(documents) + 1),
        num_dropped_tokens=int(rest[dropped].sum()),
        num_dropped_pieces=int(dropped.sum()),
    )


def _no_block(lengths: np.ndarray, seq_len: int, packing: str) -> DataError:
    total, longest = int(lengths.sum()), int(lengths.max(initial=0))
    enough = total if packing != "none" else longest
    ways = []
    if enough >= 2:
        ways.append(f"a shorter --seq-len (at most {enough})")
    if packing == "none" and total >= seq_len:
        ways.append("--packing concat")
    if packing != "none" and longest >= min_lone_piece(seq_len):
        ways.append("--packing none")
    return DataError(
        f"The text gives no block of {seq_len} tokens with packing {packing}: {len(lengths)} documents, "
        f"{total} tokens together, the longest {longest}.",
        f"Give {', '.join([*ways, 'or more text' if ways else 'more text'])}.",
    )
