"""The fields that every record of an evaluation begins with, and the facts needed to measure it again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ropectl.records.json_form import optional
from ropectl.rope.geometry import RopeGeometry

#: Raised when the meaning of a field changes; records of another version are never mixed in.
SCHEMA_VERSION = 1


@dataclass(frozen=True, kw_only=True)
class EvaluationRecord:
    """The fields that every record of one method on one model begins with.

    Attributes:
        schema_version: Version of the meaning of these keys.
        model: The model, as the user wrote it.
        method: Method spec.
        geometry: What the model was trained with.
    """

    schema_version: int = SCHEMA_VERSION
    model: str
    method: str
    geometry: RopeGeometry


@dataclass(frozen=True, kw_only=True)
class RanOn:
    """What a model ran on and in, as it was really loaded, whatever was asked for; older records do not say it.

    Attributes:
        device: Where it ran, such as ``cuda:0``.
        dtype: Number format of the weights.
        attention: Attention implementation of transformers.
    """

    device: str | None = optional()
    dtype: str | None = optional()
    attention: str | None = optional()


@dataclass(frozen=True, kw_only=True)
class Manifest(RanOn):
    """The facts needed to repeat a measurement.

    Attributes:
        command: The command as typed, one word per entry.
        config: All settings by name; the settings class of the command reads them back.
        versions: Versions of Python and of the packages that decide numbers.
        bos_token_id: The token that every text begins with; None for none.
    """

    command: list[str] = field(default_factory=list)
    config: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    bos_token_id: int | None = None
