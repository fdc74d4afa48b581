"""Packages that some features need in addition: which extra brings each, and the one message where it is missing."""

from __future__ import annotations

from importlib.util import find_spec

from ropectl.errors import ConfigError

#: The extra of ``pyproject.toml`` that brings a package.
EXTRAS = {"gguf": "gguf", "peft": "peft", "lm_eval": "harness"}


def check_package(package: str, what: str) -> None:
    """Checks that a package is installed.

    Args:
        package: Its name, as it is imported.
        what: What needs it, as the beginning of a sentence.

    Raises:
        ConfigError: If it is not there, with what to install.
    """
    if find_spec(package) is None:
        raise ConfigError(f"{what} needs the package {package}.", f"pip install 'ropectl[{EXTRAS[package]}]'")
