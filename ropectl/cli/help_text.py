"""Commands' help out of their docstrings, which are help, examples and documentation in one."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

EXAMPLE = "Example: "


def paragraphs(command: Callable[..., Any]) -> str:
    """Returns a command's help: its docstring with the lines of each paragraph joined, to be wrapped to any width."""
    text = inspect.getdoc(command) or ""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


def description(command: Callable[..., Any]) -> list[str]:
    """Returns the paragraphs that are not examples."""
    return [part for part in paragraphs(command).split("\n\n") if not part.startswith(EXAMPLE)]


def examples(command: Callable[..., Any]) -> list[str]:
    """Returns the example commands, as they are typed."""
    parts = paragraphs(command).split("\n\n")
    return [part.removeprefix(EXAMPLE) for part in parts if part.startswith(EXAMPLE)]
