"""Reads the header of a safetensors file: names, types and shapes of its tensors, and where their bytes are.

The format is documented at https://github.com/huggingface/safetensors: the length of the header as a little-endian
64-bit number, the header as JSON, the bytes of the tensors without gaps.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ropectl.errors import ConfigError
from ropectl.file_reading import check_ordinary, reason_of
from ropectl.json_reading import parse_json
from ropectl.printable import shorten

#: No header is longer [bytes]: that is a quarter of a million tensors.
_MAX_HEADER = 32 * 2**20

_METADATA = "__metadata__"

#: Type -> bytes of a number, for the types that whole bytes hold.
_WIDTHS = {
    **dict.fromkeys(("BOOL", "U8", "I8", "F8_E5M2", "F8_E4M3", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ"), 1),
    **dict.fromkeys(("I16", "U16", "F16", "BF16"), 2),
    **dict.fromkeys(("I32", "U32", "F32"), 4),
    **dict.fromkeys(("I64", "U64", "F64", "C64"), 8),
}

#: Type -> struct format of a number, for those that rotary tables are stored in; bfloat16 is the upper half of float32.
_NUMBERS = {"F64": "d", "F32": "f", "F16": "e", "BF16": "H"}


@dataclass(frozen=True)
class StoredTensor:
    """A tensor in a file.

    Attributes:
        path: The file.
        dtype: The format's name of its type, such as ``BF16``.
        shape: Its shape.
        start: First byte in the file.
        stop: Last byte plus one.
    """

    path: Path
    dtype: str
    shape: tuple[int, ...]
    start: int
    stop: int

    @property
    def num_bytes(self) -> int:
        """Size [bytes]."""
        return self.stop - self.start

    def numbers(self) -> tuple[float, ...] | None:
        """Returns the tensor's numbers; None for a type that is not a float of 16, 32 or 64 bits."""
        code = _NUMBERS.get(self.dtype)
        if code is None:
            return None
        with self.path.open("rb") as file:
            file.seek(self.start)
            data = file.read(self.num_bytes)
        values = struct.unpack(f"<{len(data) // struct.calcsize(code)}{code}", data)
        if self.dtype == "BF16":
            values = struct.unpack(f"<{len(values)}f", b"".join(struct.pack("<HH", 0, value) for value in values))
        return values


def stored_tensors(path: Path) -> dict[str, StoredTensor]:
    """Returns the tensors in a file by name, after comparing the header with the length of the file.

    Raises:
        ConfigError: If it is not a whole safetensors file.
    """
    check_ordinary(path)
    size = path.stat().st_size
    header, start = _header(path, size)
    tensors = {name: _tensor(path, name, entry, start) for name, entry in header.items() if name != _METADATA}
    wanted = max((tensor.stop for tensor in tensors.values()), default=start)
    if size != wanted:
        raise ConfigError(f"{path} is incomplete: it has {size} bytes, its header says {wanted}.", "Download it again.")
    return tensors


def _header(path: Path, size: int) -> tuple[Mapping[str, Any], int]:
    """Returns the header, and where the tensors' bytes begin."""
    try:
        with path.open("rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            content = file.read(length) if length <= min(size, _MAX_HEADER) else b""
    except OSError as error:
        raise ConfigError(f"Cannot read {path}: {reason_of(error)}.") from None
    except struct.error:
        raise _damaged(path) from None
    try:
        header = parse_json(content, f"the header of {path}")
    except ConfigError:
        raise _damaged(path) from None
    if not isinstance(header, dict):
        raise _damaged(path)
    return header, 8 + length


def _tensor(path: Path, name: str, entry: Any, start: int) -> StoredTensor:
    try:
        dtype, shape, (begin, end) = str(entry["dtype"]), tuple(entry["shape"]), entry["data_offsets"]
        whole = all(isinstance(number, int) and number >= 0 for number in (*shape, begin, end))
    except (KeyError, TypeError, ValueError):
        whole = False
    width = _WIDTHS.get(dtype) if whole else None
    if not whole or end < begin or (width is not None and end - begin != math.prod(shape) * width):
        raise _damaged(path, f"what its header says of {shorten(name)} is not possible")
    return StoredTensor(path, dtype, shape, start + begin, start + end)


def _damaged(path: Path, why: str = "it has no header that can be read") -> ConfigError:
    return ConfigError(f"{path} is incomplete or damaged: {why}.", "Download it again.")
