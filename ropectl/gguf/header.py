"""Reads the header of a GGUF file: keys and tensor descriptions, without the token lists and without any weight.

The layout is documented in ggml's ``docs/gguf.md``: magic, version, two counts, the key-value pairs, the
tensor descriptions, padding, then tensor data at aligned offsets. The package ``gguf`` reads the same, but
makes one array object per token, which takes seconds for a real vocabulary; here long lists are skipped.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ropectl.errors import ConfigError
from ropectl.file_reading import check_ordinary

MAGIC = b"GGUF"
#: Version 1 had other widths and is no longer read by llama.cpp either.
VERSIONS = (2, 3)
DEFAULT_ALIGNMENT = 32

UINT32, FLOAT32, STRING, ARRAY = 4, 6, 8, 9
#: Value type number -> struct format, for the types of fixed size.
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", UINT32: "I", 5: "i", FLOAT32: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
#: ggml's number for float32 tensors.
TENSOR_FLOAT32 = 0

#: Longer lists are vocabularies; shorter ones may say something per layer.
LONGEST_LIST_READ = 1024


@dataclass(frozen=True)
class SkippedList:
    """A list that was not read: only its length is known."""

    length: int


@dataclass(frozen=True)
class GgufTensor:
    """The place of a tensor's data, and its shape in ggml's order (fastest dimension first)."""

    name: str
    shape: tuple[int, ...]
    kind: int
    offset: int


@dataclass(frozen=True)
class GgufHeader:
    """The contents of a GGUF file's header.

    Attributes:
        version: Version of the format.
        keys: Every key with its value; long lists as :class:`SkippedList`.
        spans: Key -> first and last-plus-one byte of its whole entry in the file, key included.
        tensors: In the order of their data.
        alignment: Alignment of tensor data [bytes].
        data_start: Start of the tensor data [bytes]; tensor offsets count from here.
        size: Size of the file [bytes].
    """

    version: int
    keys: Mapping[str, Any]
    spans: Mapping[str, tuple[int, int]]
    tensors: tuple[GgufTensor, ...]
    alignment: int
    data_start: int
    size: int

    @property
    def architecture(self) -> str:
        """The name that prefixes the model's own keys, such as ``llama``."""
        return str(self.keys["general.architecture"])

    def own(self, key: str, default: Any = None) -> Any:
        """Returns the value of ``{architecture}.{key}``, or ``default``."""
        return self.keys.get(f"{self.architecture}.{key}", default)

    def tensor_span(self, index: int) -> tuple[int, int]:
        """Returns first and last-plus-one byte of a tensor's data in the file, padding included."""
        following = self.tensors[index + 1].offset if index + 1 < len(self.tensors) else self.size - self.data_start
        return self.data_start + self.tensors[index].offset, self.data_start + following


def read_header(path: Path) -> GgufHeader:
    """Returns the header of a GGUF file.

    Raises:
        ConfigError: If the file is not a GGUF file, is cut short, or is of an unsupported kind.
    """
    check_ordinary(path)
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _Reader(path, data).header()
    except (struct.error, IndexError, UnicodeDecodeError, OverflowError, RecursionError):
        raise ConfigError(f"{path} is damaged or cut short: its header cannot be read to the end.") from None
    except OSError as error:
        raise ConfigError(f"Cannot read {path}: {error.strerror or error}.") from None
    except ValueError:  # mmap refuses an empty file
        raise ConfigError(f"{path} is empty.") from None


def read_floats(path: Path, header: GgufHeader, name: str) -> tuple[float, ...] | None:
    """Returns the numbers of a one-dimensional float32 tensor, or None if there is no tensor of that name.

    Raises:
        ConfigError: If it is of another type or shape, or cut short.
    """
    for tensor in header.tensors:
        if tensor.name != name:
            continue
        if tensor.kind != TENSOR_FLOAT32 or len(tensor.shape) != 1:
            raise ConfigError(f"{path}: {name} is not a list of float32 numbers.")
        with path.open("rb") as file:
            file.seek(header.data_start + tensor.offset)
            data = file.read(4 * tensor.shape[0])
        if len(data) != 4 * tensor.shape[0]:
            raise ConfigError(f"{path} is cut short: numbers of {name} are missing.")
        return tuple(shortest(value) for value in struct.unpack(f"<{tensor.shape[0]}f", data))
    return None


def shortest(value: float) -> float:
    """Returns the shortest decimal number that is this float32: 1e-05, not 9.999999747378752e-06."""
    for digits in range(6, 9):
        short = float(f"{value:.{digits}g}")
        try:
            if struct.pack("<f", short) == struct.pack("<f", value):
                return short
        except OverflowError:  # rounded up past the largest float32
            continue
    return value


def align(offset: int, alignment: int) -> int:
    """Returns the next multiple of ``alignment`` at or after ``offset``."""
    return -(-offset // alignment) * alignment


class _Reader:
    """A position that moves through the file. All numbers are little-endian."""

    def __init__(self, path: Path, data: mmap.mmap) -> None:
        self.path, self.data, self.at = path, data, 0

    def header(self) -> GgufHeader:
        if self.data[:4] != MAGIC:
            raise ConfigError(f"{self.path} is not a GGUF file: it does not begin with {MAGIC.decode()}.")
        self.at = 4
        version = self.number("I")
        if version not in VERSIONS:
            kind = "big-endian" if version & 0xFFFF == 0 else f"version {version}"
            raise ConfigError(
                f"{self.path} is a GGUF file of an unsupported kind ({kind}); supported are the little-endian "
                f"versions {' and '.join(map(str, VERSIONS))}.",
                "Convert the model again with a current llama.cpp.",
            )
        num_tensors, num_keys = self.number("Q"), self.number("Q")
        keys, spans = {}, {}
        for _ in range(num_keys):
            start = self.at
            key = self.text()
            keys[key] = self.value(self.number("I"))
            spans[key] = (start, self.at)
        tensors = sorted((self.tensor() for _ in range(num_tensors)), key=lambda tensor: tensor.offset)
        alignment = keys.get("general.alignment", DEFAULT_ALIGNMENT)
        if not isinstance(keys.get("general.architecture"), str):
            raise ConfigError(f"{self.path} does not say general.architecture: no model can be read from it.")
        if not isinstance(alignment, int) or alignment < 1:
            raise ConfigError(f"{self.path} is damaged: general.alignment is {alignment!r}.")
        start, size = align(self.at, alignment), len(self.data)
        if tensors and start + tensors[-1].offset >= size:
            raise ConfigError(f"{self.path} is cut short: the data of {tensors[-1].name} is missing.")
        return GgufHeader(version, keys, spans, tuple(tensors), alignment, start, size)

    def number(self, code: str) -> Any:
        value = struct.unpack_from(f"<{code}", self.data, self.at)[0]
        self.at += struct.calcsize(code)
        return value

    def skip(self, size: int) -> None:
        self.at += size
        if self.at > len(self.data):
            raise IndexError

    def text(self) -> str:
        length = self.number("Q")
        start = self.at
        self.skip(length)
        return self.data[start : self.at].decode()

    def value(self, kind: int) -> Any:
        if kind == STRING:
            return self.text()
        if kind == ARRAY:
            return self.list()
        value = self.number(SCALARS.get(kind) or self.unknown(kind))
        return shortest(value) if kind == FLOAT32 else value

    def list(self) -> Any:
        kind, length = self.number("I"), self.number("Q")
        if kind == ARRAY or (kind != STRING and kind in SCALARS and length <= LONGEST_LIST_READ):
            return [self.value(kind) for _ in range(length)]
        if kind == STRING:
            unpack, data, at = struct.Struct("<Q").unpack_from, self.data, self.at
            for _ in range(length):  # most time is spent here: a hundred thousand tokens
                at += 8 + unpack(data, at)[0]
            self.at = at
            self.skip(0)
        else:
            self.skip(length * struct.calcsize(SCALARS.get(kind) or self.unknown(kind)))
        return SkippedList(length)

    def unknown(self, kind: int) -> str:
        raise ConfigError(f"{self.path} has a value of type {kind}, which does not exist in any version of GGUF.")

    def tensor(self) -> GgufTensor:
        name = self.text()
        shape = tuple(self.number("Q") for _ in range(self.number("I")))
        return GgufTensor(name, shape, self.number("I"), self.number("Q"))
