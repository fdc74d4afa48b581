"""Finds classes by scanning a package and the modules that other installed packages name: nothing is listed by hand."""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType
from typing import ClassVar, Protocol, TypeVar

from ropectl.errors import ConfigError


class Named(Protocol):
    """A class that can be found, because it has a name."""

    name: ClassVar[str]


Kind = TypeVar("Kind", bound=Named)


def find_classes(
    package: ModuleType, base: type[Kind], group: str, noun: str, error: type[ConfigError] = ConfigError
) -> dict[str, type[Kind]]:
    """Returns the named subclasses of ``base`` by their ``name``, in alphabetical order.

    Every module of ``package`` is searched, and every module that an installed package names under the entry-point
    group. A class counts only in the module that defines it, and only if it has a ``name``: one without is a base for
    others.

    Args:
        package: The package whose modules are scanned.
        base: The base class.
        group: Entry-point group whose entries are modules.
        noun: The word for such classes in messages, in the plural.
        error: The error raised for two classes with the same name.
    """
    from importlib.metadata import entry_points  # slow to import, and not needed by every command

    names = [info.name for info in pkgutil.iter_modules(package.__path__)]
    modules = [importlib.import_module(f"{package.__name__}.{name}") for name in names]
    modules += [point.load() for point in entry_points(group=group)]
    found: dict[str, type[Kind]] = {}
    for module in modules:
        for candidate in vars(module).values():
            if not (isinstance(candidate, type) and issubclass(candidate, base)):
                continue
            if candidate.__module__ != module.__name__ or not hasattr(candidate, "name"):
                continue
            if candidate.name in found:
                raise error(f"Two {noun} are called {candidate.name!r}: {found[candidate.name]} and {candidate}.")
            found[candidate.name] = candidate
    return dict(sorted(found.items()))
