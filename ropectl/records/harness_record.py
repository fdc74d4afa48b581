"""The record of ``harness --run``: what lm-evaluation-harness found, and of which calls."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from annotated_types import MinLen

from ropectl.records.manifest import SCHEMA_VERSION, Manifest


@dataclass(frozen=True, kw_only=True)
class HarnessRecord:
    """Results of lm-evaluation-harness. Its own keys beside ``results`` stay in the file, and are not read.

    Attributes:
        schema_version: Version of the meaning of these keys.
        model: The model, as the user wrote it.
        method: Method spec; None for the checkpoint's own scaling.
        calls: Arguments of the three calls that the run consisted of, by function.
        results: Metrics by task, under the harness's own names.
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
    manifest: Manifest = field(default_factory=Manifest)
