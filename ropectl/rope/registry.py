"""Finds the scaling methods and reads method specs.

Every module in ``ropectl/rope/methods`` is scanned for :class:`ScalingMethod` subclasses, and so is
every module that an installed package names under the entry-point group ``ropectl.methods``. Nothing
else lists methods by hand.

A method spec is ``NAME[:KEY=VALUE,...]``, for example ``yarn:factor=8,beta_fast=32``. List values are
joined by colons (``long_factor=1:1.5:4``) or read from a JSON file (``long_factor=@factors.json``).
"""

from __future__ import annotations

import difflib
import importlib
import json
import pkgutil
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from ropectl.errors import MethodError
from ropectl.rope import methods as methods_package
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.method import ScalingMethod, example
from ropectl.rope.proportional import common_block

ENTRY_POINT_GROUP = "ropectl.methods"


@cache
def all_methods() -> dict[str, type[ScalingMethod]]:
    """Returns every known method by name: the baseline first, the rest by name.

    Raises:
        MethodError: If two methods share a name.
    """
    found: dict[str, type[ScalingMethod]] = {}
    for module in _method_modules():
        for candidate in vars(module).values():
            if not (isinstance(candidate, type) and issubclass(candidate, ScalingMethod)):
                continue
            if candidate.__module__ != module.__name__ or not hasattr(candidate, "name"):
                continue
            if candidate.name in found:
                raise MethodError(
                    f"Two methods are called {candidate.name!r}: {found[candidate.name]} and {candidate}."
                )
            found[candidate.name] = candidate
    return dict(sorted(found.items(), key=lambda item: (item[0] != "none", item[0])))


def _method_modules() -> list[ModuleType]:
    names = [info.name for info in pkgutil.iter_modules(methods_package.__path__)]
    modules = [importlib.import_module(f"{methods_package.__name__}.{name}") for name in names]
    return modules + [point.load() for point in entry_points(group=ENTRY_POINT_GROUP)]


def find_method(name: str) -> type[ScalingMethod]:
    """Returns the method of this name.

    Raises:
        MethodError: With the nearest known names.
    """
    known = all_methods()
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    hint = f"Did you mean {' or '.join(near)}?" if near else f"Known: {', '.join(known)}."
    raise MethodError(f"There is no scaling method {name!r}.", hint)


def parse_spec(spec: str) -> tuple[type[ScalingMethod], dict[str, Any]]:
    """Returns the class and the written parameters of a method spec, unchecked.

    Raises:
        MethodError: If the method is unknown or the spec is not ``NAME[:KEY=VALUE,...]``.
    """
    name, _, rest = spec.strip().partition(":")
    method = find_method(name.strip())
    parameters: dict[str, Any] = {}
    for pair in filter(None, rest.split(",")):
        key, separator, value = (part.strip() for part in pair.partition("="))
        if not separator or not key or not value:
            raise MethodError(
                f"{pair!r} in the method spec {spec!r} is not KEY=VALUE.",
                "A spec is NAME[:KEY=VALUE,...], as in yarn:factor=8",
            )
        if key in parameters:
            raise MethodError(f"{key} stands twice in the method spec {spec!r}.")
        parameters[key] = _read_value(value)
    return method, parameters


def parse_method(spec: str, factor: float | None = None, geometry: RopeGeometry | None = None) -> ScalingMethod:
    """Returns the method that a spec names.

    Args:
        spec: ``NAME[:KEY=VALUE,...]``.
        factor: Wanted extension factor, which completes a spec that does not give it.
        geometry: The model's; needed with ``factor``.

    Raises:
        MethodError: If the spec is malformed, a parameter is missing, unknown or out of range, or
            ``factor`` contradicts the spec.
    """
    method, parameters = parse_spec(spec)
    if factor is not None and geometry is not None:
        parameters = method.fill_factor(parameters, factor, geometry)
    missing = method.missing(parameters)
    if missing and not set(parameters) - set(method.model_fields):  # a misspelt name explains a missing one
        name = missing[0]
        hint = example(method, name) + (" (or --factor 4, or --target-length N)" if name == "factor" else "")
        raise MethodError(f"{method.name} needs {name} ({method.model_fields[name].description}).", hint)
    return method.create(parameters)


def method_from_native(rope_parameters: dict[str, Any], geometry: RopeGeometry) -> ScalingMethod | None:
    """Returns the method that a stock ``rope_parameters`` block stands for, or None if no method claims it."""
    block = common_block(rope_parameters)
    for method in all_methods().values():
        found = method.from_native(block, geometry)
        if found is not None:
            return found
    return None


def _read_value(value: str) -> Any:
    """A list from a JSON file or joined by colons, else the string itself, which the field converts."""
    if value.startswith("@"):
        path = Path(value[1:])
        try:
            return json.loads(path.read_text())
        except (OSError, ValueError) as error:
            raise MethodError(f"Cannot read the list of numbers in {path}: {error}") from None
    return value.split(":") if ":" in value else value
