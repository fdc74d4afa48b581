"""Every target token counts once, however a step is cut into forward passes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from ropectl.train.data.batches import Batches, num_targets
from ropectl.train.data.samples import IGNORE, TrainingSample
from ropectl.train.engine.accelerator import make_accelerator
from ropectl.train.engine.engine import Engine
from ropectl.train.engine.loss import CausalLoss
from ropectl.train.settings import FinetuneSettings
from tests.conftest import make_model
from tests.train.runs import small_settings

pytestmark = pytest.mark.usefixtures("one_thread")

#: Sums of float32 gradients in another order (relative to the largest entry).
ORDER = 1e-5


class Uneven:
    """Sequences of very different lengths."""

    lengths = (10, 100, 3, 64, 37)

    def sample(self, index: int) -> TrainingSample:
        generator = torch.Generator().manual_seed(index)
        ids = torch.randint(1, 1000, (self.lengths[index % 5],), generator=generator).tolist()
        return TrainingSample(ids, [*ids[1:], IGNORE], None, "text")


def gradients(micro_batch: int, num_ranks: int = 1) -> dict[str, torch.Tensor]:
    """Gradients of one step of five sequences; ranks are played one after another."""
    settings = FinetuneSettings(device="cpu", batch_size=5)
    loss = CausalLoss(make_model())
    engine = Engine.prepare(make_accelerator(settings), loss, settings)
    ranks = [Batches(Uneven(), 5, micro_batch, rank, num_ranks) for rank in range(num_ranks)]  # type: ignore[arg-type]
    steps = [batches.step(0) for batches in ranks]
    assert len({len(step) for step in steps}) == 1
    total = sum(num_targets(step) for step in steps)
    assert total == sum(Uneven.lengths) - 5
    for step in steps:
        for batch in step:
            engine.backward(engine.loss(**batch), total)
    return {name: p.grad.clone() for name, p in engine.model.named_parameters() if p.grad is not None}


def expected() -> dict[str, torch.Tensor]:
    """The mean over all tokens, computed sequence by sequence from whole logits."""
    model = make_model()
    losses = []
    for index in range(5):
        sample = Uneven().sample(index)
        logits = model(torch.tensor([sample.input_ids])).logits[0, :-1]
        losses.append(F.cross_entropy(logits, torch.tensor(sample.input_ids[1:]), reduction="none"))
    torch.cat(losses).mean().backward()
    return {name: p.grad for name, p in model.named_parameters() if p.grad is not None}


@pytest.mark.parametrize(("micro_batch", "num_ranks"), [(1, 1), (2, 1), (5, 1), (1, 2), (2, 2), (3, 4)])
def test_gradients_are_those_of_the_mean_over_tokens(micro_batch: int, num_ranks: int) -> None:
    ours, theirs = gradients(micro_batch, num_ranks), expected()
    assert ours.keys() == theirs.keys()
    for name in theirs:
        assert (ours[name] - theirs[name]).abs().max() <= ORDER * theirs[name].abs().max(), name


@pytest.mark.process
def test_runs_agree(checkpoint: Callable[..., Path], tmp_path: Path) -> None:
    from ropectl.train.finetuning import finetune
    from tests.train.runs import losses

    source = checkpoint()
    options: dict[str, Any] = {"packing": "none", "batch_size": 6}
    for micro in (1, 4, 6):
        finetune(small_settings(source, tmp_path / f"m{micro}", micro_batch=micro, **options))
    one = losses(tmp_path / "m1")
    assert losses(tmp_path / "m4") == pytest.approx(one, rel=1e-4)
    assert losses(tmp_path / "m6") == pytest.approx(one, rel=1e-4)
