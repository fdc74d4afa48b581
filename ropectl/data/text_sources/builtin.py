"""Texts that come with every Python: ``builtin:NAME``.

Every installation carries several megabytes of real, long, well-written text: its own standard-library sources. They
are split into a tuning and a held-out side by a hash of each module's path inside the library, so
the split is the same on every machine and every Python version: a module is **held out** when the first
eight bytes of the SHA-256 of its POSIX path (``json/decoder.py``), read as a big-endian integer,
are divisible by four. ``builtin:tiny`` was trained on the other side only.
"""

from __future__ import annotations

import hashlib
import platform
import sysconfig
import tokenize
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from ropectl.data.documents import Document
from ropectl.data.text_source import TextSource
from ropectl.errors import DataError
from ropectl.names import name_hint

#: One module in this many is held out.
HELD_OUT_SHARE = 4

#: Not counted as library text: test suites and demos (often packaged separately), tables and generated
#: data, and whatever was installed on top of the library.
EXCLUDED_FOLDERS = (
    *("__phello__", "__pycache__", "dist-packages", "encodings", "ensurepip", "idlelib", "lib2to3", "lib-dynload"),
    *("pydoc_data", "site-packages", "test", "tests", "turtledemo"),
)
EXCLUDED_PREFIXES = ("_sysconfigdata", "config-")

#: A working installation has several hundred modules; far fewer means that the sources are stripped.
MIN_MODULES = 50


def module_hash(module_path: str) -> int:
    """Returns the first eight bytes of the SHA-256 of a module's POSIX path inside the library, big-endian."""
    return int.from_bytes(hashlib.sha256(module_path.encode()).digest()[:8], "big")


def is_held_out(module_path: str) -> bool:
    """Returns whether the module at this POSIX path inside the library is held out from training."""
    return module_hash(module_path) % HELD_OUT_SHARE == 0


def module_paths(root: Path | None = None) -> list[str]:
    """Returns the POSIX paths of all library modules with source, sorted.

    Args:
        root: The library folder; by default that of the running Python.

    Raises:
        DataError: If the sources are not there, as in stripped or zipped distributions.
    """
    root = root or Path(sysconfig.get_path("stdlib"))
    paths = sorted(path.as_posix() for path in _module_files(root, Path()))
    if len(paths) < MIN_MODULES:
        raise DataError(
            f"builtin:stdlib needs the standard library's sources, but {root} holds {len(paths)} "
            f"modules with source (at least {MIN_MODULES} expected): this Python ships without them.",
            "Use a Python with its sources (python.org, Debian, conda, pyenv), or give your own text: --text FILE",
        )
    return paths


def _module_files(root: Path, folder: Path) -> Iterator[Path]:
    directory = root / folder
    if not directory.is_dir():
        return
    for entry in sorted(directory.iterdir()):
        relative = folder / entry.name
        if entry.name in EXCLUDED_FOLDERS or entry.name.startswith(EXCLUDED_PREFIXES):
            continue
        if entry.is_dir():
            yield from _module_files(root, relative)
        elif entry.suffix == ".py" and entry.stat().st_size > 0:
            yield relative


def stdlib_documents(held_out: bool, root: Path | None = None) -> Iterator[Document]:
    """Yields the modules of one side of the split, one document per module.

    They come in the order of their hashes: the first few are then a mixture of all packages, and the
    same everywhere.

    Args:
        held_out: True for the evaluation side (``builtin:stdlib``), False for the tuning side
            (``builtin:stdlib-train``).
        root: The library folder; by default that of the running Python.

    Raises:
        DataError: If the sources are not there.
    """
    root = root or Path(sysconfig.get_path("stdlib"))
    for path in sorted(module_paths(root), key=module_hash):
        if is_held_out(path) == held_out:
            with tokenize.open(root / path) as file:  # honours the module's own encoding cookie
                yield Document(name=path, text=file.read())


_TEXTS: dict[str, Callable[[], Iterator[Document]]] = {
    "builtin:stdlib": partial(stdlib_documents, held_out=True),
    "builtin:stdlib-train": partial(stdlib_documents, held_out=False),
}


class BuiltinText(TextSource):
    """The standard library of the running Python: held-out modules, and the others."""

    name: ClassVar[str] = "builtin"
    spelling: ClassVar[str] = "builtin:stdlib"
    help: ClassVar[str] = (
        "`builtin:stdlib` (held-out modules of Python's standard library), `builtin:stdlib-train` (the others)"
    )
    document: ClassVar[str] = "a module is a document"
    names: ClassVar[tuple[str, ...]] = tuple(_TEXTS)

    def matches(self, source: str) -> bool:
        """Returns whether a source begins with ``builtin:``."""
        return source.startswith("builtin:")

    def documents(self, source: str) -> Iterator[Document]:
        """Returns one document per module.

        Raises:
            DataError: If there is no such text, or this Python has no sources.
        """
        if source not in _TEXTS:
            raise DataError(f"There is no text source {source!r}.", name_hint(source, _TEXTS))
        return _TEXTS[source]()

    def identity(self, source: str) -> Any:
        """Returns the name and the version of Python."""
        return [source, platform.python_version()]
