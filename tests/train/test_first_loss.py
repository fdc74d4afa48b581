"""What is in force is what is said: the rotary tables in one line, and a loss that wrapping must not change."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from ropectl.hf.model.rotary import rotary_module
from ropectl.reporter import Reporter
from ropectl.train.checks.first_loss import FirstLoss
from ropectl.train.context_parallel.sharing import Sharing
from ropectl.train.data.samples import IGNORE, TrainingSample
from ropectl.train.engine.engine import Engine
from ropectl.train.engine.loss import CausalLoss
from ropectl.train.finetuning import finetune
from tests.conftest import make_model
from tests.train.runs import small_settings


@pytest.mark.parametrize(("factor", "is_told"), [(1.0, False), (1.005, False), (1.02, True), (float("nan"), True)])
def test_another_loss_than_the_bare_model_is_told(factor: float, is_told: bool) -> None:
    ids = list(range(3, 60))
    data: Any = SimpleNamespace(sample=lambda index: TrainingSample(ids, [*ids[1:], IGNORE], None, "text"))
    loss = CausalLoss(make_model())
    first = FirstLoss.of(loss, data)
    logits = make_model()(torch.tensor([ids])).logits[0, :-1]
    assert first.value == pytest.approx(
        torch.nn.functional.cross_entropy(logits, torch.tensor(ids[1:])).item(), rel=1e-5
    )
    engine: Any = SimpleNamespace(
        accelerator=SimpleNamespace(device=torch.device("cpu")),
        loss=lambda **batch: loss(**batch) * factor,
        sum=lambda value: [value],
    )
    assert bool(first.compare(engine, Sharing(0, 1))) == is_told


@pytest.mark.process
def test_the_tables_in_force_are_said_and_checked(
    checkpoint: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, reporter = checkpoint(), Reporter()
    finetune(small_settings(source, tmp_path / "out", steps=1, factor=4), reporter)
    assert "rope: yarn x4 orig=128 base=10000 attn=1.138629" in reporter.notes

    prepare = Engine.prepare.__func__  # type: ignore[attr-defined]

    def spoiling(cls: Any, *arguments: Any) -> Any:
        """An engine that rounds the tables, as casting a whole model does."""
        engine = prepare(cls, *arguments)
        module = rotary_module(engine.model)
        module.inv_freq = module.inv_freq.to(torch.bfloat16)
        return engine

    monkeypatch.setattr(Engine, "prepare", classmethod(spoiling))
    from ropectl.errors import PatchError

    with pytest.raises(PatchError, match="not float32"):
        finetune(small_settings(source, tmp_path / "spoilt", steps=1))
