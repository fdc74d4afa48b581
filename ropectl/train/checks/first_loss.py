"""Compares the loss before and after the model is wrapped: wrapping and mixed precision must not change it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch

from ropectl.train.context_parallel.sharing import Sharing
from ropectl.train.data.batches import Batch, collate, num_targets
from ropectl.train.data.samples import TrainingData
from ropectl.train.engine.engine import Engine
from ropectl.train.engine.loss import CausalLoss

#: Largest relative difference without a warning.
TOLERANCE = 1e-2

#: Tokens of the first sequence that are compared.
_LENGTH = 512


@dataclass(frozen=True)
class FirstLoss:
    """The mean loss of a bare model on the beginning of the first sequence.

    Attributes:
        batch: The beginning of the sequence.
        value: Its loss [nats a token].
    """

    batch: Batch
    value: float

    @classmethod
    @torch.no_grad()
    def of(cls, loss: CausalLoss, data: TrainingData) -> FirstLoss:
        """Measures the bare model."""
        sample = data.sample(0)
        positions = sample.position_ids[:_LENGTH] if sample.position_ids is not None else None
        cut = replace(
            sample, input_ids=sample.input_ids[:_LENGTH], targets=sample.targets[:_LENGTH], position_ids=positions
        )
        batch = collate([cut])
        device = loss.model.device
        with _attention_of_any_device(loss.model):
            value = loss(**{name: tensor.to(device) for name, tensor in batch.items()}).item()
        return cls(batch, value / max(1, num_targets([batch])))

    @torch.no_grad()
    def compare(self, engine: Engine, sharing: Sharing) -> list[str]:
        """Returns a warning if the wrapped model has another loss; every rank must call it.

        Args:
            engine: The wrapped model, attending across the ranks that share a sequence.
            sharing: This rank's place among them.
        """
        device: Any = engine.accelerator.device
        part = {name: tensor.to(device) for name, tensor in sharing.part(self.batch).items()}
        value = engine.sum(engine.loss(**part).item())[0] / sharing.data_size / max(1, num_targets([self.batch]))
        if abs(value - self.value) <= TOLERANCE * self.value:
            return []
        return [
            f"The first loss is {value:.4f} under this engine and precision, but {self.value:.4f} in the bare model: "
            "the arithmetic differs. Compare with --precision fp32."
        ]


@contextmanager
def _attention_of_any_device(model: Any) -> Iterator[None]:
    """Replaces flash attention, which needs a GPU and half precision, while the context lasts.

    The bare model may still be on the CPU, to be sharded, and its weights are float32 where all are trained.
    """
    before = model.config._attn_implementation
    if "flash" not in str(before):
        yield
        return
    model.set_attn_implementation("sdpa")
    try:
        yield
    finally:
        model.set_attn_implementation(before)
