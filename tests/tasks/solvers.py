"""Answers read out of a prompt's text with nothing but regular expressions: each task solved a second time."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence

NOTE = re.compile(r"\nNote: the number of ([\w-]+) is (\d+)\.\n")


def notes_of_asked(text: str) -> list[str]:
    """Numbers of the names in the question, in the text's order."""
    asked = text[text.rindex("What ") :]
    return [number for name, number in NOTE.findall(text) if re.search(rf"(?<![\w-]){name}(?![\w-])", asked)]


def passkey(text: str) -> list[str]:
    label = re.findall(r"\nWhat is the pass key( \w)?\?", text)[-1]
    return re.findall(rf"\nThe pass key{label} is (\d+)\. Remember it\. \1 is the pass key{label}\.\n", text)


def variable_tracking(text: str) -> list[str]:
    values: dict[str, str] = {}
    for name, source in re.findall(r"\nset (\w+) = (\w+)\n", text):
        values[name] = source if source.isdigit() else values[source]
    asked = re.findall(r"hold the number (\d+)", text)[-1]
    return [name for name, value in values.items() if value == asked]


def key_value(text: str) -> list[str]:
    asked = re.findall(r'the value of the key "([^"]+)"', text)[-1]
    return [f'"{value}"' for key, value in re.findall(r'\n"([^"\n]+)": "([^"\n]+)"', text) if key == asked]


def counted(text: str) -> Counter[str]:
    return Counter(text.split("\n\n")[-2].split())


def most_common(text: str) -> list[str]:
    asked = int(re.findall(r"Which (\d+) words", text)[-1])
    return [word for word, _ in counted(text).most_common(asked)]


SOLVERS: dict[str, Callable[[str], list[str]]] = {
    "passkey": passkey,
    "needle": notes_of_asked,
    "multi-key": notes_of_asked,
    "multi-value": notes_of_asked,
    "multi-query": notes_of_asked,
    "variable-tracking": variable_tracking,
    "key-value": key_value,
    "common-words": most_common,
    "frequent-words": most_common,
}


def answers_in(name: str, text: str, known: Sequence[str]) -> list[str]:
    """The answers that a prompt's text holds, found by the task's solver; without one, those known ones that it holds."""
    solver = SOLVERS.get(name)
    return solver(text) if solver else [answer for answer in known if answer in text]
