"""What an invocation may not do, whatever was wrong with it."""

from __future__ import annotations

import re

from fuzz.case import Case, Expected
from fuzz.sandbox import MEMORY, SECONDS, Outcome

#: A message for users has a line for what is wrong, one for what to type, and may fold one of them.
MOST_LINES, MOST_CHARACTERS = 3, 800

_EXCEPTION = re.compile(r"Traceback \(most recent|\b[A-Z]\w*(?:Error|Exception|Warning)\b")

#: What Python says, and people cannot use.
_PYTHON = re.compile(
    r"object has no attribute|object is not (?:subscriptable|iterable|callable)|index out of range|indices must be|"
    r"argument must be|unsupported operand|not supported between|\[Errno \d+]|unhashable|positional argument|: '\w*'$",
    re.MULTILINE,
)
_USAGE = re.compile(r"^ ?Usage: ropectl", re.MULTILINE)
_TOLD = re.compile(r"\b(note|warning):", re.IGNORECASE)


def faults(case: Case, outcome: Outcome) -> list[str]:
    """Returns what is wrong with an outcome, each in a few words; empty where it is as expected."""
    if outcome.stopped:
        found = [outcome.stopped]
    elif outcome.code < 0:
        found = [f"ended by signal {-outcome.code}"]
    elif case.expected is Expected.accepted:
        found = _not_accepted(outcome)
    elif outcome.code == 0 and case.expected is not Expected.refused:
        found = _not_noted(case, outcome.err + outcome.out)
    else:
        found = _not_refused(case, outcome)
    if case.expected is not Expected.accepted:
        if outcome.seconds > SECONDS and not outcome.stopped:
            found.append(f"took {outcome.seconds:.1f} s")
        if outcome.changed and (outcome.code or case.expected is Expected.refused):
            found.append(f"wrote {', '.join(outcome.changed[:4])}")
    if outcome.memory > MEMORY:
        found.append(f"took {outcome.memory / 2**20:.0f} MiB")
    return found


def _not_accepted(outcome: Outcome) -> list[str]:
    is_result = outcome.code == 1 and outcome.out and "Error" not in outcome.err  # computed, and it differs
    return [] if outcome.code == 0 or is_result else [f"exit code {outcome.code}"]


def _not_noted(case: Case, said: str) -> list[str]:
    return [*([] if _TOLD.search(said) else ["no note or warning"]), *_unsaid(case, said)]


def _not_refused(case: Case, outcome: Outcome) -> list[str]:
    text = _without_notes(outcome.err)
    raw = _EXCEPTION.search(text) or _PYTHON.search(text)
    found = [f"says {raw[0]}"] if raw else []
    if outcome.out:
        found.insert(0, "printed to stdout")
    if case.expected is Expected.noted or outcome.code != 2:
        return [f"exit code {outcome.code}", *found]
    if not _USAGE.search(text):
        found += _shape(text)
    return found + _unsaid(case, text)


def _without_notes(text: str) -> str:
    """Returns what is said without the notes that may stand before it."""
    lines = text.splitlines(keepends=True)
    while lines and re.match("(note|warning): ", lines[0]):
        del lines[0]
    return "".join(lines)


def _shape(text: str) -> list[str]:
    """What is wrong with the shape of a message."""
    found = [] if text.startswith("Error: ") and text.count("Error: ") == 1 else ["not one message"]
    number = len(text.strip().splitlines())
    if number > MOST_LINES or len(text) > MOST_CHARACTERS:
        found.append(f"a message of {number} lines, {len(text)} characters")
    return found


def _unsaid(case: Case, text: str) -> list[str]:
    """The words that are missing."""
    said = " ".join(re.sub("[│╭╰─╮╯]", " ", text).split()).lower()
    return [
        f"does not mention {words}"
        for words in case.mentions
        if not any(word.lower() in said for word in words.split("|"))
    ]
