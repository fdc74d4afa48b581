"""Values that follow from a method, in words."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ropectl.rope.derived_value import DerivedValue


def derived_rows(values: Mapping[str, DerivedValue], said: Collection[str] = ()) -> list[tuple[str, str]]:
    """Returns each value's name, and the value with its unit and meaning.

    Args:
        values: The values by name.
        said: Names of values that are shown already.
    """
    return [
        (name.replace("_", " "), f"{derived_text(value)} ({value.meaning})")
        for name, value in values.items()
        if name not in said
    ]


def derived_text(value: DerivedValue, with_unit: bool = True) -> str:
    """Returns a value, with its unit or without."""
    ends = value.value if isinstance(value.value, list) else [value.value]
    text = " to ".join(f"{end:.7g}" for end in ends)
    return f"{text} {value.unit}" if with_unit and value.unit not in ("1", "pairs") else text
