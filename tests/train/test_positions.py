"""Position policies: what they cover, and that attention really crosses the skips."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ropectl.train.data.batches import collate
from ropectl.train.data.positions import POLICIES
from ropectl.train.data.samples import IGNORE, TrainingSample
from tests.conftest import VOCABULARY, make_model

pytestmark = pytest.mark.usefixtures("one_thread")


@given(st.integers(1, 40), st.integers(0, 60), st.integers(2, 5), st.integers())
def test_pose_ascends_from_zero_below_the_target(length: int, more: int, chunks: int, seed: int) -> None:
    positions = POLICIES["pose"].draw(random.Random(seed), length, length + more, chunks)
    assert len(positions) == length and positions[0] == 0 and positions[-1] <= length + more - 1
    steps = [after - before for before, after in pairwise(positions)]
    assert all(step >= 1 for step in steps) and sum(step > 1 for step in steps) <= chunks - 1


@pytest.mark.parametrize("chunks", [2, 3])
def test_pose_covers_every_position_of_the_target(chunks: int) -> None:
    rng = random.Random(0)
    seen: Counter[int] = Counter()
    skips: Counter[int] = Counter()
    for _ in range(4000):
        positions = POLICIES["pose"].draw(rng, 16, 64, chunks)
        seen.update(positions)
        skips.update([positions[-1] - 15])
    assert set(seen) == set(range(64))
    assert set(skips) == set(range(49)), "the last chunk is moved by anything from nothing to all there is room for"


def test_two_chunks_are_moved_evenly() -> None:
    """As in the paper: u_1 is uniform over 0 to target - length."""
    rng = random.Random(1)
    draws = 20_000
    counts = Counter(POLICIES["pose"].draw(rng, 8, 17, 2)[-1] - 7 for _ in range(draws))
    assert sorted(counts) == list(range(10))
    sigma = (draws * 0.1 * 0.9) ** 0.5
    assert all(abs(count - draws / 10) < 5 * sigma for count in counts.values())


def test_contiguous_counts() -> None:
    policy = POLICIES["contiguous"]
    assert policy.draw(random.Random(0), 5, 50, 2) == [0, 1, 2, 3, 4] and not policy.skips


def last_hidden(ids: list[int], positions: list[int], mask: bool) -> torch.Tensor:
    sample = TrainingSample(ids, [IGNORE] * len(ids), positions, "text", skips=mask)
    batch = collate([sample])
    targets = batch.pop("targets")
    assert ("attention_mask" in batch) == mask and targets.shape == batch["input_ids"].shape
    with torch.no_grad():
        hidden: torch.Tensor = make_model().model(**batch, use_cache=False).last_hidden_state[0, -1]
    return hidden


def test_attention_crosses_a_skip_with_a_mask_and_not_without() -> None:
    """transformers takes a jump for the start of another packed sequence, unless there is a mask."""
    generator = torch.Generator().manual_seed(3)
    ids = torch.randint(1, VOCABULARY, (32,), generator=generator).tolist()
    changed = [(ids[0] + 1) % VOCABULARY, *ids[1:]]
    positions = [*range(16), *range(80, 96)]
    assert not torch.equal(last_hidden(ids, positions, True), last_hidden(changed, positions, True))
    assert torch.equal(last_hidden(ids, positions, False), last_hidden(changed, positions, False))
