"""Negative log-likelihood of every token, without ever holding the logits of a whole sequence.

Legend: B batch, T tokens, V vocabulary, H hidden size.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ropectl.errors import MeasurementError
from ropectl.hf.model.allocator import map_large_blocks
from ropectl.hf.model.cache import cache_name
from ropectl.hf.model.roomy_cache import make_room

#: Logit entries turned into losses at a time: 2^23 float32 values are 32 MiB.
LOGITS_PER_CHUNK = 2**23

#: Prefill chunk where hidden states cannot be used and whole logits must be computed [tokens].
FALLBACK_PREFILL_CHUNK = 512

_PROBE_LENGTH = 8
_PROBE_TOLERANCE = 1e-4


@dataclass(frozen=True)
class Scorer:
    """Runs one model for its token losses.

    Attributes:
        model: A causal language model of transformers.
        prefill_chunk: Tokens per forward pass, with a key-value cache between; None for one pass, which
            needs no attention mask and so keeps the fast kernels.
        reads_hidden: Whether logits are the output head applied to hidden states, nothing between.
    """

    model: Any
    prefill_chunk: int | None
    reads_hidden: bool

    @classmethod
    def of(cls, model: Any, prefill_chunk: int | None = None) -> Scorer:
        """Returns a scorer, having checked how this model turns hidden states into logits.

        Some families scale or cap their logits behind the head. They are found by comparing both ways
        on a few tokens, and then scored from the model's own logits, chunk by chunk.

        Raises:
            MeasurementError: If chunks are asked for and this model computes other numbers in them.
        """
        from ropectl.evaluate.pieces import Pieces  # which knows losses by this module

        map_large_blocks()  # else the logits of each chunk leave a hole of their size behind
        reads_hidden = head_is_last(model)
        if prefill_chunk is None and reads_hidden:
            return cls(model, None, reads_hidden)
        if Pieces.of(model).shares:
            limit = prefill_chunk or FALLBACK_PREFILL_CHUNK
            return cls(model, limit if reads_hidden else min(limit, FALLBACK_PREFILL_CHUNK), reads_hidden)
        if prefill_chunk is None:
            return cls(model, None, reads_hidden)
        raise MeasurementError(
            f"{type(model).__name__} cannot be run in pieces: against its cache it computes other numbers than in one pass.",
            "Leave out --prefill-chunk.",
        )

    @torch.no_grad()
    def token_nll(self, input_ids: Tensor) -> Tensor:
        """Returns the loss of every token given those before it.

        Args:
            input_ids: (B, T) token ids without padding; the first column is never a target.

        Returns:
            (B, T - 1) float32 on the CPU [nats]; column j is the loss of token j + 1.
        """
        losses = []
        for start, states in self._prefill(input_ids[:, :-1].to(self.model.device)):
            targets = input_ids[:, start + 1 : start + 1 + states.shape[1]].to(states.device)
            losses.append(self._chunked_nll(states, targets).cpu())
        return torch.cat(losses, dim=1)

    @torch.no_grad()
    def last_nll(self, input_ids: Tensor, num_last: int) -> Tensor:
        """Returns the losses of the last ``num_last`` tokens, shape (B, num_last), float32 on the CPU [nats]."""
        states = self._last_states(input_ids, num_last)
        return self._chunked_nll(states, input_ids[:, -num_last:].to(states.device)).cpu()

    @torch.no_grad()
    def last_logits(self, input_ids: Tensor, num_last: int) -> Tensor:
        """Returns the logits that predict the last ``num_last`` tokens, shape (B, num_last, V), float32.

        Args:
            input_ids: (B, T) token ids without padding.
            num_last: How many tokens at the end are to be predicted, in [1, T - 1].
        """
        return self._logits(self._last_states(input_ids, num_last))

    def _last_states(self, input_ids: Tensor, num_last: int) -> Tensor:
        first = input_ids.shape[1] - 1 - num_last  # position whose state predicts the first wanted token
        chunks = self._prefill(input_ids[:, :-1].to(self.model.device), first)
        return torch.cat([states[:, max(0, first - start) :] for start, states in chunks], dim=1)

    def _prefill(self, input_ids: Tensor, first: int = 0) -> Iterator[tuple[int, Tensor]]:
        """Yields (start, states) for each chunk that reaches position ``first``; the others only fill the cache.

        States are hidden (B, t, H), or logits (B, t, V) in the fallback.
        """
        if self.prefill_chunk is None or input_ids.shape[1] <= self.prefill_chunk:
            yield 0, self._states(input_ids, use_cache=False)[0]
            return
        cache = None
        for start in range(0, input_ids.shape[1], self.prefill_chunk):
            chunk = input_ids[:, start : start + self.prefill_chunk]
            wanted = start + chunk.shape[1] > first
            states, cache = self._states(chunk, use_cache=True, cache=cache, all_logits=wanted)
            if start == 0:
                make_room(cache, input_ids.shape[1])
            if wanted:
                yield start, states

    def _states(
        self, input_ids: Tensor, use_cache: bool, cache: Any = None, all_logits: bool = True
    ) -> tuple[Tensor, Any]:
        run = self.model.get_decoder() if self.reads_hidden else self.model
        name = cache_name(run)
        options = {} if self.reads_hidden or all_logits else {"logits_to_keep": 1}
        output = run(input_ids=input_ids, use_cache=use_cache, **{name: cache}, **options)
        return (output.last_hidden_state if self.reads_hidden else output.logits), output[name] if use_cache else None

    def _logits(self, states: Tensor) -> Tensor:
        return (self.model.get_output_embeddings()(states) if self.reads_hidden else states).float()

    def _chunked_nll(self, states: Tensor, targets: Tensor) -> Tensor:
        vocabulary = self.model.get_output_embeddings().weight.shape[0]
        step = max(1, LOGITS_PER_CHUNK // (vocabulary * states.shape[0]))
        parts = []
        for start in range(0, states.shape[1], step):
            logits = self._logits(states[:, start : start + step])
            part = targets[:, start : start + step]
            # Flat, so that the vocabulary is the last dimension: over any other, torch sums its exponentials
            # one by one in float32 on the CPU, which is off by 1e-4 nats for 49k tokens.
            parts.append(F.cross_entropy(logits.flatten(0, 1), part.flatten(), reduction="none").view_as(part))
        return torch.cat(parts, dim=1)


@torch.no_grad()
def head_is_last(model: Any) -> bool:
    """Returns whether logits are the output head applied to the decoder's hidden states, nothing between."""
    vocabulary = model.get_output_embeddings().weight.shape[0]
    ids = torch.arange(_PROBE_LENGTH, device=model.device).remainder(vocabulary).unsqueeze(0)
    logits = model(input_ids=ids, use_cache=False).logits.float()
    decoder = model.get_decoder()
    if isinstance(decoder, torch.nn.Linear):  # ModernBERT calls its head so
        return False
    hidden = getattr(decoder(input_ids=ids, use_cache=False), "last_hidden_state", None)
    if hidden is None:  # the decoders of some multimodal families are language models with a head of their own
        return False
    direct = model.get_output_embeddings()(hidden).float()
    return direct.shape == logits.shape and torch.allclose(direct, logits, rtol=_PROBE_TOLERANCE, atol=_PROBE_TOLERANCE)
