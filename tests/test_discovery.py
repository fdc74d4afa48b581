"""An installed package brings text sources and runtimes through entry points; methods, tasks and protocols test their own."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from ropectl.data.sources import all_sources
from ropectl.data.text_sources.saved import SavedDataset
from ropectl.errors import ConfigError
from ropectl.runtimes.matrix import all_runtimes
from ropectl.runtimes.sglang import Sglang


@pytest.mark.parametrize(
    ("group", "registry", "kind"),
    [("ropectl.text_sources", all_sources, SavedDataset), ("ropectl.runtimes", all_runtimes, Sglang)],
    ids=["text source", "runtime"],
)
def test_a_package_brings_one(
    monkeypatch: pytest.MonkeyPatch, group: str, registry: Callable[[], Any], kind: type[Any]
) -> None:
    """It is found with those that ropectl ships."""
    shipped = names(registry)
    brings(monkeypatch, group, kind, "brought")
    registry.cache_clear()  # type: ignore[attr-defined]
    try:
        assert sorted(names(registry)) == sorted([*shipped, "brought"])
        brings(monkeypatch, group, kind, kind.name)
        registry.cache_clear()  # type: ignore[attr-defined]
        with pytest.raises(ConfigError, match=f"are called '{kind.name}'"):
            registry()
    finally:
        registry.cache_clear()  # type: ignore[attr-defined]


def brings(monkeypatch: pytest.MonkeyPatch, group: str, kind: type[Any], name: str) -> None:
    """An installed package names a module with such a class."""

    class Point:
        def load(self) -> ModuleType:
            module = ModuleType("another_package")
            module.Brought = type("Brought", (kind,), {"name": name, "__module__": module.__name__})  # type: ignore[attr-defined]
            return module

    points = {group: [Point()]}
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: points.get(group, []))


def names(registry: Callable[[], Any]) -> list[str]:
    """The names in a registry, whether it is a mapping or a sequence."""
    found = registry()
    return [entry.name for entry in (found.values() if isinstance(found, dict) else found)]
