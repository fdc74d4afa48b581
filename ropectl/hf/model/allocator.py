"""Memory of large tensors on the CPU, given back when they are let go of.

Against a growing cache every piece makes tensors a little larger than the piece before: attention repeats the keys and
values of each group of heads, and casts its mask. Losses are computed from chunks of logits of nearly 32 MiB, each with a
small result that stays. glibc takes blocks below a limit from its heap, and raises that limit, up to 32 MiB, each time a
larger block is freed. The holes that freed tensors leave there cannot hold the next ones, and stay with the process; ``scripts/bench/compare.py`` measures how much that is. Above a fixed limit, every block is a mapping
of its own and is gone when it is freed.
"""

from __future__ import annotations

import ctypes
import os
import sys
from functools import cache

#: Blocks from here on are mappings of their own: few enough that making them costs little beside what is computed in them.
MAPPED_FROM = 8 * 2**20

#: Free memory at the end of the heap that is kept for the next piece.
KEPT_AT_END = 64 * 2**20

# Parameters of mallopt, from malloc.h.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3

_SET_BY_USER = ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_")


@cache
def map_large_blocks() -> bool:
    """Fixes the size from which blocks are mappings of their own, once for the process; returns whether it did.

    Does nothing where the C library is not glibc, or where the environment says how it should be.
    """
    if sys.platform != "linux" or any(name in os.environ for name in _SET_BY_USER):
        return False
    library = ctypes.CDLL(None)
    if not hasattr(library, "gnu_get_libc_version"):
        return False
    return bool(library.mallopt(_M_MMAP_THRESHOLD, MAPPED_FROM) and library.mallopt(_M_TRIM_THRESHOLD, KEPT_AT_END))
