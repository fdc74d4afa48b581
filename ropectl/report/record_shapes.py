"""The kinds of records that a report can be made of: what each is recognised by, and what it has to hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from ropectl.errors import ConfigError
from ropectl.records import MethodRow, PasskeyLength, PerplexityPoint, Pick, TaskAverage, TaskResult, to_json
from ropectl.report.possible import first_impossible
from ropectl.rope.geometry import RopeGeometry


class _Shape(BaseModel):
    """What is read without a default; more may stand beside it."""

    model_config = ConfigDict(extra="ignore", protected_namespaces=())

    @classmethod
    def completed(cls, record: dict[str, Any]) -> dict[str, Any]:
        """Returns a record with what those of earlier versions leave out."""
        return record


class _Measured(_Shape):
    model: str
    geometry: dict[str, Any]
    manifest: dict[str, Any] = Field(default_factory=dict)

    @field_validator("geometry")
    @classmethod
    def _is_possible(cls, value: dict[str, Any]) -> dict[str, Any]:
        try:
            return RopeGeometry(**value).to_json()
        except (TypeError, ConfigError) as error:
            raise ValueError(str(error)) from None


class Comparison(_Measured):
    """``compare-methods``."""

    target_length: int = Field(ge=2)
    text: str
    lengths: list[int] = Field(min_length=1)
    rows: list[MethodRow] = Field(min_length=1)
    pick: Pick | None = None
    verdict: list[str] = Field(default_factory=list)
    models: list[str] = Field(default_factory=list)
    same_tokens: bool = True

    @classmethod
    def completed(cls, record: dict[str, Any]) -> dict[str, Any]:
        """Rows that do not say their model are the one model's; the longest length is what was asked for."""
        model, rows, lengths = record.get("model"), record["rows"], record["lengths"]
        if isinstance(rows, list):
            record["rows"] = [{"model": model, **row} if isinstance(row, dict) else row for row in rows]
        if isinstance(record.get("pick"), dict):
            record["pick"] = {"model": model, **record["pick"]}
        record.setdefault("models", [model])
        if isinstance(lengths, list) and all(isinstance(length, int) for length in lengths):
            record.setdefault("target_length", max(lengths, default=None))
        return record


class Perplexity(_Measured):
    """``eval-perplexity``."""

    method: str
    text: str
    protocol: str
    preset: str | None = None
    stride: int | None = None
    bos: dict[str, Any] = Field(default_factory=dict)
    points: list[PerplexityPoint] = Field(min_length=1)
    unscaled: list[PerplexityPoint] = Field(default_factory=list)
    verdict: list[str] = Field(default_factory=list)


class Passkey(_Measured):
    """``eval-passkey``."""

    method: str
    grid: str = "depth"
    lengths: list[PasskeyLength] = Field(min_length=1)
    k_max: dict[str, int] = Field(default_factory=dict)
    reach: dict[str, int | None] = Field(default_factory=dict)
    verdict: str = ""
    prompt_example: Any = None


class Tasks(_Measured):
    """``eval-tasks``."""

    method: str
    text: str
    tasks: list[TaskResult] = Field(min_length=1)
    average: list[TaskAverage]
    reach: dict[str, float | None] = Field(default_factory=dict)


class Inspection(_Shape):
    """``inspect``."""

    model: str = "plain numbers"
    geometry: dict[str, Any]
    method: str
    seq_len: int | None = None
    inv_freq: list[float] = Field(min_length=1)
    attention_factor: float
    wavelengths: list[float | None]
    rotations: list[float]
    divisors: list[float | None]
    critical_dimension: int
    reach: int | None
    target_length: int
    warnings: list[str] = Field(default_factory=list)
    rope_parameters: dict[str, Any] = Field(default_factory=dict)
    runtimes: list[dict[str, Any]] = Field(default_factory=list)


class _Training(_Shape):
    settings: dict[str, Any] = Field(default_factory=dict)
    seq_len: int | None = None
    steps: int | None = None
    step: int | None = None
    tokens: int | None = None
    seconds: float | None = None
    epochs: float | None = None
    first_loss: float | None = None
    last_loss: float | None = None
    validation_before: dict[str, Any] | None = None
    validation: dict[str, Any] | None = None
    engine: dict[str, Any] = Field(default_factory=dict)


class Finetune(_Measured):
    """``finetune``: the record that a tuned checkpoint carries."""

    method: str
    training: _Training
    target_length: int | None = None
    versions: dict[str, Any] = Field(default_factory=dict)
    command: list[str] = Field(default_factory=list)

    @classmethod
    def completed(cls, record: dict[str, Any]) -> dict[str, Any]:
        """The model is the one that was trained."""
        source = record.get("source")
        return {"model": source.get("name") if isinstance(source, dict) else None, **record}


class Run(_Shape):
    """``run.json`` of a training that has not come to its end."""

    settings: dict[str, Any]
    versions: dict[str, Any] = Field(default_factory=dict)


class Harness(_Shape):
    """``harness --run``."""

    results: dict[str, dict[str, Any]] = Field(min_length=1)
    model: str = "?"
    method: str | None = None


@dataclass(frozen=True)
class Kind:
    """A kind of record.

    Attributes:
        name: What the report calls it.
        command: What writes it.
        keys: Top-level keys that only it has together.
        shape: What it has to hold.
    """

    name: str
    command: str
    keys: frozenset[str]
    shape: type[_Shape]


KINDS = (
    Kind("comparison", "compare-methods", frozenset({"rows", "lengths"}), Comparison),
    Kind("perplexity", "eval-perplexity", frozenset({"points", "protocol"}), Perplexity),
    Kind("passkey", "eval-passkey", frozenset({"cells", "grid"}), Passkey),
    Kind("tasks", "eval-tasks", frozenset({"tasks", "average"}), Tasks),
    Kind("inspection", "inspect", frozenset({"inv_freq", "wavelengths"}), Inspection),
    Kind("finetune", "finetune", frozenset({"training", "rope_parameters"}), Finetune),
    Kind("harness", "harness", frozenset({"results", "configs"}), Harness),
    Kind("run", "finetune", frozenset({"settings", "versions"}), Run),
)


def kind_of(record: Mapping[str, Any], place: str) -> Kind:
    """Returns what kind of record this is.

    Raises:
        ConfigError: If it is none, or none with results.
    """
    for kind in KINDS:
        if kind.keys <= record.keys():
            return kind
    if record.get("estimate") or "plan" in record:
        raise ConfigError(
            f"{place} is the estimate of a dry run: there are no results in it.", "Run it without --dry-run."
        )
    raise ConfigError(
        f"{place} is no record that a report can be made of.",
        f"Those of: {', '.join(dict.fromkeys(kind.command for kind in KINDS))}.",
    )


def checked(record: Mapping[str, Any], kind: Kind, place: str) -> dict[str, Any]:
    """Returns a record in which everything that a report reads is there, of its type; what else it holds stays.

    Raises:
        ConfigError: Naming what is missing or wrong.
    """
    given = kind.shape.completed(dict(record))
    try:
        shape = kind.shape.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise ConfigError(
            f"{place} looks like a record of {kind.command}, but {where or 'it'} is wrong: {first['msg']}.",
            f"Was it cut short or edited? The command that wrote it, ropectl {kind.command}, writes it anew.",
        ) from None
    impossible = first_impossible(given) if issubclass(kind.shape, _Measured) else None
    if impossible:
        raise ConfigError(
            f"{place} looks like a record of {kind.command}, but {impossible}.",
            f"Was it edited or damaged? The command that wrote it, ropectl {kind.command}, writes it anew.",
        )
    return {**given, **{name: _plain(getattr(shape, name)) for name in type(shape).model_fields}}


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, BaseModel):
        return value.model_dump()
    return to_json(value) if hasattr(value, "__dataclass_fields__") else value
