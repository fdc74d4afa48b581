"""Reads JSON strictly: no key twice, no nesting without end, no size that fills memory."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from ropectl.errors import ConfigError
from ropectl.file_reading import read_bytes
from ropectl.printable import shown

#: No JSON file of settings, configs or results is larger [bytes]. Python's objects take up to 20 times as much.
MAX_JSON = 16 * 2**20

#: Configs and records are at most ten levels deep.
MAX_DEPTH = 40


def read_json(path: Path, most: int = MAX_JSON, hint: str = "", pipes: bool = False, allow_nan: bool = True) -> Any:
    """Returns the JSON value in a file.

    Args:
        path: The file.
        most: The size from which it is something else [bytes].
        hint: What to do if it cannot be read.
        pipes: Whether it may be a pipe.
        allow_nan: Accept NaN and Infinity, which are not JSON but occur in files of other programs.

    Raises:
        ConfigError: If it cannot be read, is not JSON, says a key twice, or is nested more deeply than any config or record.
    """
    return parse_json(read_bytes(path, most, hint, pipes), str(path), hint, allow_nan)


def parse_json(content: bytes | str, place: str, hint: str = "", allow_nan: bool = True) -> Any:
    """Returns the JSON value in a text; arguments and errors as for :func:`read_json`.

    Args:
        content: The text, or its UTF-8 bytes.
        place: Where it was found, for messages.
        hint: What to do if it is not what it should be.
        allow_nan: Accept NaN and Infinity.
    """

    def distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        values = dict(pairs)
        if len(values) < len(pairs):
            twice = next(name for name, number in Counter(name for name, _ in pairs).items() if number > 1)
            raise ConfigError(f"{place} says {shown(twice)} twice in one object.", hint or "Keep one of them.")
        return values

    def constant(name: str) -> float:
        if not allow_nan:
            raise ConfigError(f"{place} holds {name}, which is not JSON.", hint)
        return float(name)

    try:
        value = json.loads(content, object_pairs_hook=distinct, parse_constant=constant)
        is_deep = _is_deeper(value, MAX_DEPTH)
    except RecursionError:
        is_deep = True
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"{place} is not valid JSON: {error}.", hint or "Correct it; it has to be UTF-8 without a BOM."
        ) from None
    except ValueError:  # Python refuses to convert longer ones
        raise ConfigError(f"{place} holds a number of thousands of digits.", hint) from None
    if is_deep:
        raise ConfigError(f"{place} is nested more than {MAX_DEPTH} levels deep.", hint)
    return value


def _is_deeper(value: Any, most: int) -> bool:
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(most):
        level = [
            item
            for each in level
            for item in (each.values() if isinstance(each, dict) else each)
            if isinstance(item, dict | list)
        ]
        if not level:
            return False
    return True


def read_object(path: Path, most: int = MAX_JSON, hint: str = "", allow_nan: bool = True) -> dict[str, Any]:
    """Returns the JSON object in a file; arguments as for :func:`read_json`.

    Raises:
        ConfigError: If it cannot be read, or is not an object.
    """
    content = read_json(path, most, hint, allow_nan=allow_nan)
    if not isinstance(content, dict):
        raise ConfigError(f"{path} is not a JSON object.", hint)
    return content
