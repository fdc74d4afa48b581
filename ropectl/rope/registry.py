"""Finds the scaling methods and reads method specs.

Every module in ``ropectl/rope/methods`` is scanned for :class:`ScalingMethod` subclasses, and so is
every module that an installed package names under the entry-point group ``ropectl.methods``. Nothing
else lists methods by hand.

A method spec is ``NAME[:KEY=VALUE,...]``, for example ``yarn:factor=8,beta_fast=32``. List values are
joined by colons (``long_factor=1:1.5:4``) or read from a JSON file (``long_factor=@factors.json``).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from ropectl.discovery import find_classes
from ropectl.errors import ConfigError, MethodError
from ropectl.file_reading import home_path
from ropectl.json_reading import read_json
from ropectl.names import name_hint
from ropectl.printable import shorten
from ropectl.rope import methods as methods_package
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.method import ScalingMethod, example
from ropectl.rope.proportional import common_block
from ropectl.specs import split_spec

ENTRY_POINT_GROUP = "ropectl.methods"


@cache
def all_methods() -> dict[str, type[ScalingMethod]]:
    """Returns every known method by name: the baseline first, the rest by name.

    Raises:
        MethodError: If two methods share a name.
    """
    # The base is abstract on purpose: only subclasses of it are looked for.
    found = find_classes(methods_package, ScalingMethod, ENTRY_POINT_GROUP, "methods", MethodError)  # type: ignore[type-abstract]
    return dict(sorted(found.items(), key=lambda item: item[0] != "none"))


def find_method(name: str) -> type[ScalingMethod]:
    """Returns the method of this name.

    Raises:
        MethodError: With the nearest known names.
    """
    known = all_methods()
    if name in known:
        return known[name]
    raise MethodError(f"There is no scaling method {name!r}.", name_hint(name, known))


def parse_spec(spec: str) -> tuple[type[ScalingMethod], dict[str, Any]]:
    """Returns the class and the written parameters of a method spec, unchecked.

    Raises:
        MethodError: If the method is unknown or the spec is not ``NAME[:KEY=VALUE,...]``.
    """
    known = all_methods()
    name, parameters = split_spec(spec, "scaling method", known, MethodError)
    return known[name], {key: _read_value(value) for key, value in parameters.items()}


def parse_method(spec: str, factor: float | None = None, geometry: RopeGeometry | None = None) -> ScalingMethod:
    """Returns the method that a spec names.

    Args:
        spec: ``NAME[:KEY=VALUE,...]``.
        factor: Wanted extension factor, which completes a spec that does not give it.
        geometry: The model's, with which written parameters are compared; needed with ``factor``.

    Raises:
        MethodError: If the spec is malformed, a parameter is missing, unknown or out of range, or
            ``factor`` contradicts the spec.
    """
    method, parameters = parse_spec(spec)
    if geometry is not None:
        method.check_written(parameters, geometry)
    if factor is not None and geometry is not None:
        parameters = method.fill_factor(parameters, factor, geometry)
    missing = method.missing(parameters)
    if missing and not set(parameters) - set(method.model_fields):  # a misspelt name may explain the missing one
        name = missing[0]
        hint = example(method, name) + (" (or --factor 4, or --target-length N)" if name == "factor" else "")
        raise MethodError(f"{method.name} needs {name} ({method.model_fields[name].description}).", hint)
    return method.create(parameters)


def takes_factor(spec: str, factor: float, geometry: RopeGeometry) -> bool:
    """Returns whether an extension factor decides, or agrees with, something of the method that a spec names."""
    method, parameters = parse_spec(spec)
    return "factor" in parameters or method.fill_factor(dict(parameters), factor, geometry) != parameters


def method_from_native(rope_parameters: dict[str, Any], geometry: RopeGeometry) -> ScalingMethod | None:
    """Returns the method that a stock ``rope_parameters`` block stands for, or None if no method claims it."""
    block = common_block(rope_parameters)
    for method in all_methods().values():
        found = method.from_native(block, geometry)
        if found is not None:
            return found
    return None


def _read_value(value: str) -> Any:
    """Returns a list from a JSON file or joined by colons, else the string itself, which the field converts."""
    if value.startswith("@"):
        try:
            return read_json(home_path(value[1:]), hint="It has to hold a list of numbers.", pipes=True)
        except ConfigError as error:
            raise MethodError(error.message, error.hint) from None
    return value.split(":") if ":" in value else value


def check_distinct(specs: Sequence[str], methods: Sequence[ScalingMethod]) -> None:
    """Checks that specs which were asked for together are different methods.

    Args:
        specs: The specs as typed.
        methods: What each is on the model.

    Raises:
        MethodError: Naming two that are the same.
    """
    first: dict[ScalingMethod, str] = {}
    for spec, method in zip(specs, methods, strict=True):
        if method in first:
            raise MethodError(
                f"{shorten(first[method])} and {shorten(spec)} are the same method here.", "Give it once."
            )
        first[method] = spec
