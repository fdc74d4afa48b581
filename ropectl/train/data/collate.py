"""Samples to tensors. Legend: B samples, T tokens of the longest."""

from __future__ import annotations

import torch

from ropectl.train.data.samples import IGNORE, TrainingSample


def collate(samples: list[TrainingSample], pad_id: int = 0) -> dict[str, torch.Tensor]:
    """Returns a batch, padded on the right.

    Args:
        samples: At least one.
        pad_id: The token of the padding; any will do.

    Returns:
        ``input_ids`` and ``targets``, ``(B, T)`` int64, padding never a target. ``position_ids``, ``(B, T)``
        int64, only if a sample has some. ``attention_mask``, ``(B, T)`` int64 ones, only if positions skip.
    """
    length = max(len(sample.input_ids) for sample in samples)
    # No mask hides the padding, and none is needed: with causal attention a token sees only what stands
    # before it, and padding stands behind every token whose loss counts. Without a mask, attention keeps its
    # fast kernels.
    batch = {
        "input_ids": torch.tensor([_padded(sample.input_ids, length, pad_id) for sample in samples]),
        "targets": torch.tensor([_padded(sample.targets, length, IGNORE) for sample in samples]),
    }
    if any(sample.position_ids is not None for sample in samples):
        batch["position_ids"] = torch.tensor([_position_ids(sample, length) for sample in samples])
    if any(sample.skips for sample in samples):
        # Without a mask, transformers reads a jump in position_ids as the border between packed sequences
        # and cuts attention there: positions that skip would train on nothing long.
        batch["attention_mask"] = torch.ones_like(batch["input_ids"])
    return batch


def _padded(values: list[int], length: int, filling: int) -> list[int]:
    return values + [filling] * (length - len(values))


def _position_ids(sample: TrainingSample, length: int) -> list[int]:
    """Positions that count on through the padding, so that it looks like no new sequence."""
    own = sample.position_ids if sample.position_ids is not None else list(range(len(sample.input_ids)))
    return own + list(range(own[-1] + 1, own[-1] + 1 + length - len(own)))
