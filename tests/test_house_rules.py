"""What keeps the house readable: no circles, names used once, small files and folders, docstrings that are sentences.

A rule that is not met everywhere yet names who breaks it. These lists only ever shrink: nothing is added to them, and what
meets the rule again must leave them.
"""

from __future__ import annotations

import ast
from collections import Counter
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "ropectl"
MODULES = [
    path
    for path in sorted(PACKAGE.rglob("*.py"))
    if path.parent != PACKAGE or path.stem not in ("__init__", "__main__")
]
IDEAS = [path for path in MODULES if path.stem != "__init__"]

#: File names that are there more than twice.
CROWDED_NAMES: set[str] = set()

#: Class names that are there more than once.
DOUBLE_CLASSES = {"Table", "View"}

LARGEST_FOLDER = 15
LARGE_FOLDERS: set[str] = set()

LONGEST_MODULE = 250
LONG_MODULES: set[str] = set()

#: Lines of a function without its docstring.
LONGEST_FUNCTION = 50
LONG_FUNCTIONS = {"cli/commands/report.py: report"}


def name(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def module_of(dotted: str) -> Path | None:
    """The file of a module or package, by its full name."""
    place = PACKAGE.joinpath(*dotted.split(".")[1:])
    return next((path for path in (place.with_suffix(".py"), place / "__init__.py") if path.is_file()), None)


def imports(path: Path) -> set[Path]:
    """Files of the package that a file imports, in whatever form and place, functions included."""
    found = set()
    for node in ast.walk(tree(path)):
        dotted: list[str] = []
        if isinstance(node, ast.Import):
            dotted = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            dotted = [each if each.startswith("ropectl.") and module_of(each) else node.module for each in inner]
        found |= {file for each in dotted if each.startswith("ropectl.") and (file := module_of(each))}
    return found - {path}


@pytest.mark.process
def test_no_imports_in_a_circle() -> None:
    """Imports inside functions count: they hide a circle, and do not open it."""
    try:
        list(TopologicalSorter({path: imports(path) for path in MODULES}).static_order())
    except CycleError as error:
        raise AssertionError(" -> ".join(name(path) for path in error.args[1])) from None


def test_a_file_name_stands_for_one_idea() -> None:
    crowded = {stem for stem, number in Counter(path.name for path in IDEAS).items() if number > 2}
    assert crowded == CROWDED_NAMES


def test_a_class_name_is_used_once() -> None:
    names = Counter(node.name for path in IDEAS for node in tree(path).body if isinstance(node, ast.ClassDef))
    assert {each for each, number in names.items() if number > 1} == DOUBLE_CLASSES


def test_folders_can_be_looked_over() -> None:
    sizes = Counter(path.parent for path in IDEAS if path.parent != PACKAGE)
    assert {name(folder) for folder, number in sizes.items() if number > LARGEST_FOLDER} == LARGE_FOLDERS


def test_modules_are_short() -> None:
    long = {name(path) for path in MODULES if len(path.read_text().splitlines()) > LONGEST_MODULE}
    assert long == LONG_MODULES


@pytest.mark.process
def test_functions_are_short() -> None:
    long = set()
    for path in MODULES:
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.FunctionDef):
                first = node.body[0]
                documented = first.end_lineno - first.lineno + 1 if ast.get_docstring(node) else 0
                if node.end_lineno - node.lineno + 1 - documented > LONGEST_FUNCTION:
                    long.add(f"{name(path)}: {node.name}")
    assert long == LONG_FUNCTIONS


#: Views of what is not a record, and of what has no type yet.
UNTYPED_VIEWS = {"choices.py", "env.py", "estimates.py", "self_test.py", "task_previews.py"}


def test_views_take_objects() -> None:
    """A view reads attributes that mypy knows, not keys of a dictionary."""
    untyped = {
        path.name for path in (PACKAGE / "report" / "views").glob("*.py") if "Mapping[str, Any]" in path.read_text()
    }
    assert untyped == UNTYPED_VIEWS
