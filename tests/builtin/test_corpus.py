"""The standard library as text: split by a stable hash, found where it is, refused where it is stripped."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from ropectl.data.text_sources.builtin import is_held_out, module_paths, stdlib_documents
from ropectl.errors import DataError


@pytest.mark.parametrize("path", ["argparse.py", "json/decoder.py", "inspect.py", "typing.py"])
def test_split_is_the_stated_hash(path: str) -> None:
    assert is_held_out(path) == (int(hashlib.sha256(path.encode()).hexdigest()[:16], 16) % 4 == 0)


def test_split_does_not_move() -> None:
    """The shipped model was trained on one side: these must stay where they are."""
    assert is_held_out("ast.py") and is_held_out("os.py")
    assert not is_held_out("argparse.py") and not is_held_out("pickle.py")


def test_sides_are_disjoint_and_complete() -> None:
    held_out = {document.name for document in stdlib_documents(held_out=True)}
    tuning = {document.name for document in stdlib_documents(held_out=False)}
    assert not held_out & tuning
    assert held_out | tuning == set(module_paths())
    assert 0.15 < len(held_out) / len(held_out | tuning) < 0.35


def test_tests_and_packages_do_not_count() -> None:
    assert not [path for path in module_paths() if {"test", "tests", "site-packages", "idlelib"} & set(path.split("/"))]


def test_stripped_library_is_said(tmp_path: Path) -> None:
    (tmp_path / "os.py").write_text("x = 1\n")
    with pytest.raises(DataError, match=r"1 modules with source.*ships without them") as caught:
        list(stdlib_documents(held_out=True, root=tmp_path))
    assert "--text" in caught.value.hint
    with pytest.raises(DataError, match="0 modules"):
        module_paths(tmp_path / "nowhere")
