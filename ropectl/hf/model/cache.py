"""The key-value cache of transformers: named by version, cropped and branched where that is exact.

A cache is asked what it can do by what it is, never by the name of the model it belongs to: layers that keep
every key can be cropped, layers with a window only while it is not full, and states of recurrent or
convolutional layers not at all. Whatever cannot be cropped is copied before it is continued twice.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Sequence
from typing import Any


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
    from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

    from ropectl.hf.model.roomy_cache import RoomyLayer

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
    """Returns a cache of its own that holds these rows of ``cache``, which stays as it is.

    Args:
        cache: Any cache that can be reordered for beam search.
        rows: Row of ``cache`` for each new row, in any order and any number.
    """
    import torch

    from ropectl.hf.model.roomy_cache import leave_room

    twin = copy.deepcopy(cache, _shared_tensors(cache))
    twin.reorder_cache(torch.tensor(rows))
    leave_room(twin)
    return twin


def _shared_tensors(cache: Any) -> dict[int, Any]:
    """A memo for ``deepcopy`` under which keys and values are shared: reordering puts new ones in their place."""
    from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

    from ropectl.hf.model.roomy_cache import RoomyLayer

    kinds = DynamicLayer, RoomyLayer, DynamicSlidingWindowLayer
    layers = [layer for layer in getattr(cache, "layers", ()) if type(layer) in kinds]
    tensors = [tensor for layer in layers if layer.is_initialized for tensor in (layer.keys, layer.values)]
    return {id(tensor): tensor for tensor in tensors}
