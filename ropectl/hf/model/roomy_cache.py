"""Room for keys and values made once, where transformers would make ever larger tensors piece by piece.

Concatenation copies everything at every piece, and the holes that its smaller tensors leave behind cannot hold the
larger ones; ``scripts/bench/compare.py`` measures what that takes. What attention itself makes of the keys at every piece
grows all the same: see :mod:`ropectl.memory`.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import DynamicLayer

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


def leave_room(cache: Any) -> None:
    """Forgets how far a cache was to grow, for one whose tensors are new."""
    for layer in getattr(cache, "layers", ()):
        if type(layer) is RoomyLayer:
            layer.room = 0
