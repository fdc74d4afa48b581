"""Completion on TAB: names from the registries; nothing here imports torch.

Typer calls these functions; ``ropectl --install-completion`` sets the shell up. Bash breaks words at ``:`` and ``=``, which
specs are full of: :func:`run` joins them before Typer looks, and returns only what follows the last break.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterable
from contextlib import redirect_stdout
from importlib import import_module
from typing import Any

#: Set by the script that Typer installs in the shell.
REQUEST = "_ROPECTL_COMPLETE"

#: Characters at which bash ends a word, and that specs contain.
_BREAKS = ":="

Offer = Callable[[str], list[str]]


def names_in(place: str) -> Offer:
    """Returns a completion by the names in a table, or in what a function returns; its module is imported when used.

    Args:
        place: The table or function as ``module:NAME``.
    """

    def offer(incomplete: str) -> list[str]:
        module, _, name = place.partition(":")
        known = getattr(import_module(module), name)
        return _fitting(known() if callable(known) else known, incomplete)

    return offer


def words(allowed: Iterable[str]) -> Offer:
    """Returns a completion by the words that a setting allows."""
    return lambda incomplete: _fitting(allowed, incomplete)


def methods(incomplete: str) -> list[str]:
    """Returns method names; after the colon the method's parameters."""
    from ropectl.rope.registry import all_methods

    return _specs(all_methods(), incomplete)


def tasks(incomplete: str) -> list[str]:
    """Returns task names; after the colon the task's parameters."""
    from ropectl.tasks.registry import all_tasks

    return _specs(all_tasks(), incomplete)


def models(incomplete: str) -> list[str]:
    """Returns built-in models once their name has begun; the shell offers files before that, and for all other models."""
    from ropectl.hf.config.places import BUILTIN_MODELS

    return _fitting(BUILTIN_MODELS, incomplete) if incomplete else []


def sources(incomplete: str) -> list[str]:
    """Returns built-in texts once their name has begun; the shell offers files before that, and for all other texts."""
    from ropectl.data.sources import source_names

    return _fitting(source_names(), incomplete) if incomplete else []


def methods_or_models(incomplete: str) -> list[str]:
    """Returns method names, and built-in models."""
    from ropectl.rope.registry import all_methods

    return [*_fitting(all_methods(), incomplete), *models(incomplete)]


def runtimes(incomplete: str) -> list[str]:
    """Returns the known runtimes."""
    from ropectl.runtimes.matrix import all_runtimes

    return _fitting([runtime.name for runtime in all_runtimes()], incomplete)


def asked_runtimes(incomplete: str) -> list[str]:
    """Returns the runtimes that can be asked for log-probabilities."""
    from ropectl.runtimes.matrix import all_runtimes

    return _fitting([runtime.name for runtime in all_runtimes() if runtime.probe is not None], incomplete)


def _fitting(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]


def _specs(kinds: dict[str, Any], incomplete: str) -> list[str]:
    """Returns names; after the colon of a known one its parameters that are not given yet."""
    name, colon, rest = incomplete.partition(":")
    if not colon:
        return _fitting(kinds, name)
    if name not in kinds:
        return []
    given, comma, last = rest.rpartition(",")
    before = f"{name}:{given}{comma}"
    taken = {pair.partition("=")[0] for pair in given.split(",")}
    fields = {key: field for key, field in kinds[name].model_fields.items() if key not in taken}
    key, equals, value = last.partition("=")
    if not equals:
        return [f"{before}{field}=" for field in _fitting(fields, key)]
    is_switch = key in fields and fields[key].annotation is bool
    return [f"{before}{key}={word}" for word in _fitting(("true", "false"), value)] if is_switch else []


def joined(words: list[str], current: int) -> tuple[list[str], int]:
    """Returns a command line's words as they were typed, and the index of the one at the cursor.

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
    """Answers a request of bash: prints Typer's answer for the words as they were typed, without the part bash has.

    Args:
        app: The function that runs the Typer application.
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
