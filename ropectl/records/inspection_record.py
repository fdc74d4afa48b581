"""The record of ``inspect``. Other programs read it: extend, never rename."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from annotated_types import MinLen

from ropectl.records.json_form import optional
from ropectl.records.runtime.runtime_reading import RuntimeReading
from ropectl.rope.derived_value import DerivedValue
from ropectl.rope.geometry import RopeGeometry


@dataclass(frozen=True, kw_only=True)
class InspectionRecord:
    """Everything that the formulas say about one method on one geometry, and on a model where one was named.

    Attributes:
        geometry: What the model was trained with.
        method: Method spec.
        seq_len: The length at which a length-dependent method is shown [tokens]; None for the trained one.
        inv_freq: (P,) frequencies [radians/token].
        attention_factor: A, on cos and sin.
        wavelengths: (P,) tokens of a whole turn; None for a pair that stands still.
        rotations: (P,) turns within the trained length.
        divisors: (P,) by how much each pair is slowed; None for a pair that was stopped.
        critical_dimension: The first dimension whose pair did not turn once within the trained length.
        rope_parameters: The block of a config that says the method; empty where no config of the model can.
        target_length: The context that the method is made for [tokens].
        reach: Positions whose slow rotations were all seen in training; None if unlimited.
        derived: What follows from the method on the geometry, by name.
        warnings: What to know before relying on it.
        model: The model, as the user wrote it; absent for plain numbers, as are all keys from its config that follow.
        existing: The scaling that the model came with, as a method spec.
        max_position_embeddings: The context that its config declares [tokens].
        pairing: Which dimensions turn together: ``half-split`` or ``interleaved``.
        layer_type: The layer type that is shown, for configs with one block per layer type.
        layer_types: All of them.
        window: The longest attention window of its layers [tokens]; None for unlimited.
        runtimes: What each runtime makes of it; empty where none was asked.
    """

    kind: ClassVar[str] = "inspection"
    written_by: ClassVar[str] = "inspect"
    known_by: ClassVar[frozenset[str]] = frozenset({"inv_freq", "wavelengths"})

    geometry: RopeGeometry
    method: str
    seq_len: int | None = None
    inv_freq: Annotated[list[float], MinLen(1)]
    attention_factor: float
    wavelengths: list[float | None]
    rotations: list[float]
    divisors: list[float | None]
    critical_dimension: int
    rope_parameters: dict[str, Any] = field(default_factory=dict)
    target_length: int
    reach: int | None
    derived: dict[str, DerivedValue] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    model: str | None = optional()
    existing: str | None = optional(beside="model")
    max_position_embeddings: int | None = optional(beside="model")
    pairing: str | None = optional(beside="model")
    layer_type: str | None = optional(beside="model")
    layer_types: list[str] | None = optional(beside="model")
    window: int | None = optional(beside="model")
    runtimes: list[RuntimeReading] = field(default_factory=list)
