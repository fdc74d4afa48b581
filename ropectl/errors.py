"""The errors that ropectl raises on purpose: a message that a person can act on, and a hint what to type instead."""

from __future__ import annotations

from collections.abc import Sequence

#: Warnings that an error lists one by one.
_LISTED_WARNINGS = 4


class RopectlError(Exception):
    """Base of every error that ropectl raises on purpose.

    Args:
        message: The fault: the thing, its value, and what is allowed.
        hint: A suggestion what to type or do instead; empty where the message is enough.
    """

    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n{self.hint}" if self.hint else self.message


class ConfigError(RopectlError):
    """An option, a config file or a model config holds a value that cannot work."""

    exit_code = 2


class MethodError(ConfigError):
    """A scaling method is unknown, or its parameters are out of range for the model."""


class UnsupportedModelError(ConfigError):
    """The model has no rotary embedding that ropectl can scale; the message says why."""


class DataError(ConfigError):
    """A text source is missing, empty or too short for what was asked."""


class PatchError(RopectlError):
    """After patching, the live rotary buffers are not what the method computes."""


class MeasurementError(RopectlError):
    """A measurement ran, but its result is meaningless, such as a loss that is not a number."""


class TrainingError(RopectlError):
    """Training failed on the way; the saved states are intact."""


def listed_warnings(warnings: Sequence[str]) -> str:
    """Returns warnings about a config as the text of one error, a line each."""
    if len(warnings) == 1:
        return warnings[0]
    more = len(warnings) - _LISTED_WARNINGS
    lines = [*warnings[:_LISTED_WARNINGS], *([f"{more} more"] if more > 0 else [])]
    return "\n".join([f"The config raises {len(warnings)} warnings:", *(f"- {line}" for line in lines)])
