"""Slips of typing and what was meant: one table for options, settings files and specs, and the separators of specs."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import BaseModel

_NUMBER = r"(\d+(?:\.\d*)?|\.\d+)"
_TIMES = re.compile(rf"[x\u00d7]\s*{_NUMBER}|{_NUMBER}\s*[x\u00d7]")

#: A target length up to here was meant as a factor, if it is below the trained length [tokens].
LARGEST_USUAL_FACTOR = 100


@dataclass(frozen=True)
class Slip:
    """A way to write a number that is none, or not the one that was meant.

    Attributes:
        pattern: What is typed.
        meant: Returns what was meant, from the match; None if nothing.
        why: What tells the two apart, as a sentence.
        setting: The setting that it happens to; None for all.
        instead: The setting that was meant; None for the same one.
    """

    pattern: str
    meant: Callable[[re.Match[str]], str | None]
    why: str = ""
    setting: str | None = None
    instead: str | None = None


def _inverse(found: re.Match[str]) -> str | None:
    value = float(found[1])
    return f"{1 / value:g}" if 0 < value < 1 else None


def _share(found: re.Match[str]) -> str | None:
    value = float(found[1])
    return f"{value / 100:g}" if value <= 100 or "%" in found[0] else None


SLIPS = (
    Slip(_NUMBER, _inverse, "It says how many times longer.", "factor"),
    Slip(_TIMES.pattern, lambda found: found[1] or found[2]),
    Slip(r"\d+(?:\.\d+)?\s*[kKmM]", lambda found: found[0], "That is a length.", "factor", "target_length"),
    Slip(rf"{_NUMBER}\s*%?", _share, "A share is a number from 0 to 1."),
    Slip(
        r"[\d.,\s%]*[.,%][\d.,\s%]*",
        lambda found: str(len(found[0].split(","))),
        "They are counted, and evenly spaced over the length: 1 is the middle.",
        "depths",
    ),
)


@dataclass(frozen=True)
class Cure:
    """What was meant.

    Attributes:
        setting: The setting, as the field is called.
        value: Its value, as it is typed.
        why: What tells it from what was typed; empty where that is plain.
    """

    setting: str
    value: str
    why: str

    @property
    def option(self) -> str:
        """The option, as it is typed."""
        return f"--{self.setting.replace('_', '-')} {self.value}"

    def hint(self, typed: str) -> str:
        """Returns the hint that suggests it.

        Args:
            typed: What to type.
        """
        return f"Did you mean {typed}? {self.why}".rstrip()


def find_cure(setting: str, written: Any, is_taken: Callable[[str], bool]) -> Cure | None:
    """Returns what was meant by a value that was refused; None if no slip explains it.

    Args:
        setting: The setting, as the field is called.
        written: The value as it was written.
        is_taken: Returns whether the setting takes a value; another setting takes any.
    """
    for slip in SLIPS:
        found = re.fullmatch(slip.pattern, str(written).strip())
        if found is None or slip.setting not in (None, setting):
            continue
        meant = slip.meant(found)
        if meant is not None and (slip.instead or is_taken(meant)):
            return Cure(slip.instead or setting, meant, slip.why)
    return None


def factor_of(text: str) -> str | None:
    """Returns the factor that ``4x`` or ``x4`` says; None for another text."""
    found = _TIMES.fullmatch(text.strip())
    return None if found is None else found[1] or found[2]


def mended_spec(spec: str, known: Mapping[str, type[BaseModel]]) -> str | None:
    """Returns the spec that was meant by one with other separators, such as ``yarn=4`` or ``yarn,factor=4``.

    A number alone is the factor, or the one parameter that has to be given.

    Args:
        spec: What was typed.
        known: What can be named, by name.

    Returns:
        A spec other than ``spec`` that names something known and its parameters; None if that is not clear.
    """
    text = spec.strip()
    name = max((each for each in known if text.casefold().startswith(each)), key=len, default=None)
    if name is None or text[len(name) :][:1].isalpha():
        return None
    fields = known[name].model_fields
    required = [key for key, field in fields.items() if field.is_required()]
    alone = "factor" if "factor" in fields else required[0] if len(required) == 1 else None
    parameters: dict[str, str] = {}
    for part in filter(None, re.split(r"\s*[,;&]\s*", text[len(name) :].strip(" \t:=,;-()[]"))):
        pair = re.fullmatch(r"([A-Za-z]\w*)\s*[=:\s]\s*(\S+)", part)
        key, value = (pair[1], pair[2]) if pair else (alone, part)
        value = factor_of(value) or value
        if key not in fields or key in parameters or not (pair or re.fullmatch(_NUMBER, value)):
            return None
        parameters[key] = value
    pairs = ",".join(f"{key}={value}" for key, value in parameters.items())
    mended = f"{name}:{pairs}" if pairs else name
    return None if mended == spec else mended
