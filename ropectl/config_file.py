"""Settings files: YAML is read strictly, so that a slip is an error with its line and never another value."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from ropectl.errors import ConfigError
from ropectl.file_reading import read_text

#: No settings file is larger; a larger one is a model or a text, named by mistake [bytes].
MAX_BYTES = 100_000

#: No settings are more values than this, those counted twice that an alias (``*name``) repeats.
MAX_VALUES = 10_000

#: Numbers that YAML 1.1 reads in an unexpected way: octal, and in base 60.
_REINTERPRETED = re.compile(r"[-+]?(0[0-7_]+|\d[\d_]*(:[0-5]?\d)+(\.[\d_]*)?)")


class _Loader(yaml.SafeLoader):
    """A YAML loader that refuses duplicate keys, of which PyYAML takes the last, and ambiguous numbers."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        lines: dict[str, int] = {}
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.value == "<<":
                continue
            name, line = _setting(key.value), key.start_mark.line + 1
            if name in lines:
                raise ConfigError(
                    f"The config file {self.name} sets {key.value} twice: in line {lines[name]} and in line {line}.",
                    "Keep one of them.",
                )
            lines[name] = line
        return super().construct_mapping(node, deep)

    def construct_number(self, node: yaml.ScalarNode) -> Any:
        """Returns a number, if it means what it looks like."""
        text = str(node.value)
        construct = self.construct_yaml_int if node.tag.endswith(":int") else self.construct_yaml_float
        value = construct(node)
        if _REINTERPRETED.fullmatch(text):
            raise ConfigError(
                f"{text} in line {node.start_mark.line + 1} of the config file {self.name} would be read as {value}.",
                f'Write the number in full, or put text in quotes: "{text}"',
            )
        return value


for _kind in ("int", "float"):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_kind}", _Loader.construct_number)


def _setting(key: Any) -> str:
    """Returns a key as a setting's name: ``batch-size`` and ``batch_size`` are the same."""
    return str(key).replace("-", "_")


def read_yaml(file: Path) -> dict[str, Any]:
    """Returns the settings that a YAML file holds, ``-`` in their names read as ``_``.

    Raises:
        ConfigError: If it cannot be read, is not a mapping, sets something twice or to an empty list, or has a number
            that YAML reads as another; with the line.
    """
    try:
        text = read_text(file, MAX_BYTES, "Settings are lines KEY: VALUE.", pipes=True)
    except UnicodeDecodeError as error:
        raise ConfigError(f"Cannot read the config file {file}: {error}") from None
    loader = None
    try:
        loader = _Loader(text)
        loader.name = str(file)
        settings = loader.get_single_data()
        count = _count(settings, MAX_VALUES)
    except yaml.YAMLError as error:
        raise _unreadable(file, error) from None
    except RecursionError:
        raise ConfigError(
            f"Cannot read the config file {file}: it is nested too deeply.", "A setting is a line KEY: VALUE."
        ) from None
    except ValueError:  # Python refuses to convert longer ones
        raise ConfigError(f"The config file {file} holds a number of thousands of digits.") from None
    finally:
        if loader is not None:
            loader.dispose()
    if count > MAX_VALUES:
        raise ConfigError(
            f"The config file {file} holds more than {MAX_VALUES} values.", "A setting is a line KEY: VALUE."
        )
    if settings is None:
        return {}
    if not isinstance(settings, dict):
        kind = "a list" if isinstance(settings, list) else "one value"
        raise ConfigError(f"The config file {file} is {kind}; settings are lines KEY: VALUE.")
    for key, value in settings.items():
        if value == []:
            raise ConfigError(f"{key} in the config file {file} is an empty list.", "Leave it out for the default.")
    return {_setting(key): value for key, value in settings.items()}


def _count(value: Any, most: int) -> int:
    """Returns the number of values in a value, or some number above ``most``."""
    number = 1
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for item in items:
        if number > most:
            break
        number += _count(item, most - number)
    return number


def _unreadable(file: Path, error: yaml.YAMLError) -> ConfigError:
    """Returns the parser's complaint in one line."""
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error).splitlines()[0]
    where = f", line {mark.line + 1}" if mark is not None else ""
    if "unhashable" in problem:
        return ConfigError(
            f"Cannot read the config file {file}{where}: a key that is a list or has keys itself.",
            "A setting is a line KEY: VALUE.",
        )
    if "'\\t'" in problem:
        return ConfigError(f"Cannot read the config file {file}{where}: a tab.", "YAML is indented with spaces.")
    return ConfigError(f"Cannot read the config file {file}{where}: {problem}.", "A setting is a line KEY: VALUE.")
