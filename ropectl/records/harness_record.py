"""The record of ``harness --run``: what lm-evaluation-harness found, and of which calls."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from annotated_types import MinLen

from ropectl.records.json_form import optional
from ropectl.records.manifest import SCHEMA_VERSION, RanOn


@dataclass(frozen=True, kw_only=True)
class HarnessManifest(RanOn):
    """What is needed to measure it again.

    Attributes:
        command: The command as typed, one word per entry.
        versions: Versions of Python and of the packages that decide numbers.
    """

    command: list[str] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class HarnessRecord:
    """Results of lm-evaluation-harness, under its own keys from ``results`` on.

    Attributes:
        schema_version: Version of the meaning of these keys.
        model: The model, as the user wrote it.
        method: Method spec; None for the checkpoint's own scaling.
        calls: Arguments of the three calls that the run consisted of, by function.
        results: Metrics by task, under the harness's own names.
        groups: Metrics by group of tasks.
        versions: Versions of the tasks.
        n_shot: Examples before each question, by task; the key is ``n-shot``.
        n_samples: Questions by task, ``original`` and ``effective``; the key is ``n-samples``.
        higher_is_better: Whether more is better, by task and metric.
        manifest: What is needed to measure it again.
    """

    kind: ClassVar[str] = "harness"
    written_by: ClassVar[str] = "harness"
    known_by: ClassVar[frozenset[str]] = frozenset({"results"})

    schema_version: int = SCHEMA_VERSION
    model: str = "?"
    method: str | None = None
    calls: dict[str, dict[str, Any]] = field(default_factory=dict)
    results: Annotated[dict[str, dict[str, Any]], MinLen(1)]
    groups: dict[str, Any] | None = optional()
    versions: dict[str, Any] | None = optional()
    n_shot: dict[str, Any] | None = optional(key="n-shot")
    n_samples: dict[str, dict[str, Any]] | None = optional(key="n-samples")
    higher_is_better: dict[str, Any] | None = optional()
    manifest: HarnessManifest = field(default_factory=HarnessManifest)
