"""Context parallelism: the ranks of a group share each sequence whose activations do not fit one device.

The sequence of T tokens is cut into 2R chunks; rank r holds the chunks r and 2R-1-r, so that causal attention
is the same work for all. Everything but attention is local to a token. Attention gathers the keys and values
of the group (their gradients come back by a reduce-scatter) and every local chunk attends to all that precede
it. Causality goes by index in the sequence, never by position: positions may jump (PoSE).

How a training loop uses it:

- All ranks of a group read the same batch: data are divided by ``data_rank`` and ``data_size``.
- ``with parallel.use(model):`` encloses forward *and* backward, which may run the forward again
  (activation checkpointing). All ranks run the same calls in the same order, also a rank without a target.
- Each rank computes the *summed* loss of its own targets. The gradient is the sum over all ranks, of the group
  and of the replicas alike, so DDP or FSDP over all ranks needs no change: they average, so the loss is scaled
  by ``world / total_targets``, with the targets of all ranks counted.

Shapes: B batch, T tokens, R ranks of the group, t = T/R local tokens, H heads, K key-value heads, D head_dim.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel

from ropectl.errors import ConfigError, UnsupportedModelError
from ropectl.hf.config.layers import layer_blocks, window_width
from ropectl.hf.model.rotary import text_config_values
from ropectl.train.context_parallel.attention import TRAIN_WITHOUT, no_mask, shared_attention
from ropectl.train.context_parallel.sizes import check_group_size

#: The name of the attention implementation, before the size of the group.
NAME = "ropectl_context_parallel"

#: Padding of a sequence whose length 2R does not divide. It has no targets, and nothing attends to it.
_FILL = {"input_ids": 0, "targets": -100}

#: Tokens of a chunk in :meth:`ContextParallel.verify`, and the largest difference it accepts, of the largest value.
_PROBE_CHUNK = 8
_PROBE_TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-4}
_PROBE_TOLERANCE_HALF = 5e-2


def check_config(section: Mapping[str, Any]) -> None:
    """Refuses models whose config shows that they cannot share a sequence; needs no weights.

    Args:
        section: The config's text part, as the model will have it.

    Raises:
        UnsupportedModelError: If the layers do more than causal attention, or the rotary table depends on the largest
            position, which differs between ranks.
    """
    types = section.get("layer_types") or ()
    others = sorted(set(types) - {"full_attention"})
    width = None if types else window_width(section)  # where layers have types, those say which have a window
    if others or width is not None:
        what = f"layers of type {', '.join(others)}" if others else f"windows of {width} tokens"
        raise UnsupportedModelError(
            f"Models of type {section.get('model_type')!r} with {what} cannot share a sequence between processes.",
            TRAIN_WITHOUT,
        )
    for block in list(layer_blocks(section).values()) or [section.get("rope_parameters") or {}]:
        kind = str(block.get("rope_type"))
        if "dynamic" in kind or (kind == "longrope" and block.get("short_factor") != block.get("long_factor")):
            raise UnsupportedModelError(
                f"The rotary table of type {kind!r} follows the length of the sequence, which no process sees whole.",
                "Freeze the method at one length, or train without --cp-size.",
            )


@dataclass(frozen=True)
class ContextParallel:
    """A group of ranks that share each sequence.

    Attributes:
        size: R, the ranks of the group.
        rank: This process in the group, in ``[0, size)``.
        group: The torch.distributed process group.
        data_rank: Which replica this process belongs to, in ``[0, data_size)``.
        data_size: Number of groups; each trains on its own part of the data.
    """

    size: int
    rank: int
    group: Any
    data_rank: int
    data_size: int

    @classmethod
    def of(cls, size: int) -> ContextParallel | None:
        """Divides the running world into groups of ``size`` consecutive ranks; to be called on every rank.

        Returns:
            The group of this process; None for size 1.

        Raises:
            ConfigError: If the number of processes is not a multiple of ``size``, or there is one process only.
        """
        if size == 1:
            return None
        is_alone = not (dist.is_available() and dist.is_initialized())
        world, rank = (1, 0) if is_alone else (dist.get_world_size(), dist.get_rank())
        check_group_size(size, world)
        # Every rank has to take part in making every group.
        groups = [dist.new_group(list(range(start, start + size))) for start in range(0, world, size)]
        return cls(size, rank % size, groups[rank // size], rank // size, world // size)

    @property
    def name(self) -> str:
        """The attention implementation of this group, as transformers knows it."""
        return f"{NAME}_{self.size}"

    def shard(self, batch: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Returns this rank's part of a batch, for the model under :meth:`use`.

        Targets are shifted already (``targets[j]`` is what position j predicts), so a part of them is a slice.

        Args:
            batch: ``input_ids`` and ``targets`` (B, T), -100 for no target; optionally ``position_ids`` (B, T) and
                an ``attention_mask`` (B, T) that hides padding at the end.

        Returns:
            ``input_ids``, ``targets``, ``position_ids`` and ``attention_mask``, each (B, t). The mask hides
            nothing: it tells transformers that a jump in the positions is not the border of a packed sequence.

        Raises:
            ConfigError: If positions start again inside a sequence, or the mask hides more than the end: several texts
                in one sequence are not kept apart.
        """
        batch = dict(batch)
        ids = batch["input_ids"]
        _refuse_packing(batch.pop("attention_mask", None), batch.get("position_ids"))
        if "position_ids" not in batch:
            batch["position_ids"] = torch.arange(ids.shape[1], device=ids.device)[None]
        batch["position_ids"] = batch["position_ids"].expand(ids.shape)
        missing = -ids.shape[1] % (2 * self.size)
        parts = {name: self._part(_padded(name, tensor, missing)) for name, tensor in batch.items()}
        return {**parts, "attention_mask": torch.ones_like(parts["input_ids"])}

    def _part(self, tensor: Tensor) -> Tensor:
        chunks = tensor.chunk(2 * self.size, dim=1)
        return torch.cat([chunks[self.rank], chunks[2 * self.size - 1 - self.rank]], dim=1)

    @contextmanager
    def use(self, model: nn.Module) -> Iterator[None]:
        """Lets the model's layers attend across the group while the context lasts, in the backward pass too.

        Args:
            model: The causal language model itself, which a wrapper may contain.

        Raises:
            UnsupportedModelError: For the reasons of :func:`check_config`, or if the model has its own attention. What
                only a forward pass shows is raised there.
        """
        decoder = _decoder(model)
        check_config(text_config_values(model))
        AttentionInterface.register(self.name, partial(shared_attention, self.group))
        AttentionMaskInterface.register(self.name, no_mask)
        before = decoder.config._attn_implementation
        decoder.set_attn_implementation(self.name)
        if decoder.config._attn_implementation != self.name:
            raise UnsupportedModelError(
                f"{type(model).__name__} has its own attention, which cannot share a sequence.", TRAIN_WITHOUT
            )
        try:
            yield
        finally:
            decoder.set_attn_implementation(before)

    @torch.no_grad()
    def verify(self, model: nn.Module) -> float:
        """Checks on random tokens that sharing a sequence changes nothing; to be called on every rank.

        It finds layers that mix tokens without attention. All ranks must hold the same weights, unsharded: call it before
        the model is wrapped.

        Returns:
            The largest difference of a final hidden state, relative to the largest value.

        Raises:
            UnsupportedModelError: If the hidden states differ, or for the reasons of :meth:`use`.
        """
        decoder = _decoder(model)
        weight = decoder.get_input_embeddings().weight
        generator = torch.Generator().manual_seed(0)
        ids = torch.randint(weight.shape[0], (1, 2 * self.size * _PROBE_CHUNK), generator=generator).to(weight.device)
        part = self.shard({"input_ids": ids, "targets": ids})
        part.pop("targets")
        was_training = model.training
        model.eval()
        whole = decoder(input_ids=ids, use_cache=False)[0]
        with self.use(model):
            ours = decoder(**part, use_cache=False)[0]
        model.train(was_training)
        difference = (ours - self._part(whole)).abs().max() / whole.abs().max()
        dist.all_reduce(difference, op=dist.ReduceOp.MAX, group=self.group)
        is_cast = torch.is_autocast_enabled(whole.device.type)
        allowed = _PROBE_TOLERANCE_HALF if is_cast else _PROBE_TOLERANCE.get(whole.dtype, _PROBE_TOLERANCE_HALF)
        if not difference <= allowed:
            raise UnsupportedModelError(
                f"{type(model).__name__} computes something else when {self.size} processes share a sequence (hidden "
                f"states differ by {float(difference):.1e}): its layers mix tokens by more than attention.",
                TRAIN_WITHOUT,
            )
        return float(difference)


def _decoder(model: nn.Module) -> Any:
    """Returns the model without its head; the whole model where a family has no such part."""
    decoder = model.get_decoder()  # type: ignore[operator]
    return decoder if isinstance(decoder, PreTrainedModel) else model


def _padded(name: str, tensor: Tensor, missing: int) -> Tensor:
    """Appends ``missing`` columns; positions continue."""
    if not missing:
        return tensor
    if name == "position_ids":
        return torch.cat([tensor, tensor[:, -1:] + torch.arange(1, missing + 1, device=tensor.device)], dim=1)
    return F.pad(tensor, (0, missing), value=_FILL[name])


def _refuse_packing(mask: Tensor | None, positions: Tensor | None) -> None:
    hides = mask is not None and (mask.ndim != 2 or bool((mask.diff(dim=1) > 0).any()))
    if hides or (positions is not None and bool((positions.diff(dim=-1) <= 0).any())):
        raise ConfigError(
            "A sequence that several processes share cannot hold several texts that are kept apart.",
            "Use --packing concat, or no --cp-size.",
        )
