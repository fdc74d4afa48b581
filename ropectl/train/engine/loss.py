"""Computes the summed loss of tokens without ever holding the logits of a whole sequence.

Accelerate wraps the module below: its forward holds both the decoder and the output head, so that the hooks of DDP
and FSDP2 see one call. Hidden states become losses in chunks whose logits are computed again in the backward pass:
only the logits of one chunk exist at a time, at the price of one more product with the head.

Legend: B batch, T tokens, V vocabulary, H hidden size.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from ropectl.evaluate.forward import head_is_last, logits_at_once
from ropectl.train.data.samples import IGNORE


class CausalLoss(nn.Module):
    """A causal language model whose forward pass returns a loss.

    Args:
        model: A causal language model of transformers, its rotary tables in force.
        chunk: Tokens of a batch row whose logits exist at a time; 0 for all, None to choose.
    """

    def __init__(self, model: Any, chunk: int | None = None) -> None:
        super().__init__()
        self.model = model
        self.chunk = chunk
        #: Whether logits are the head applied to hidden states. Families that scale or cap them after the head
        #: are asked for their own logits, which then exist whole.
        self.reads_hidden = head_is_last(model)
        self._no_split_modules = getattr(model, "_no_split_modules", None)  # what FSDP2 wraps one by one

    def tie_weights(self) -> None:
        """Ties embedding and head again; accelerate asks for it after it has moved a model."""
        self.model.tie_weights()

    def forward(
        self,
        input_ids: Tensor,
        targets: Tensor,
        position_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
    ) -> Tensor:
        """Returns the sum of the losses of all targets [nats], a float32 scalar.

        Args:
            input_ids: (B, T) tokens.
            targets: (B, T) the token that each position has to predict, already shifted; IGNORE for none.
            position_ids: (B, T) positions; 0 to T - 1 without it.
            attention_mask: (B, T) ones, needed only where positions jump inside one sequence.
        """
        inputs = {"input_ids": input_ids, "position_ids": position_ids, "attention_mask": attention_mask}
        inputs = {name: value for name, value in inputs.items() if value is not None}
        if not self.reads_hidden:
            logits = self.model(**inputs, use_cache=False).logits
            return self._sum(nn.Identity(), logits, targets)
        hidden = self.model.get_decoder()(**inputs, use_cache=False).last_hidden_state
        return self._sum(self.model.get_output_embeddings(), hidden, targets)

    def _sum(self, head: nn.Module, states: Tensor, targets: Tensor) -> Tensor:
        batch, length = targets.shape
        step = (logits_at_once(self.model, batch) if self.chunk is None else self.chunk) or length
        total = torch.zeros((), device=states.device)
        for start in range(0, length, step):
            part, wanted = (tensor[:, start : start + step] for tensor in (states, targets))
            if step < length and torch.is_grad_enabled():  # a single chunk would be computed twice for nothing
                total = total + checkpoint(_nll_sum, head, part, wanted, use_reentrant=False)
            else:
                total = total + _nll_sum(head, part, wanted)
        return total


def _nll_sum(head: nn.Module, states: Tensor, targets: Tensor) -> Tensor:
    # Flat, so that the vocabulary is the last dimension: over any other, torch sums less exactly on the CPU.
    logits = head(states).float().flatten(0, 1)
    return F.cross_entropy(logits, targets.flatten(), ignore_index=IGNORE, reduction="sum")
