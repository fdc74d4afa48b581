"""Running out of memory, however it is told."""

from __future__ import annotations

#: What torch says where it has no error type of its own for it: its CPU allocator, and the system below.
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
