"""Batches, and what a model makes of them."""

from __future__ import annotations

import pytest
import torch

from ropectl.train.data.batches import collate
from ropectl.train.data.samples import IGNORE, TrainingSample
from tests.conftest import VOCABULARY, make_model

pytestmark = pytest.mark.usefixtures("one_thread")

#: A whole against a shorter batch, float32 (absolute, nats).
PADDED = 2e-5


def sample(ids: list[int], positions: list[int] | None = None, skips: bool = False) -> TrainingSample:
    return TrainingSample(ids, [*ids[1:], IGNORE], positions, "text", skips)


def random_ids(count: int, seed: int = 0) -> list[int]:
    ids: list[int] = torch.randint(1, VOCABULARY, (count,), generator=torch.Generator().manual_seed(seed)).tolist()
    return ids


def losses(samples: list[TrainingSample]) -> torch.Tensor:
    """Loss of every position, ``(B, T)``; 0 where there is no target."""
    batch = collate(samples)
    targets = batch.pop("targets")
    with torch.no_grad():
        logits = make_model()(**batch, use_cache=False).logits
    return torch.nn.functional.cross_entropy(logits.transpose(1, 2), targets, ignore_index=IGNORE, reduction="none")


def test_padding_is_on_the_right_and_no_target() -> None:
    batch = collate([sample([1, 2, 3]), sample([4])], pad_id=9)
    assert {name: value.tolist() for name, value in batch.items()} == {
        "input_ids": [[1, 2, 3], [4, 9, 9]],
        "targets": [[2, 3, IGNORE], [IGNORE, IGNORE, IGNORE]],
    }
    assert all(value.dtype == torch.int64 for value in batch.values())


def test_positions_are_there_if_a_sample_has_some() -> None:
    batch = collate([sample([1, 2, 3, 4]), sample([1, 2, 3], [0, 1, 0])])
    assert batch["position_ids"].tolist() == [[0, 1, 2, 3], [0, 1, 0, 1]]
    assert "attention_mask" not in batch


def test_a_mask_is_there_if_positions_skip() -> None:
    batch = collate([sample([1, 2, 3], [0, 7, 8], skips=True), sample([1])])
    assert batch["position_ids"].tolist() == [[0, 7, 8], [0, 1, 2]]
    assert batch["attention_mask"].tolist() == [[1, 1, 1], [1, 1, 1]]


@pytest.mark.parametrize("positions", [None, [*range(10), *range(14)]])
def test_padding_changes_no_loss(positions: list[int] | None) -> None:
    """Without a mask: causal attention sees nothing behind a token."""
    short = sample(random_ids(24), positions)
    alone = losses([short])[0]
    together = losses([short, sample(random_ids(40, seed=1))])[0]
    torch.testing.assert_close(together[:24], alone, atol=PADDED, rtol=0)
    assert not together[24:].any()


def test_isolated_documents_do_not_see_each_other() -> None:
    """Changing document A leaves the losses of B unchanged, in transformers' own packed sequences; concat does not."""
    a, b, other = random_ids(30), random_ids(34, seed=1), random_ids(30, seed=2)
    restarts = [*range(30), *range(34)]

    def block(first: list[int], positions: list[int] | None) -> TrainingSample:
        targets = [*first[1:], IGNORE, *b[1:], IGNORE]
        return TrainingSample(first + b, targets, positions, "text")

    before, after = losses([block(a, restarts)])[0], losses([block(other, restarts)])[0]
    assert torch.equal(before[30:], after[30:]) and not torch.equal(before[:29], after[:29])
    torch.testing.assert_close(before[30:], losses([sample(b)])[0], atol=PADDED, rtol=0)
    joined, changed = losses([block(a, None)])[0], losses([block(other, None)])[0]
    assert not torch.equal(joined[30:], changed[30:])


def test_isolation_holds_beside_longer_and_shorter_samples() -> None:
    a, b, other = random_ids(12), random_ids(20, seed=1), random_ids(12, seed=2)
    beside = [sample(random_ids(8, seed=3)), sample(random_ids(40, seed=4))]
    restarts = [*range(12), *range(20)]
    rows = [losses([sample(first + b, restarts), *beside]) for first in (a, other)]
    assert torch.equal(rows[0][0, 12:], rows[1][0, 12:]) and torch.equal(rows[0][1:], rows[1][1:])
