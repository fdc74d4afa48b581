"""Kind 6 too: numbers that no machine can count to, and texts that are no numbers."""

from __future__ import annotations

from collections.abc import Iterator

from annotated_types import Ge, Gt

from fuzz.case import Case
from fuzz.options import Given, options_of, takes
from fuzz.templates import TEMPLATES, Template

_HUGE = ("1" + "0" * 30, "9" * 30, str(2**63))
_NO_NUMERALS = ("-1", "0", "nan", "inf", "1e400", "\u0663", "1_000", "0x10")
_NO_COUNTS = (*_NO_NUMERALS, " 5 ", "5.5", "abc", "--", "1e3", "5\n")
_NO_NUMBERS = (*_NO_NUMERALS, "-inf", " 0.5 ", "abc", "1,5", "0.5\n", "1/2")
_NO_LENGTHS = (*_NO_NUMERALS, " 5 ", "1.5", "9" * 400, "1" + "0" * 30 + "m")


def cases() -> Iterator[Case]:
    """Yields the cases of this kind that come from the options themselves."""
    for each in TEMPLATES:
        if "--dry-run" in each.args or not takes(each.command, "--dry-run") or each.command == "eval-tasks":
            for option in options_of(each.command):
                yield from _numbers(each, option)


def _numbers(each: Template, option: Given) -> Iterator[Case]:
    """Yields impossible numbers for an option that takes one."""
    if not option.flag:
        return
    if option.is_length:
        texts: tuple[str, ...] = (*_HUGE, *_NO_LENGTHS)
        if option.name == "needle_positions":
            texts = tuple(text for text in texts if text != "0")
    elif int in option.types:
        texts = (*_HUGE, *(text for text in _NO_COUNTS if not _is_possible(option, text)))
    elif float in option.types:
        texts = tuple(text for text in _NO_NUMBERS if not _is_possible(option, text))
    else:
        return
    for text in texts:
        yield each.case(6, f"{option.flag} {text!r:.40}", more=(option.flag, text), mentions=option.said)


def _is_possible(option: Given, text: str) -> bool:
    """Returns whether a plain number is within the bounds of an option."""
    if text not in ("-1", "0") or option.field is None:
        return False
    bounds = [bound for bound in option.field.metadata if isinstance(bound, Ge | Gt)]
    for part in getattr(option.field.annotation, "__args__", ()):
        bounds += [bound for bound in getattr(part, "__metadata__", ()) if isinstance(bound, Ge | Gt)]
    return all(int(text) >= bound.ge if isinstance(bound, Ge) else int(text) > bound.gt for bound in bounds)  # type: ignore[operator]
