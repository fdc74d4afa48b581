"""The config block of models in which only the fastest pairs turn (p-RoPE, arXiv 2410.06205), to and from common terms.

transformers calls the type ``proportional``. Its exponents run over the whole head, ``partial_rotary_factor`` says the
share of pairs that turn, the others have frequency 0, and all are divided by ``factor`` (1 if not given).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ropectl.rope.geometry import RopeGeometry

PROPORTIONAL = "proportional"

#: Key of the share of pairs that turn; in blocks of other types it makes the table shorter instead.
SHARE = "partial_rotary_factor"

#: Divisor that stops a pair: the largest round number with which b * 1e30 is still a float32 for every usual base.
STOPPING_DIVISOR = 1e30


def turning_pairs(block: Mapping[str, Any], head_dim: int) -> int:
    """Returns k, the number of pairs that turn in a ``proportional`` block."""
    share = block.get(SHARE)
    return int((1.0 if share is None else share) * head_dim // 2)


def turning_share(geometry: RopeGeometry) -> float:
    """Returns a share that :func:`turning_pairs` takes for the geometry's k, whatever the rounding."""
    share, dim = 2 * geometry.turning_pairs / geometry.rotary_dim, geometry.rotary_dim
    is_exact = turning_pairs({SHARE: share}, dim) == geometry.turning_pairs
    return share if is_exact else (2 * geometry.turning_pairs + 1) / dim


def proportional_block(block: Mapping[str, Any], geometry: RopeGeometry) -> dict[str, Any] | None:
    """Returns the ``proportional`` block that does to the turning pairs what a common block does to all.

    Args:
        block: The block of a method; of type ``default`` with any base, or ``linear``.
        geometry: The geometry that the model was trained with.

    Returns:
        None for all other types, which ``proportional`` cannot express.
    """
    if block["rope_type"] not in ("default", "linear"):
        return None
    return {**block, "rope_type": PROPORTIONAL, SHARE: turning_share(geometry)}


def common_block(block: dict[str, Any]) -> dict[str, Any]:
    """Returns a block in common terms: ``proportional`` as the ``linear`` or ``default`` that its turning pairs follow."""
    if block.get("rope_type") != PROPORTIONAL:
        return block
    is_scaled = block.get("factor") not in (None, 1.0)
    return {**block, "rope_type": "linear" if is_scaled else "default"}
