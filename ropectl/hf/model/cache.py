"""The key-value cache of transformers: cropped and branched where that is exact, and given room to grow in place.

What a cache can do follows from its layers, never from the name of the model: layers that keep
every key can be cropped, layers with a window only while it is not full, and states of recurrent or
convolutional layers not at all. Whatever cannot be cropped is copied before it is continued twice.

transformers concatenates, which copies everything with every piece of text, and the holes that smaller tensors leave
cannot hold the larger ones; ``scripts/bench/compare.py`` measures what that takes. Here keys and values get their room
once. What attention itself makes of the keys still grows with every piece: see :mod:`ropectl.memory`.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

from ropectl.memory import map_large_blocks


class RoomyLayer(DynamicLayer):  # type: ignore[misc]
    """A layer that keeps every key, in buffers that have room for what is to come.

    ``keys`` and ``values`` are views of the filled part, (B, heads, T, D). Cropping shortens the views; a layer whose
    batch was changed has other tensors than its buffers, and makes new ones when it grows.
    """

    room: int
    keys: Tensor
    values: Tensor

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """Adds tokens and returns all keys and values."""
        self.keys = self._grown(self.keys, key_states)
        self.values = self._grown(self.values, value_states)
        return self.keys, self.values

    def _grown(self, held: Tensor, new: Tensor) -> Tensor:
        rows, heads, filled, width = held.shape
        length = filled + new.shape[-2]
        if length > self.room:
            return torch.cat([held, new], dim=-2)
        strides = (heads * self.room * width, self.room * width, width, 1)
        size = rows * heads * self.room * width * held.element_size()
        if held.stride() != strides or held.storage_offset() or held.untyped_storage().nbytes() != size:
            held_before, held = held, held.new_empty(rows, heads, self.room, width)
            held[..., :filled, :] = held_before
        whole = held.as_strided((rows, heads, length, width), strides)
        whole[..., filled:, :] = new
        return whole


def cache_name(model: Any) -> str:
    """Returns the name of the cache in the arguments of ``model.forward`` and in its output.

    ``cache``, or ``past_key_values`` before 5.2x.
    """
    return "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values"


def can_crop(cache: Any, length: int) -> bool:
    """Returns whether a cache that has grown to ``length`` tokens can be cropped exactly.

    Args:
        cache: A cache that has seen a forward pass.
        length: Tokens it will hold by then.
    """
    for layer in getattr(cache, "layers", None) or [None]:
        window = layer.sliding_window if type(layer) is DynamicSlidingWindowLayer else None
        keeps_all = type(layer) in (DynamicLayer, RoomyLayer) or (window is not None and length < window)
        if not (keeps_all and layer.is_initialized):
            return False
    return True


def crop(cache: Any, length: int) -> None:
    """Removes the last tokens of a cache that :func:`can_crop`, so that ``length`` are left."""
    surplus = cache.get_seq_length() - length
    if surplus > 0:
        cache.crop(-surplus)  # a positive number meant the length to keep, and raises today


def branch(cache: Any, rows: Sequence[int]) -> Any:
    """Returns a new cache that holds these rows of ``cache``, which stays as it is.

    Args:
        cache: Any cache that can be reordered for beam search.
        rows: Row of ``cache`` for each new row, in any order and any number.
    """
    twin = copy.deepcopy(cache, _shared_tensors(cache))
    twin.reorder_cache(torch.tensor(rows))
    for layer in getattr(twin, "layers", ()):
        if type(layer) is RoomyLayer:
            layer.room = 0  # its tensors are new: how far they will grow is not known yet
    return twin


def _shared_tensors(cache: Any) -> dict[int, Any]:
    """Returns a memo for ``deepcopy`` under which keys and values are shared: reordering puts new ones in their place."""
    kinds = DynamicLayer, RoomyLayer, DynamicSlidingWindowLayer
    layers = [layer for layer in getattr(cache, "layers", ()) if type(layer) in kinds]
    tensors = [tensor for layer in layers if layer.is_initialized for tensor in (layer.keys, layer.values)]
    return {id(tensor): tensor for tensor in tensors}


def make_room(cache: Any, length: int) -> None:
    """Lets the layers of a cache that keep every key grow in place up to ``length`` tokens; others stay as they are.

    Layers that have room already keep it.

    Args:
        cache: A cache that holds something, and shares its tensors with no other.
        length: Most tokens that it will hold.
    """
    map_large_blocks()
    for layer in getattr(cache, "layers", ()):
        if type(layer) is DynamicLayer and layer.is_initialized:
            layer.__class__ = RoomyLayer
            layer.room = length
        elif type(layer) is RoomyLayer and not layer.room:
            layer.room = length
