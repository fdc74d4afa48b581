"""Settings files: YAML read strictly, so that a slip is one message with its line and never another value."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from ropectl.errors import ConfigError


class _Loader(yaml.SafeLoader):
    """Refuses a key that stands twice in a mapping, which YAML forbids and its libraries take the last of."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        lines: dict[str, int] = {}
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.value == "<<":
                continue
            name, line = _setting(key.value), key.start_mark.line + 1
            if name in lines:
                raise ConfigError(
                    f"The config file {self.name} says {key.value} twice: in line {lines[name]} and in line {line}.",
                    "Keep one of them.",
                )
            lines[name] = line
        return super().construct_mapping(node, deep)


def _setting(key: Any) -> str:
    """A key as settings are called: ``batch-size`` and ``batch_size`` are one."""
    return str(key).replace("-", "_")


def read_yaml(file: Path) -> dict[str, Any]:
    """Returns the settings that a YAML file holds, ``-`` in their names read as ``_``.

    Raises:
        ConfigError: If it cannot be read, is no list of settings, or says one twice; with the line.
    """
    try:
        text = file.expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"Cannot read the config file {file}: {error}") from None
    loader = _Loader(text)
    loader.name = str(file)
    try:
        content = loader.get_single_data()
    except yaml.YAMLError as error:
        raise _unreadable(file, error) from None
    finally:
        loader.dispose()
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise ConfigError(f"The config file {file} is not a list of KEY: VALUE settings.")
    return {_setting(key): value for key, value in content.items()}


def _unreadable(file: Path, error: yaml.YAMLError) -> ConfigError:
    """The parser's complaint in one line."""
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error).splitlines()[0]
    where = f", line {mark.line + 1}" if mark is not None else ""
    if "'\\t'" in problem:
        return ConfigError(f"Cannot read the config file {file}{where}: a tab.", "YAML is indented with spaces.")
    return ConfigError(f"Cannot read the config file {file}{where}: {problem}.", "A setting is a line KEY: VALUE.")
