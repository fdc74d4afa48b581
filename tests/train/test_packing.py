"""Block plans against the plain way to make them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropectl.errors import DataError
from ropectl.train.data.packing import PACKINGS, Piece, min_lone_piece, plan_blocks


def naive_joined(lengths: list[int], seq_len: int) -> tuple[list[list[Piece]], int]:
    """One token after the other."""
    blocks: list[list[Piece]] = []
    stream: list[tuple[int, int]] = []
    for document, length in enumerate(lengths):
        start = 0
        while start + seq_len <= length:
            blocks.append([Piece(document, start, start + seq_len)])
            start += seq_len
        stream += [(document, place) for place in range(start, length)]
    while len(stream) >= seq_len:
        block: list[Piece] = []
        for document, place in stream[:seq_len]:
            if block and block[-1].document == document:
                block[-1] = block[-1]._replace(stop=place + 1)
            else:
                block.append(Piece(document, place, place + 1))
        blocks.append(block)
        stream = stream[seq_len:]
    return blocks, len(stream)


def naive_alone(lengths: list[int], seq_len: int) -> tuple[list[list[Piece]], int]:
    blocks: list[list[Piece]] = []
    dropped = 0
    for document, length in enumerate(lengths):
        for start in range(0, length, seq_len):
            stop = min(start + seq_len, length)
            if stop - start == seq_len or stop - start >= max(2, min(64, seq_len // 2)):
                blocks.append([Piece(document, start, stop)])
            else:
                dropped += stop - start
    return blocks, dropped


@pytest.mark.process
@given(st.lists(st.integers(0, 40), max_size=30), st.integers(2, 17), st.sampled_from(PACKINGS))
def test_plan_is_what_a_loop_makes(lengths: list[int], seq_len: int, packing: str) -> None:
    expected, dropped = (naive_alone if packing == "none" else naive_joined)(lengths, seq_len)
    if not expected:
        with pytest.raises(DataError):
            plan_blocks(np.array(lengths, dtype=np.int64), seq_len, packing)
        return
    plan = plan_blocks(np.array(lengths, dtype=np.int64), seq_len, packing)
    assert [plan.pieces(block) for block in range(plan.num_blocks)] == expected
    assert plan.num_dropped_tokens == dropped
    assert plan.num_tokens + dropped == sum(lengths)


def test_dropped_ends_of_documents_are_counted() -> None:
    lengths = np.array([5, 3, 1, 9, 2])  # remainders of 4: 1, 3, 1, 1, 2, so blocks of 4, 4; none left
    assert plan_blocks(lengths, 4, "concat").num_dropped_pieces == 0
    plan = plan_blocks(np.array([5, 3, 3, 3]), 4, "concat")  # 1, 3 | 3, 1 + 2
    assert (plan.num_dropped_tokens, plan.num_dropped_pieces) == (2, 1)
    plan = plan_blocks(lengths, 4, "none")  # 1, 1, 1 are below 2
    assert (plan.num_dropped_tokens, plan.num_dropped_pieces) == (3, 3)


def test_thirty_and_thirty_four_tokens_make_one_block_of_64() -> None:
    plan = plan_blocks(np.array([30, 34]), 64, "concat")
    assert plan.num_blocks == 1 and plan.pieces(0) == [Piece(0, 0, 30), Piece(1, 0, 34)]


def test_a_lone_piece_has_at_least_two_tokens() -> None:
    assert [min_lone_piece(seq_len) for seq_len in (2, 3, 8, 128, 1000, 10**6)] == [2, 2, 4, 64, 64, 64]


def test_no_block_is_refused_with_the_counts() -> None:
    with pytest.raises(DataError, match=r"1024 tokens.*2 documents, 300 tokens.*longest 200") as caught:
        plan_blocks(np.array([100, 200]), 1024, "concat")
    assert "--seq-len (at most 300)" in caught.value.hint and "--packing none" in caught.value.hint
    with pytest.raises(DataError) as caught:
        plan_blocks(np.array([30] * 100), 1024, "none")
    assert "--packing concat" in caught.value.hint and "(at most 30)" in caught.value.hint
    with pytest.raises(DataError, match="0 documents"):
        plan_blocks(np.array([], dtype=np.int64), 16, "isolated")


def test_what_the_hint_says_works() -> None:
    assert plan_blocks(np.array([100, 200]), 300, "concat").num_blocks == 1
    with pytest.raises(DataError):
        plan_blocks(np.array([100, 200]), 301, "concat")
    assert plan_blocks(np.array([100, 200]), 1024, "none").num_blocks == 2
    assert plan_blocks(np.array([30] * 100), 30, "none").num_blocks == 100
