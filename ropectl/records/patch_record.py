"""``ropectl.json``: the record of ``patch``, and of ``finetune``. Other programs read it: extend, never rename."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from ropectl.records.json_form import optional
from ropectl.records.manifest import SCHEMA_VERSION
from ropectl.records.runtime.runtime_reading import NextStep, RuntimeReading
from ropectl.records.training_record import TrainingRecord
from ropectl.rope.derived_value import DerivedValue
from ropectl.rope.geometry import RopeGeometry


@dataclass(frozen=True)
class ScalingBefore:
    """The scaling that a checkpoint came with.

    Attributes:
        method: Method spec.
        max_position_embeddings: The context that its config declared [tokens].
    """

    method: str = "none"
    max_position_embeddings: int | None = None


@dataclass(frozen=True)
class SourceRecord:
    """The checkpoint that was patched or trained.

    Attributes:
        name: As the user wrote it.
        revision: Branch, tag or commit that was asked for on the hub.
        commit: The commit that it was.
    """

    name: str
    revision: str | None = None
    commit: str | None = None


@dataclass(frozen=True, kw_only=True)
class WrittenFiles:
    """The files that were written in addition to the config.

    Attributes:
        rewritten: Whether weights were loaded and saved, and not copied.
        num_tensors: Tensors of the weights that were saved and validated.
        num_files: Files that were copied.
        num_bytes: Their bytes, or those of the tensors.
        linked: Whether weights are hard links.
        left_out: Files that were not copied because they can run code.
    """

    rewritten: bool | None = optional()
    num_tensors: int | None = optional()
    num_files: int | None = optional()
    num_bytes: int | None = optional()
    linked: bool | None = optional()
    left_out: list[str] | None = optional()


@dataclass(frozen=True, kw_only=True)
class PatchRecord:
    """A checkpoint with the scaling in force: what was done, what runtimes make of it, and what to type next.

    Attributes:
        schema_version: Version of the meaning of these keys.
        output: What was written; None for a plan.
        method: Method spec.
        geometry: What the model was trained with.
        rope_parameters: The block of the config that carries the method.
        max_position_embeddings: The context that the config declares [tokens].
        target_length: The context that is meant to work [tokens].
        seq_len: The length at which a length-dependent method was frozen [tokens]; None if it was not.
        layer_type: The layer type that is scaled, for configs with one block per layer type.
        before: The scaling that the checkpoint came with.
        source: The checkpoint that was patched.
        gguf_keys: Keys written into a GGUF file.
        gguf_tensors: Tensors written into a GGUF file.
        gguf_removed: Keys removed from a GGUF file.
        derived: What follows from the method on the geometry, by name.
        verified: What the proof compared, and how far it differed; empty where nothing was written.
        tokenizer_max_length: The most tokens that the tokenizer's config allows; None for no limit.
        runtimes: What each runtime makes of it.
        next_steps: How each runtime is started on it.
        notes: What a person should know.
        versions: Versions of Python and of the packages that decide numbers.
        command: The command as typed, one word per entry.
        files: The files that were written in addition to the config.
        training: How it was trained; in the record of ``finetune``.
    """

    written_by: ClassVar[str] = "patch"

    schema_version: int = SCHEMA_VERSION
    output: str | None = None
    method: str
    geometry: RopeGeometry
    rope_parameters: dict[str, Any]
    max_position_embeddings: int | None = None
    target_length: int | None = None
    seq_len: int | None = None
    layer_type: str | None = None
    before: ScalingBefore = field(default_factory=ScalingBefore)
    source: SourceRecord
    gguf_keys: dict[str, Any] | None = optional()
    gguf_tensors: dict[str, list[float]] | None = optional()
    gguf_removed: list[str] | None = optional()
    derived: dict[str, DerivedValue] = field(default_factory=dict)
    verified: dict[str, Any] | None = None
    tokenizer_max_length: int | None = optional(beside="files")
    runtimes: list[RuntimeReading] = field(default_factory=list)
    next_steps: list[NextStep] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    command: list[str] = field(default_factory=list)
    files: WrittenFiles | None = optional()
    training: TrainingRecord | None = optional()

    @property
    def model(self) -> str:
        """The checkpoint that was patched or trained, as the user wrote it."""
        return self.source.name


@dataclass(frozen=True, kw_only=True)
class FinetuneRecord(PatchRecord):
    """The record that a tuned checkpoint carries.

    Attributes:
        training: How it was trained.
    """

    kind: ClassVar[str] = "finetune"
    written_by: ClassVar[str] = "finetune"
    known_by: ClassVar[frozenset[str]] = frozenset({"training", "rope_parameters"})

    training: TrainingRecord = field()
