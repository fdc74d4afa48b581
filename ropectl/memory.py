"""The memory of the process and its machine: how much is free, whether it ran out, and how large blocks are returned."""

from __future__ import annotations

import ctypes
import os
import sys
from functools import cache
from pathlib import Path
from typing import Any

_MEMINFO, _CGROUP = Path("/proc/meminfo"), Path("/sys/fs/cgroup")


def free_memory(device: Any) -> int | None:
    """Returns the bytes that are free for one process on a device; None where the system does not say.

    Processes on one host share what is free there.
    """
    import torch

    module: Any = getattr(torch, device.type, None)
    if device.type != "cpu" and hasattr(module, "mem_get_info"):
        return int(module.mem_get_info(device)[0])
    host = host_memory()
    return None if host is None else host // max(1, int(os.environ.get("LOCAL_WORLD_SIZE", "1")))


def host_memory(meminfo: Path = _MEMINFO, cgroup: Path = _CGROUP) -> int | None:
    """Returns the free bytes of this machine, or of the container that limits it; None where both are unknown.

    Args:
        meminfo: Linux's memory table.
        cgroup: Folder of the control group.
    """
    known = [size for size in (_available(meminfo), _left_in_group(cgroup)) if size is not None]
    if known:
        return min(known)
    try:  # outside Linux: the total
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def _available(meminfo: Path) -> int | None:
    try:
        fields = dict(line.split(":", 1) for line in meminfo.read_text().splitlines() if ":" in line)
        return int(fields["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return None


def _left_in_group(cgroup: Path) -> int | None:
    try:
        limit, used = (int((cgroup / name).read_text()) for name in ("memory.max", "memory.current"))
        fields = dict(line.split() for line in (cgroup / "memory.stat").read_text().splitlines())
        return max(0, limit - used + int(fields.get("inactive_file", 0)))  # file pages are freed when needed
    except (OSError, ValueError):  # no limit, or no such group
        return None


#: Messages for which torch has no error type of its own: from its CPU allocator, and from the system.
_SIGNS = (
    "not enough memory",
    "can't allocate memory",
    "Cannot allocate memory",
    "out of memory",
    "std::bad_alloc",
)


def is_out_of_memory(error: BaseException) -> bool:
    """Returns whether an error says that memory ran out, on the host or on a device."""
    if isinstance(error, MemoryError):
        return True
    return isinstance(error, RuntimeError | OSError) and any(sign in str(error) for sign in _SIGNS)


# Memory of large tensors on the CPU. Against a growing cache every piece makes tensors a little larger than the
# piece before: attention repeats the keys and values of each group of heads, and casts its mask. Losses are computed from chunks
# of logits of nearly 32 MiB, each with a small result that remains. glibc takes blocks below a limit from its heap, and raises
# that limit, up to 32 MiB, each time a larger block is freed. The holes that freed tensors leave there cannot hold the next
# ones, and stay with the process; ``scripts/bench/compare.py`` measures how much that is. Above a fixed limit, every block
# is a mapping of its own, and freeing it returns it to the system.

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

    Does nothing where the C library is not glibc, or where the environment already sets it.
    """
    if sys.platform != "linux" or any(name in os.environ for name in _SET_BY_USER):
        return False
    library = ctypes.CDLL(None)
    if not hasattr(library, "gnu_get_libc_version"):
        return False
    return bool(library.mallopt(_M_MMAP_THRESHOLD, MAPPED_FROM) and library.mallopt(_M_TRIM_THRESHOLD, KEPT_AT_END))
