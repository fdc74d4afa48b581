"""Checks on a few tokens that the model's attention spans what positions are meant to say.

transformers reads a jump in positions as the border between packed sequences, unless an attention mask says that
all tokens belong together. Training with skipped positions needs the second reading, isolated documents the first;
changing the first token shows what a model class really does.
"""

from __future__ import annotations

from typing import Any

import torch

from ropectl.errors import UnsupportedModelError

_HALF = 8


@torch.no_grad()
def check_positions(model: Any, packing: str, positions: str) -> None:
    """Checks that the model attends across skipped positions, and not across isolated documents.

    Args:
        model: A causal language model in evaluation mode, its rotary tables in force; every rank must check it.
        packing: How documents fill sequences.
        positions: The position policy.

    Raises:
        UnsupportedModelError: If the training needs another reading.
    """
    ids = torch.arange(1, 2 * _HALF + 1, device=model.device).unsqueeze(0)
    other = ids.clone()
    other[0, 0] += 1
    first = torch.arange(_HALF, device=model.device)
    if positions == "pose":
        jump = torch.cat([first, first + 3 * _HALF]).unsqueeze(0)
        if not _reaches(model, ids, other, position_ids=jump, attention_mask=torch.ones_like(ids)):
            raise UnsupportedModelError(
                f"{type(model).__name__} does not attend across skipped positions: positions = pose would train nothing long.",
                "Use --positions contiguous, or another --attention.",
            )
    if packing == "isolated" and _reaches(model, ids, other, position_ids=torch.cat([first, first]).unsqueeze(0)):
        raise UnsupportedModelError(
            f"{type(model).__name__} attends from one packed document to another: packing = isolated is not possible.",
            "Use --packing none or concat, or another --attention.",
        )


def _reaches(model: Any, ids: torch.Tensor, other: torch.Tensor, **inputs: torch.Tensor) -> bool:
    """Returns whether the last position sees the first token."""
    one, two = (
        model.get_decoder()(input_ids=i, use_cache=False, **inputs).last_hidden_state[0, -1] for i in (ids, other)
    )
    return not torch.equal(one, two)
