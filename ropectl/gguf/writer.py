"""Writes a copy of a GGUF file with other keys and other one-dimensional tensors, everything else byte for byte.

Entries that stay are copied as they are in the file, so no type is ever interpreted and quantized data of
any kind, known here or not, is carried over. Data goes through a buffer of fixed size: memory does not grow
with the file.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import IO

from ropectl.gguf.header import FLOAT32, MAGIC, STRING, TENSOR_FLOAT32, UINT32, GgufHeader, align

_BUFFER = 1 << 23  # bytes

#: A value of a key: text, a count (uint32) or a number (float32).
GgufValue = str | int | float


def write_gguf(
    source: Path,
    header: GgufHeader,
    out: Path,
    keys: Mapping[str, GgufValue],
    tensors: Mapping[str, Sequence[float]],
    removed: Collection[str],
) -> None:
    """Writes ``source`` to ``out`` with changes.

    Args:
        source: The file to copy.
        header: Its header.
        out: Where to write; an existing file is overwritten.
        keys: Keys to write, in place where they exist, else after all others.
        tensors: float32 vectors to write; they replace tensors of the same names.
        removed: Keys and tensors to leave out.
    """
    kept = [i for i, tensor in enumerate(header.tensors) if tensor.name not in tensors and tensor.name not in removed]
    with source.open("rb") as file, out.open("wb") as target:
        entries = _entries(file, header, keys, removed)
        target.write(MAGIC + struct.pack("<IQQ", header.version, len(kept) + len(tensors), len(entries)))
        for entry in entries:
            target.write(entry)
        # New tensors come first: every other offset then moves by a known amount, whatever the size of the last one.
        offset = 0
        for name, values in tensors.items():
            target.write(_tensor_info(name, (len(values),), TENSOR_FLOAT32, offset))
            offset = align(offset + 4 * len(values), header.alignment)
        for index in kept:
            tensor, (start, end) = header.tensors[index], header.tensor_span(index)
            target.write(_tensor_info(tensor.name, tensor.shape, tensor.kind, offset))
            offset = align(offset + end - start, header.alignment)
        _pad(target, header.alignment)
        for values in tensors.values():
            target.write(struct.pack(f"<{len(values)}f", *values))
            _pad(target, header.alignment)
        for index in kept:
            _copy(file, target, *header.tensor_span(index))
            _pad(target, header.alignment)
        target.flush()
        os.fsync(target.fileno())


def _entries(
    file: IO[bytes], header: GgufHeader, keys: Mapping[str, GgufValue], removed: Collection[str]
) -> list[bytes]:
    """Returns every key-value pair of the new file, as bytes."""
    entries = []
    for key, (start, end) in header.spans.items():
        if key in keys:
            entries.append(_entry(key, keys[key]))
        elif key not in removed:
            file.seek(start)
            entries.append(file.read(end - start))
    return entries + [_entry(key, value) for key, value in keys.items() if key not in header.spans]


def _entry(key: str, value: GgufValue) -> bytes:
    if isinstance(value, str):
        return _text(key) + struct.pack("<I", STRING) + _text(value)
    if isinstance(value, int):
        return _text(key) + struct.pack("<II", UINT32, value)
    return _text(key) + struct.pack("<If", FLOAT32, value)


def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _tensor_info(name: str, shape: Sequence[int], kind: int, offset: int) -> bytes:
    return _text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset)


def _pad(target: IO[bytes], alignment: int) -> None:
    position = target.tell()
    target.write(bytes(align(position, alignment) - position))


def _copy(file: IO[bytes], target: IO[bytes], start: int, end: int) -> None:
    file.seek(start)
    while start < end:
        chunk = file.read(min(_BUFFER, end - start))
        if not chunk:
            raise OSError("the source became shorter while it was read")
        target.write(chunk)
        start += len(chunk)
