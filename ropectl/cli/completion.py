"""Completion on TAB: names out of the registries, never a list of its own, and nothing that imports torch.

Typer asks these functions; ``ropectl --install-completion`` sets the shell up. Bash breaks words at ``:`` and ``=``, which
specs are full of: :func:`run` puts them together before Typer looks, and gives back only what follows the last break.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterable
from contextlib import redirect_stdout
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import BaseModel

#: Set by the script that Typer installs in the shell.
REQUEST = "_ROPECTL_COMPLETE"

#: Characters at which bash ends a word, and that specs contain.
_BREAKS = ":="

Offer = Callable[[str], list[str]]


def names_in(module: str, attribute: str) -> Offer:
    """Returns a completion by the entries of a table, whose module is imported when it is asked."""

    def offer(incomplete: str) -> list[str]:
        return _fitting(getattr(import_module(module), attribute), incomplete)

    return offer


def words(allowed: Iterable[str]) -> Offer:
    """Returns a completion by the words that a setting allows."""
    return lambda incomplete: _fitting(allowed, incomplete)


def protocols(incomplete: str) -> list[str]:
    """Returns the perplexity protocols."""
    from ropectl.evaluate.perplexity.find_protocol import all_protocols

    return _fitting(all_protocols(), incomplete)


def methods(incomplete: str) -> list[str]:
    """Method names; behind the colon the method's parameters."""
    from ropectl.rope.registry import all_methods

    return _specs(all_methods(), incomplete)


def tasks(incomplete: str) -> list[str]:
    """Task names; behind the colon the task's parameters."""
    from ropectl.tasks.registry import all_tasks

    return _specs(all_tasks(), incomplete)


def models(incomplete: str) -> list[str]:
    """Built-in models once their name has begun; before that, and for all others, the shell offers files."""
    from ropectl.hf.config.places import BUILTIN_MODELS

    return _fitting(BUILTIN_MODELS, incomplete) if incomplete else []


def sources(incomplete: str) -> list[str]:
    """Built-in texts once their name has begun; before that, and for all others, the shell offers files."""
    from ropectl.data.sources import source_names

    return _fitting(source_names(), incomplete) if incomplete else []


def methods_or_models(incomplete: str) -> list[str]:
    """Method names, and built-in models."""
    from ropectl.rope.registry import all_methods

    return [*_fitting(all_methods(), incomplete), *models(incomplete)]


def runtimes(incomplete: str) -> list[str]:
    """Runtimes that are known."""
    from ropectl.runtimes.matrix import all_runtimes

    return _fitting([runtime.name for runtime in all_runtimes()], incomplete)


def asked_runtimes(incomplete: str) -> list[str]:
    """Runtimes that can be asked for log-probabilities."""
    from ropectl.runtimes.matrix import all_runtimes

    return _fitting([runtime.name for runtime in all_runtimes() if runtime.probe is not None], incomplete)


def _fitting(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]


def _specs(kinds: dict[str, Any], incomplete: str) -> list[str]:
    """Names, and behind the colon of a known one its parameters that are not given yet."""
    name, colon, rest = incomplete.partition(":")
    if not colon:
        return _fitting(kinds, name)
    if name not in kinds:
        return []
    given, comma, last = rest.rpartition(",")
    before = f"{name}:{given}{comma}"
    taken = {pair.partition("=")[0] for pair in given.split(",")}
    fields = {key: field for key, field in _fields(kinds[name]).items() if key not in taken}
    key, equals, value = last.partition("=")
    if not equals:
        return [f"{before}{field}=" for field in _fitting(fields, key)]
    is_switch = key in fields and fields[key].annotation is bool
    return [f"{before}{key}={word}" for word in _fitting(("true", "false"), value)] if is_switch else []


def _fields(kind: type[BaseModel]) -> dict[str, Any]:
    return kind.model_fields


def joined(words: list[str], current: int) -> tuple[list[str], int]:
    """Returns a command line's words as they were typed, from the words that bash makes of them.

    Args:
        words: As bash gives them: ``:`` and ``=`` are words.
        current: Index of the word at the cursor.
    """
    result: list[str] = []
    place, glue = 0, False
    for index, word in enumerate(words):
        is_break = bool(word) and not word.strip(_BREAKS)
        if result and (glue or is_break):
            result[-1] += word
        else:
            result.append(word)
        glue = is_break
        if index == current:
            place = len(result) - 1
    if current >= len(words):
        place = len(result)
    return result, place


def run(app: Callable[[], None]) -> None:
    """Answers a request of bash: Typer's answer for the words as they were typed, without what bash has already.

    Args:
        app: What runs the Typer application.
    """
    words, current = joined(os.environ["COMP_WORDS"].split("\n"), int(os.environ["COMP_CWORD"]))
    os.environ["COMP_WORDS"], os.environ["COMP_CWORD"] = "\n".join(words), str(current)
    typed = words[current] if current < len(words) else ""
    known = typed[: max(typed.rfind(mark) for mark in _BREAKS) + 1]
    answer, code = io.StringIO(), 0
    with redirect_stdout(answer):
        try:
            app()
        except SystemExit as stop:
            code = int(stop.code or 0)
    for line in answer.getvalue().splitlines():
        print(line.removeprefix(known))
    sys.exit(code)
