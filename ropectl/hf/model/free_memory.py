"""How much memory is free on a device, or on the host where the device is the CPU."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

_MEMINFO, _CGROUP = Path("/proc/meminfo"), Path("/sys/fs/cgroup")


def free_memory(device: Any) -> int | None:
    """Returns the bytes that one process can have on a device; None where the system does not say.

    Processes on one host share what is free there.
    """
    import torch

    module: Any = getattr(torch, device.type, None)
    if device.type != "cpu" and hasattr(module, "mem_get_info"):
        return int(module.mem_get_info(device)[0])
    host = host_memory()
    return None if host is None else host // max(1, int(os.environ.get("LOCAL_WORLD_SIZE", "1")))


def host_memory(meminfo: Path = _MEMINFO, cgroup: Path = _CGROUP) -> int | None:
    """Returns the free bytes of this machine, or of the container that limits it; None where neither is told.

    Args:
        meminfo: Linux's table of memory.
        cgroup: Folder of the control group.
    """
    known = [size for size in (_available(meminfo), _left_in_group(cgroup)) if size is not None]
    if known:
        return min(known)
    try:  # outside Linux: all there is
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
        return max(0, limit - used + int(fields.get("inactive_file", 0)))  # file pages are given up when needed
    except (OSError, ValueError):  # no limit, or no such group
        return None
