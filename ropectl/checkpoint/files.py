"""Finds the files of a checkpoint to be copied, and copies them byte for byte, in bounded memory."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

from ropectl.errors import ConfigError, RopectlError
from ropectl.hf.tensors.shards import WEIGHT_SUFFIX
from ropectl.records import WrittenFiles

#: Files that Python can unpickle, which runs code.
PICKLE_SUFFIXES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle")

_SKIPPED_FOLDERS = (".git", ".cache", "__pycache__", ".ipynb_checkpoints")

#: Bytes between two reports of progress, and bytes held at a time where the system cannot copy by itself.
_STEP, _BUFFER = 64 * 2**20, 2**20
_NOT_IN_KERNEL = (errno.EXDEV, errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.EBADF)


@dataclass(frozen=True)
class FileList:
    """The files of a checkpoint folder.

    Attributes:
        root: The folder.
        kept: Paths under it that are copied.
        left_out: Paths that are not: pickles.
    """

    root: Path
    kept: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def num_bytes(self) -> int:
        """Size of the files that are copied [bytes]."""
        return sum((self.root / name).stat().st_size for name in self.kept)

    @property
    def weights(self) -> tuple[str, ...]:
        """The weight files among them."""
        return tuple(name for name in self.kept if name.endswith(WEIGHT_SUFFIX))

    def describe(self, linked: bool) -> WrittenFiles:
        """Returns what a record says of the files."""
        return WrittenFiles(
            num_files=len(self.kept), num_bytes=self.num_bytes, linked=linked, left_out=list(self.left_out)
        )


def list_files(root: Path, allow_pickle: bool) -> FileList:
    """Returns the files of a checkpoint folder, those in its subfolders included.

    Args:
        root: The folder; links to files are followed, as the hub's cache consists of them.
        allow_pickle: Copy pickles too.

    Raises:
        ConfigError: If a link leads nowhere.
    """
    kept: list[str] = []
    left_out: list[str] = []
    for folder, subfolders, names in os.walk(root):
        subfolders[:] = sorted(name for name in subfolders if name not in _SKIPPED_FOLDERS)
        for name in sorted(names):
            path = (Path(folder) / name).relative_to(root).as_posix()
            if not (root / path).is_file():
                raise ConfigError(f"{root / path} is a broken link or not an ordinary file.", "Remove or repair it.")
            is_pickle = name.endswith(PICKLE_SUFFIXES)
            (left_out if is_pickle and not allow_pickle else kept).append(path)
    return FileList(root, tuple(kept), tuple(left_out))


def check_weights(files: FileList) -> None:
    """Checks that there are weights that may be copied.

    Raises:
        ConfigError: If there are none, or pickles only.
    """
    if files.weights:
        return
    pickles = [name for name in (*files.kept, *files.left_out) if name.endswith(PICKLE_SUFFIXES)]
    if pickles and files.left_out:
        raise ConfigError(
            f"{files.root} has only pickled weights ({pickles[0]}), which can run code while being read.",
            "To copy them as they are: --allow-pickle",
        )
    if not pickles:
        raise ConfigError(f"{files.root} has no weights: no .safetensors file.", "Give a whole checkpoint.")


def copy_files(files: FileList, out: Path, link: bool, advance: Callable[[int], None]) -> None:
    """Copies files byte for byte; with ``link``, weight files become hard links to the same bytes.

    Args:
        files: The files to copy.
        out: An existing folder.
        link: Hard link weight files.
        advance: Called with the bytes that were copied.

    Raises:
        ConfigError: If linking is not possible between the two places.
        RopectlError: If the disk is full or a file cannot be read.
    """
    for name in files.kept:
        source, target = files.root / name, out / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if link and name.endswith(WEIGHT_SUFFIX):
            _link(source.resolve(), target)
            advance(source.stat().st_size)
        else:
            _copy(source, target, advance)


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError as error:
        reason = "they are on different file systems" if error.errno == errno.EXDEV else error.strerror
        raise ConfigError(
            f"{source} cannot be hard linked to {target.parent}: {reason}.", "Leave out --link to copy."
        ) from None


def _copy(source: Path, target: Path, advance: Callable[[int], None]) -> None:
    try:
        with source.open("rb", buffering=0) as reader, target.open("wb", buffering=0) as writer:
            if not _copy_in_kernel(reader, writer, advance):
                _copy_by_hand(reader, writer, advance)
        shutil.copymode(source, target)
        if target.stat().st_size != source.stat().st_size:
            raise OSError(errno.EIO, "it changed while it was copied")
    except OSError as error:
        raise RopectlError(f"{source} cannot be copied: {error.strerror or error}.") from None


def _copy_in_kernel(reader: FileIO, writer: FileIO, advance: Callable[[int], None]) -> bool:
    """Lets the system copy, on some file systems by sharing blocks; returns whether it could."""
    if not hasattr(os, "copy_file_range"):
        return False
    done = 0
    try:
        while count := os.copy_file_range(reader.fileno(), writer.fileno(), _STEP):
            done += count
            advance(count)
    except OSError as error:
        if done or error.errno not in _NOT_IN_KERNEL:
            raise
        return False
    return done > 0  # some file systems answer 0 to what they cannot do


def _copy_by_hand(reader: FileIO, writer: FileIO, advance: Callable[[int], None]) -> None:
    buffer = memoryview(bytearray(_BUFFER))
    while count := reader.readinto(buffer):
        done = 0
        while done < count:
            done += writer.write(buffer[done:count])
        advance(count)


def check_space(place: Path, num_bytes: int) -> None:
    """Checks that a copy fits on the disk before it begins.

    Raises:
        ConfigError: With both sizes.
    """
    nearest = next(folder for folder in (place.absolute(), *place.absolute().parents) if folder.exists())
    free = shutil.disk_usage(nearest).free
    if num_bytes > free:
        raise ConfigError(
            f"{place} needs {num_bytes / 1e9:.1f} GB, but only {free / 1e9:.1f} GB are free there.",
            "Choose another place with --out, or --link to share the weight files.",
        )
