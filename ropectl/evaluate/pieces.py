"""A model that is run piece by piece against a cache, if that gives the numbers of one pass.

Legend: B batch, T tokens, H hidden size, V vocabulary.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from ropectl.evaluate.token_loss import LOGITS_PER_CHUNK, head_is_last
from ropectl.hf.model.cache import branch, cache_name, can_crop, crop

_PROBE_LENGTH = 12
_PROBE_CUT = 7
_PROBE_TOLERANCE = 1e-3


@dataclass(frozen=True)
class Pieces:
    """Runs one model on pieces of prompts.

    Attributes:
        model: A causal language model of transformers.
        prefill_chunk: Most tokens of a row per forward pass; None for what the walk chooses.
        reads_hidden: Whether logits are the output head applied to hidden states, nothing between.
        shares: Whether a piece against the cache of what stands before it gives the numbers of one pass, and
            several continuations can be given to one cache. Some recurrent layers begin anew with every piece.
    """

    model: Any
    prefill_chunk: int | None
    reads_hidden: bool
    shares: bool = True

    @classmethod
    def of(cls, model: Any, prefill_chunk: int | None = None) -> Pieces:
        """Returns the runner of a model; what has to be tried out is tried once for each model."""
        if model not in _TRAITS:
            reads_hidden = head_is_last(model)
            _TRAITS[model] = (reads_hidden, cls(model, None, reads_hidden)._pieces_are_exact())
        return cls(model, prefill_chunk, *_TRAITS[model])

    @torch.no_grad()
    def run(self, input_ids: Tensor, cache: Any = None, num_last: int = 1, keep: bool = True) -> tuple[Tensor, Any]:
        """Returns the states of the last tokens of a piece, and the cache that holds the piece too.

        Args:
            input_ids: (B, T) token ids without padding.
            cache: What stands before them; None for nothing.
            num_last: How many states are wanted, in [1, T].
            keep: Whether something follows; without, no cache is made where there is none.

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
        """Returns the logits that some states (..., H) stand for, float32 (..., V)."""
        head = self.model.get_output_embeddings()
        logits: Tensor = (head(states) if self.reads_hidden else states).float()
        return logits

    @cached_property
    def logits_at_once(self) -> int:
        """States whose logits are held together."""
        vocabulary: int = self.model.get_output_embeddings().weight.shape[0]
        return max(1, LOGITS_PER_CHUNK // vocabulary)

    @cached_property
    def end_tokens(self) -> frozenset[int]:
        """Tokens that end a generated text, as the model's generation config says."""
        config = getattr(self.model, "generation_config", None)
        ends = getattr(config, "eos_token_id", None)
        return frozenset(ends if isinstance(ends, list | tuple) else [] if ends is None else [ends])

    @torch.no_grad()
    def _pieces_are_exact(self) -> bool:
        """Compares one pass with two pieces, the second given twice: to the cache itself and to a branch of it."""
        vocabulary = self.model.get_output_embeddings().weight.shape[0]
        ids = torch.arange(_PROBE_LENGTH).mul(5).remainder(vocabulary).unsqueeze(0).repeat(2, 1)
        ids[1] = ids[1].flip(0)
        first, rest = ids[:, :_PROBE_CUT], ids[:, _PROBE_CUT:]
        num_last = rest.shape[1]
        whole = self.run(ids, None, num_last, keep=False)[0]
        try:
            _, cache = self.run(first)
            if cache is None:
                return False
            swapped = branch(cache, [1, 0, 1])
            pieces = [self.run(rest[[1, 0, 1]], swapped, num_last)[0][:2].flip(0), self.run(rest, cache, num_last)[0]]
            if can_crop(cache, _PROBE_LENGTH):
                crop(cache, _PROBE_CUT)
                pieces.append(self.run(rest, cache, num_last)[0])
        except Exception:  # a cache of a kind of its own may raise anything
            return False
        # The mean: with a router, a rounding can send one token elsewhere, but a model that begins anew is wrong everywhere.
        dtype = torch.bfloat16 if torch.is_autocast_enabled(whole.device.type) else whole.dtype
        allowed = max(_PROBE_TOLERANCE, 16 * torch.finfo(dtype).eps) * float(whole.abs().mean())
        return all(float((piece - whole).abs().mean()) <= allowed for piece in pieces)


#: By model: whether its head is last, whether pieces are exact. They do not depend on weights or rotation.
_TRAITS: WeakKeyDictionary[Any, tuple[bool, bool]] = WeakKeyDictionary()
