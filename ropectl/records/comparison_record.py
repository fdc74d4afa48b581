"""The record of ``compare-methods``. Other programs read it: extend, never rename."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from annotated_types import MinLen

from ropectl.records.bounds import Length, TargetLength
from ropectl.records.comparisons import Reach, RowDifference
from ropectl.records.json_form import optional
from ropectl.records.manifest import SCHEMA_VERSION, RanOn
from ropectl.records.passkey_record import PasskeyLength
from ropectl.records.perplexity_record import PerplexityPoint
from ropectl.rope.geometry import RopeGeometry


@dataclass(frozen=True)
class TrainingSummary:
    """The training before a row of a comparison; what a failed one did not reach is None.

    Attributes:
        id: The ``training.id`` of the checkpoint's own record: a hash of all that decides the result.
        steps: Optimizer steps.
        tokens: Tokens that were predicted.
        seconds: Time spent in steps [s].
        last_loss: Mean training loss of the last ten steps [nats a token].
        checkpoint: Folder of the tuned checkpoint.
    """

    id: str
    steps: int | None = None
    tokens: int | None = None
    seconds: float | None = None
    last_loss: float | None = None
    checkpoint: str | None = None


@dataclass(frozen=True)
class MethodRow:
    """One model under one method in a comparison.

    Attributes:
        model: The model, as the user wrote it.
        method: Method spec.
        perplexity: Points of protocol ``prefix``.
        tail: Points of protocol ``tail``: the same targets at every length.
        passkey: Retrieval per length.
        reach: The three lengths.
        short_delta: Worst relative perplexity change against the unscaled model at lengths up to the
            trained one; None if not measured.
        short_delta_ci_low: Lower end of its paired 95 % interval, at the length where it is worst.
        short_delta_ci_high: Upper end.
        seconds: Wall time of the measurements.
        errors: Messages of cells, or of a training, that failed.
        training: The training after which it was measured; None for the model as it is given.
    """

    model: str
    method: str
    perplexity: list[PerplexityPoint]
    tail: list[PerplexityPoint]
    passkey: list[PasskeyLength]
    reach: Reach
    short_delta: float | None
    seconds: float
    errors: list[str] = field(default_factory=list)
    training: TrainingSummary | None = None
    short_delta_ci_low: float | None = None
    short_delta_ci_high: float | None = None


@dataclass(frozen=True)
class Pick:
    """The method that a comparison prefers, by rule and not by name.

    Attributes:
        model: The model, as the user wrote it.
        method: Method spec.
        reasons: Why, in one sentence each.
        training: Id of the training that belongs to it; None for the model as it is given.
        tied: Indices in ``rows`` of those that no measurement tells apart from it by the rule.
    """

    model: str
    method: str
    reasons: list[str]
    training: str | None = None
    tied: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class MeasuredCell:
    """One measurement of a comparison, kept in a file of its own.

    Attributes:
        id: Name of its file in the run folder: a hash of all that decides the result.
        model: The model, as the user wrote it.
        method: Method spec.
        training: Id of the training whose weights are measured; None for the model as it is given.
        kind: ``prefix``, ``tail`` or ``passkey``.
        length: The longest context that it answers for [tokens].
        lengths: All of them [tokens]; in ``plan.json`` only.
    """

    id: str
    model: str
    method: str
    training: str | None
    kind: str
    length: int
    lengths: list[int] | None = optional()


@dataclass(frozen=True, kw_only=True)
class ComparisonManifest(RanOn):
    """The facts needed to repeat a comparison; device, type and attention are those of the first model.

    Attributes:
        command: The command that measured, as typed, one word per entry: the last one, if several did. One that found
            everything measured, and only printed, is none of them.
        config: All settings by name; the settings class of the command reads them back.
        finetune: How every method was trained first; None if none was.
        versions: Versions of Python and of the packages that decide numbers, of that command.
        bos_token_id: The token that every text begins with; None for none.
        documents: Names of the documents, or of the windows that they were cut into: ``novel.txt[3]``.
        tokens_sha256: Hash of all tokens: equal hashes mean the same text in the same tokens.
        split: Tokens of a window; None where documents were not cut.
        clusters: Index of the source document of each entry of ``documents``; empty where each is one of its own.
        tail_targets_per_document: K of protocol ``tail``: the targets that every length scores.
        existing: The scaling that each model came with, by model.
        cells: The measurements.
    """

    command: list[str] = field(default_factory=list)
    config: dict[str, Any] = field(default_factory=dict)
    finetune: dict[str, Any] | None = None
    versions: dict[str, str] = field(default_factory=dict)
    bos_token_id: int | None = None
    documents: list[str] = field(default_factory=list)
    tokens_sha256: str | None = None
    split: int | None = optional()
    clusters: list[int] = optional(beside="split", empty=list)
    tail_targets_per_document: int | None = None
    existing: dict[str, str] = field(default_factory=dict)
    cells: list[MeasuredCell] = field(default_factory=list)


@dataclass(frozen=True)
class Unfinished:
    """The part of a comparison that is still to be measured.

    Attributes:
        cells: All measurements.
        missing: Those that are not measured yet.
        by_row: The missing ones by row.
    """

    cells: int
    missing: int
    by_row: list[int]


@dataclass(frozen=True, kw_only=True)
class ComparisonFrame:
    """The fields of a comparison that are known before anything is measured.

    Attributes:
        schema_version: Version of the meaning of these keys.
        model: The first model, as the user wrote it.
        models: All models.
        geometry: What the first one was trained with.
        factor: s, the extension that was asked for.
        factors: All of them, where methods were compared at several.
        target_length: L', the context that was asked for [tokens].
        text: Text source.
        protocol: Protocol of the rows' ``perplexity``.
        lengths: Context lengths [tokens].
        same_tokens: Whether all models read the text in the same tokens.
    """

    schema_version: int = SCHEMA_VERSION
    model: str
    models: list[str] = field(default_factory=list)
    geometry: RopeGeometry
    factor: float | None = None
    factors: list[float] = field(default_factory=list)
    target_length: TargetLength
    text: str
    protocol: str = "prefix"
    lengths: Annotated[list[Length], MinLen(1)]
    same_tokens: bool = True


@dataclass(frozen=True, kw_only=True)
class ComparisonRecord(ComparisonFrame):
    """Models and methods side by side.

    Attributes:
        rows: One entry per model and method; the first is the first model without scaling.
        differences: Paired differences of every row against the references: the unscaled model and the pick, or those
            that were asked for.
        pick: What is preferred; None where nothing can be.
        verdict: What the numbers mean, in sentences.
        unfinished: How much is missing of a comparison that was not finished.
        manifest: What is needed to make it again.
    """

    kind: ClassVar[str] = "comparison"
    written_by: ClassVar[str] = "compare-methods"
    known_by: ClassVar[frozenset[str]] = frozenset({"rows", "lengths"})

    rows: Annotated[list[MethodRow], MinLen(1)]
    differences: list[RowDifference] = field(default_factory=list)
    pick: Pick | None = None
    verdict: list[str] = field(default_factory=list)
    unfinished: Unfinished | None = optional()
    manifest: ComparisonManifest = field(default_factory=ComparisonManifest)
