"""How a run ends, and how an ended one is recognised."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ropectl.hf.sidecar import SIDECAR
from ropectl.hf.source import read_object
from ropectl.runs import content_id


@dataclass(frozen=True)
class Finetuned:
    """How a run ended.

    Attributes:
        record: What ``ropectl.json`` of the result holds; with ``dry_run`` the estimate; None if interrupted.
        signal: Number of the signal that interrupted it; 0 if it ran to its end.
        step: Finished steps.
    """

    record: dict[str, Any] | None
    signal: int = 0
    step: int = 0


def finished_record(out: Path, identity: Mapping[str, Any]) -> dict[str, Any] | None:
    """Returns the record of a result that this very request has already given; None if there is none."""
    path = out / SIDECAR
    if not path.is_file():
        return None
    record = read_object(path)
    return record if record.get("training", {}).get("id") == content_id(identity) else None
