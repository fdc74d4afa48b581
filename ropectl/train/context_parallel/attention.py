"""Computes causal attention across the ranks that share a sequence, each rank for its part of the queries.

The functions are for transformers' interfaces of attention and masks; :mod:`ropectl.train.context_parallel.group` registers them.
Each of the R ranks holds two of 2R chunks: the one with its own number and the one as far from the end.

Shapes: B batch, T tokens, R ranks of the group, t = T/R local tokens, H heads, K key-value heads, D head_dim.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention.bias import causal_lower_right
from transformers.masking_utils import causal_mask_function

from ropectl.errors import UnsupportedModelError

#: Features beyond causal attention that a layer may ask for, and that are refused here.
_REFUSED = {
    "sliding_window": "sliding windows",
    "s_aux": "attention sinks",
    "softcap": "soft-capped scores",
    "position_bias": "position biases",
}

# torch 2.13 renames both.
_all_gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
_reduce_scatter = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor

#: The hint of every refusal.
TRAIN_WITHOUT = "Train it without --cp-size."


def no_mask(*, mask_function: Any, local_size: int | None = None, **_: Any) -> None:
    """Checks that plain causal attention is asked for, and builds no mask."""
    if mask_function is not causal_mask_function or local_size is not None:
        raise UnsupportedModelError(
            "Only plain causal attention can share a sequence: no windows, no packed texts (pass the attention_mask "
            "that shard returns).",
            TRAIN_WITHOUT,
        )


class _Gather(torch.autograd.Function):
    """An all-gather whose backward pass is a reduce-scatter."""

    @staticmethod
    def forward(ctx: Any, local: Tensor, group: Any) -> Tensor:
        ctx.group = group
        size = dist.get_world_size(group)
        gathered = local.new_empty(size * local.shape[0], *local.shape[1:])
        _all_gather(gathered, local.contiguous(), group=group)
        return gathered.view(size, *local.shape)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (gradient,) = gradients
        gradient = gradient.contiguous()
        if gradient.is_cpu:  # gloo has no reduce-scatter in every version of torch
            gradient = gradient.clone()
            dist.all_reduce(gradient, group=ctx.group)
            return gradient[dist.get_rank(ctx.group)], None
        local = torch.empty_like(gradient[0])
        _reduce_scatter(local, gradient.flatten(0, 1), group=ctx.group)
        return local, None


def shared_attention(
    group: Any,
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    **options: Any,
) -> tuple[Tensor, None]:
    """Returns the causal attention of the local chunks to the whole sequence.

    Args:
        group: The process group that shares the sequence.
        module: The attention layer.
        query: (B, H, t, D), the two chunks of this rank.
        key: (B, K, t, D).
        value: (B, K, t, D_v).
        attention_mask: None.
        dropout: Probability with which a weight is dropped.
        scaling: Scale of the scores; by default the inverse root of D.
        options: Everything else that the layer passes on.

    Returns:
        (B, t, H, D_v), and no weights.
    """
    asked = [text for name, text in _REFUSED.items() if options.get(name) is not None]
    if options.get("is_causal", getattr(module, "is_causal", True)) is False:
        asked.append("attention in both directions")
    if attention_mask is not None:
        asked.append("a mask of its own")
    if key.shape[2] != query.shape[2]:
        asked.append("a cache")
    if asked:
        raise UnsupportedModelError(
            f"{type(module).__name__} needs {', '.join(asked)}, which is not possible in a shared sequence.",
            TRAIN_WITHOUT,
        )
    device = query.device.type
    if torch.is_autocast_enabled(device):  # the kernels below are called past the autocast of attention
        query, key, value = (tensor.to(torch.get_autocast_dtype(device)) for tensor in (query, key, value))
    both = _natural_order(torch.cat([key, value], dim=-1), group)
    keys, values = both[..., : key.shape[-1]], both[..., key.shape[-1] :]
    rank, size = dist.get_rank(group), dist.get_world_size(group)
    length = query.shape[2] // 2
    attended = []
    for number, chunk in zip((rank, 2 * size - 1 - rank), query.chunk(2, dim=2), strict=True):
        end = (number + 1) * length
        attended.append(_lower_right(chunk, keys[:, :, :end], values[:, :, :end], dropout, scaling))
    return torch.cat(attended, dim=2).transpose(1, 2).contiguous(), None


def _natural_order(local: Tensor, group: Any) -> Tensor:
    """Gathers (B, K, t, D) of every rank into (B, K, T, D) in the order of the sequence."""
    gathered: Tensor = _Gather.apply(local, group)  # type: ignore[no-untyped-call]
    first, second = gathered.chunk(2, dim=3)
    return torch.cat([*first.unbind(), *second.flip(0).unbind()], dim=2)


def _lower_right(query: Tensor, key: Tensor, value: Tensor, dropout: float, scaling: float | None) -> Tensor:
    """Returns the attention of the last queries of a sequence; the bias names its form, so that CUDA needs no mask."""
    groups = query.shape[1] // key.shape[1]
    if groups > 1 and query.is_cuda and query.dtype == torch.float32:  # the one kernel for float32 has no groups
        key, value = (tensor.repeat_interleave(groups, dim=1) for tensor in (key, value))
        groups = 1
    bias = causal_lower_right(query.shape[2], key.shape[2])
    return F.scaled_dot_product_attention(
        query, key, value, attn_mask=bias, dropout_p=dropout, scale=scaling, enable_gqa=groups > 1
    )
