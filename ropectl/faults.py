"""Faults of settings and of the parameters of specs in words: what is wrong, what is allowed, what was meant."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ropectl.errors import ConfigError
from ropectl.names import near_names
from ropectl.printable import shorten, shown
from ropectl.slips import Cure, find_cure, mended_spec
from ropectl.specs import describe_range, format_spec

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError

#: Messages for values of the wrong type, by the beginning of pydantic's name for the failure.
NO_SUCH_TYPE = {
    "int": "it is not a whole number",
    "float": "it is not a number",
    "finite": "it is not a finite number",
    "bool": "it is neither true nor false",
    "string": "it is not a text",
    "tuple": "it is not a list",
    "path": "it is not a path",
}


@dataclass(frozen=True)
class Fault:
    """The most helpful of the faults that pydantic found.

    Attributes:
        name: The field; None for a rule over several.
        problem: A message of ours about it.
        is_unknown: Whether there is no such field.
        is_missing: Whether the field has no default and was not given.
        value: The value that is at fault; of a list the one entry.
    """

    name: str | None
    problem: str
    is_unknown: bool = False
    is_missing: bool = False
    value: Any = None

    @classmethod
    def of(cls, kind: type[BaseModel], error: ValidationError) -> Fault:
        """Returns the fault: an unknown field before all others, since it may be a misspelt one.

        Args:
            kind: The type that could not be created.
            error: The complaint.
        """
        first = min(error.errors(), key=lambda entry: entry["type"] != "extra_forbidden")
        problem = str(first["msg"]).removeprefix("Value error, ")
        if not first["loc"]:
            return cls(None, problem)
        value, is_missing = first["input"], first["type"] == "missing"
        name, failure = str(first["loc"][0]), first["type"]
        field = kind.model_fields.get(name)
        allowed = describe_range(field) if field is not None else ""
        detail = next((text for start, text in NO_SUCH_TYPE.items() if failure.startswith(start)), None)
        if failure.startswith(("greater_than", "less_than")) and allowed:
            detail = f"it must be {allowed}"
        detail = detail or problem[0].lower() + problem[1:]
        return cls(name, detail, failure == "extra_forbidden", is_missing, value)

    def cure(self, kind: type[BaseModel], given: Mapping[str, Any]) -> Cure | None:
        """Returns what was meant, if a likely slip explains the fault and the cure would be taken.

        Args:
            kind: The type that could not be created.
            given: The values that it was given.
        """
        from pydantic import ValidationError

        # compare-methods reads several factors under a name of their own
        setting = "factor" if self.name == "factors" else self.name or ""
        others = {name: value for name, value in given.items() if name not in (self.name, setting)}

        def is_taken(value: str) -> bool:
            try:
                kind(**{**others, setting: value})
            except ValidationError as error:
                return all(entry["loc"][:1] != (setting,) for entry in error.errors())
            except ConfigError:  # of another setting
                pass
            return True

        return find_cure(setting, self.value, is_taken)


def explain(
    kind: type[BaseModel],
    spec_name: str,
    error: ValidationError,
    parameters: dict[str, Any],
    example: Callable[[str], str],
) -> tuple[str, str]:
    """Returns the most helpful complaint about the parameters of a spec, as message and hint.

    Args:
        kind: The type that could not be created.
        spec_name: Its name in a spec.
        error: The complaint.
        parameters: The parameters as they were given.
        example: Returns what to type to give a missing parameter.
    """
    fault = Fault.of(kind, error)
    if fault.name is None:
        return f"{spec_name}: {fault.problem}", ""
    if fault.is_unknown:
        near = near_names(fault.name, kind.model_fields)
        meant = f"Did you mean {' or '.join(near)}? " if near else ""
        known = ", ".join(kind.model_fields) or "none"
        return f"{spec_name} has no parameter {shown(fault.name)}.", f"{meant}Its parameters: {known}."
    if fault.is_missing:
        return f"{spec_name} needs {fault.name} ({kind.model_fields[fault.name].description}).", example(fault.name)
    message = (
        f"{spec_name}: {fault.name} = {shorten(str(parameters.get(fault.name)))} is not possible: {fault.problem}."
    )
    if cure := fault.cure(kind, parameters):
        if cure.setting == fault.name:
            return message, cure.hint(format_spec(spec_name, {**parameters, fault.name: cure.value}))
        rest = {name: value for name, value in parameters.items() if name != fault.name}
        return message, cure.hint(f"-m {format_spec(spec_name, rest)} {cure.option}")
    mended = mended_spec(format_spec(spec_name, parameters), {spec_name: kind})
    return message, f"Did you mean {mended}?" if mended else ""
