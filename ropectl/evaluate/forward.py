"""The forward pass of one model: tokens in, hidden states, logits or losses out.

The logits of a whole sequence never exist together, and a long sequence can be run piece by piece against a cache,
if that gives the numbers of one pass. What has to be tried out on a model is tried out once.

Legend: B batch, T tokens, V vocabulary, H hidden size.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import torch
import torch.nn.functional as F
from torch import Tensor

from ropectl.errors import MeasurementError
from ropectl.hf.model.cache import branch, cache_name, can_crop, crop, make_room
from ropectl.memory import map_large_blocks

#: Logit entries turned into losses at a time: 2^23 float32 values are 32 MiB.
LOGITS_PER_CHUNK = 2**23

#: Prefill chunk where hidden states cannot be used and whole logits must be computed [tokens].
FALLBACK_PREFILL_CHUNK = 512

_HEAD_PROBE_LENGTH = 8
_HEAD_TOLERANCE = 1e-4

_PIECES_PROBE_LENGTH = 12
_PIECES_CUT = 7
_PIECES_TOLERANCE = 1e-3


@dataclass(frozen=True)
class Forward:
    """Runs one model.

    Attributes:
        model: A causal language model of transformers.
        prefill_chunk: Most tokens of a row per forward pass, with a key-value cache between; None for what suits
            the measurement: whole windows for losses, which need no attention mask and so keep the fast kernels.
        reads_hidden: Whether logits are the output head applied to hidden states, nothing between.
    """

    model: Any
    prefill_chunk: int | None
    reads_hidden: bool

    @classmethod
    def of(cls, model: Any, prefill_chunk: int | None = None) -> Forward:
        """Returns the runner of a model, after checking how it turns hidden states into logits.

        Some families scale or cap their logits after the head. They are found by comparing both ways on a few
        tokens, and then scored from the model's own logits, chunk by chunk.
        """
        if model not in _HEAD_IS_LAST:
            _HEAD_IS_LAST[model] = head_is_last(model)
        return cls(model, prefill_chunk, _HEAD_IS_LAST[model])

    @property
    def shares(self) -> bool:
        """True if a piece that is run against the cache of the tokens before it gives the numbers of one pass.

        Several continuations can then be given to one cache. Some recurrent layers start again with every piece.
        """
        if self.model not in _PIECES_ARE_EXACT:
            _PIECES_ARE_EXACT[self.model] = _pieces_are_exact(self)
        return _PIECES_ARE_EXACT[self.model]

    @torch.no_grad()
    def run(self, input_ids: Tensor, cache: Any = None, num_last: int = 1, keep: bool = True) -> tuple[Tensor, Any]:
        """Returns the states of the last tokens of a piece, and the cache that holds the piece too.

        Args:
            input_ids: (B, T) token ids without padding.
            cache: The cache of the tokens before them; None for none.
            num_last: How many states are wanted, in [1, T].
            keep: Whether something follows; if not, no cache is made.

        Returns:
            (B, num_last, H) hidden states; (B, num_last, V) logits of models whose head is not last.
        """
        use_cache = keep or cache is not None
        run = self.model.get_decoder() if self.reads_hidden else self.model
        options = {cache_name(run): cache} if use_cache else {}
        if not self.reads_hidden and "logits_to_keep" in inspect.signature(run.forward).parameters:
            options["logits_to_keep"] = num_last
        output = run(input_ids=input_ids.to(self.model.device), use_cache=use_cache, **options)
        states = output.last_hidden_state if self.reads_hidden else output.logits
        return states[:, -num_last:], output.get(cache_name(run)) if use_cache else None

    @torch.no_grad()
    def logits(self, states: Tensor) -> Tensor:
        """Returns the logits of some states (..., H), float32 (..., V)."""
        head = self.model.get_output_embeddings()
        logits: Tensor = (head(states) if self.reads_hidden else states).float()
        return logits

    @torch.no_grad()
    def token_nll(self, input_ids: Tensor, num_last: int | None = None) -> Tensor:
        """Returns the loss of every token given those before it, or of the last tokens only.

        Args:
            input_ids: (B, T) token ids without padding; the first column is never a target.
            num_last: How many tokens at the end are scored, in [1, T - 1]; None for all but the first.

        Returns:
            (B, num_last) float32 on the CPU [nats].

        Raises:
            MeasurementError: If chunks are asked for and this model computes other numbers in them.
        """
        first = 0 if num_last is None else input_ids.shape[1] - 1 - num_last
        losses = []
        for start, states in self._prefilled(input_ids[:, :-1].to(self.model.device), first):
            targets = input_ids[:, start + 1 : start + 1 + states.shape[1]].to(states.device)
            losses.append(self._chunked_nll(states, targets).cpu())
        return torch.cat(losses, dim=1)

    @cached_property
    def end_tokens(self) -> frozenset[int]:
        """Tokens that end a generated text, as the model's generation config says."""
        config = getattr(self.model, "generation_config", None)
        ends = getattr(config, "eos_token_id", None)
        return frozenset(ends if isinstance(ends, list | tuple) else [] if ends is None else [ends])

    def _prefilled(self, input_ids: Tensor, first: int) -> Iterator[tuple[int, Tensor]]:
        """Yields (start, states) of all positions from ``first`` on, chunk by chunk; chunks before only fill the cache."""
        length, chunk = input_ids.shape[1], self._loss_chunk
        if chunk is None or length <= chunk:
            yield first, self.run(input_ids, None, length - first, keep=False)[0]
            return
        cache = None
        for start in range(0, length, chunk):
            piece = input_ids[:, start : start + chunk]
            stop = start + piece.shape[1]
            num_last = max(1, stop - max(start, first))
            states, cache = self.run(piece, cache, num_last)
            if start == 0:
                make_room(cache, length)
            if stop > first:
                yield stop - num_last, states

    @cached_property
    def _loss_chunk(self) -> int | None:
        """Tokens per forward pass when losses are computed; None for whole windows."""
        map_large_blocks()  # else the logits of each chunk leave a hole of their size in memory
        if self.prefill_chunk is None and (self.reads_hidden or not self.shares):
            return None
        if not self.shares:
            raise MeasurementError(
                f"{type(self.model).__name__} cannot be run in pieces: with a cache it computes other numbers than in one pass.",
                "Leave out --prefill-chunk.",
            )
        limit = self.prefill_chunk or FALLBACK_PREFILL_CHUNK
        return limit if self.reads_hidden else min(limit, FALLBACK_PREFILL_CHUNK)

    def _chunked_nll(self, states: Tensor, targets: Tensor) -> Tensor:
        step = logits_at_once(self.model, states.shape[0])
        parts = []
        for start in range(0, states.shape[1], step):
            logits = self.logits(states[:, start : start + step])
            part = targets[:, start : start + step]
            # Flat, so that the vocabulary is the last dimension: over any other, torch sums its exponentials
            # one by one in float32 on the CPU, which is off by 1e-4 nats for 49k tokens.
            parts.append(F.cross_entropy(logits.flatten(0, 1), part.flatten(), reduction="none").view_as(part))
        return torch.cat(parts, dim=1)


def logits_at_once(model: Any, rows: int = 1) -> int:
    """Returns how many tokens of each row have their logits held together.

    Args:
        model: A causal language model of transformers.
        rows: B.
    """
    return max(1, LOGITS_PER_CHUNK // (_vocabulary(model) * rows))


@torch.no_grad()
def head_is_last(model: Any) -> bool:
    """Returns whether logits are the output head applied to the decoder's hidden states, nothing between."""
    ids = torch.arange(_HEAD_PROBE_LENGTH, device=model.device).remainder(_vocabulary(model)).unsqueeze(0)
    logits = model(input_ids=ids, use_cache=False).logits.float()
    decoder = model.get_decoder()
    if isinstance(decoder, torch.nn.Linear):  # ModernBERT calls its head so
        return False
    hidden = getattr(decoder(input_ids=ids, use_cache=False), "last_hidden_state", None)
    if hidden is None:  # the decoders of some multimodal families are language models with a head of their own
        return False
    direct = model.get_output_embeddings()(hidden).float()
    return direct.shape == logits.shape and torch.allclose(direct, logits, rtol=_HEAD_TOLERANCE, atol=_HEAD_TOLERANCE)


@torch.no_grad()
def _pieces_are_exact(forward: Forward) -> bool:
    """Compares one pass with two pieces, the second given twice: to the cache itself and to a branch of it."""
    ids = torch.arange(_PIECES_PROBE_LENGTH).mul(5).remainder(_vocabulary(forward.model)).unsqueeze(0).repeat(2, 1)
    ids[1] = ids[1].flip(0)
    first, rest = ids[:, :_PIECES_CUT], ids[:, _PIECES_CUT:]
    num_last = rest.shape[1]
    whole = forward.run(ids, None, num_last, keep=False)[0]
    try:
        _, cache = forward.run(first)
        if cache is None:
            return False
        swapped = branch(cache, [1, 0, 1])
        pieces = [forward.run(rest[[1, 0, 1]], swapped, num_last)[0][:2].flip(0), forward.run(rest, cache, num_last)[0]]
        if can_crop(cache, _PIECES_PROBE_LENGTH):
            crop(cache, _PIECES_CUT)
            pieces.append(forward.run(rest, cache, num_last)[0])
    except Exception:  # a cache class of the model's own may raise anything
        return False
    # The mean: with a router, a rounding can send one token elsewhere, but a model that starts again is wrong everywhere.
    dtype = torch.bfloat16 if torch.is_autocast_enabled(whole.device.type) else whole.dtype
    allowed = max(_PIECES_TOLERANCE, 16 * torch.finfo(dtype).eps) * float(whole.abs().mean())
    return all(float((piece - whole).abs().mean()) <= allowed for piece in pieces)


def _vocabulary(model: Any) -> int:
    size: int = model.get_output_embeddings().weight.shape[0]
    return size


#: What was tried out on each model. It does not depend on weights or rotation.
_HEAD_IS_LAST: WeakKeyDictionary[Any, bool] = WeakKeyDictionary()
_PIECES_ARE_EXACT: WeakKeyDictionary[Any, bool] = WeakKeyDictionary()
