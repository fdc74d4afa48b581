"""The end of a run, and how a finished one is recognised."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ropectl.hf.config.places import read_object
from ropectl.hf.config.sidecar import SIDECAR
from ropectl.runs import content_id
from ropectl.train.settings import FinetuneSettings

#: Settings of the result that may differ from those that a run began with.
_FORM = ("merge", "save_dtype")


@dataclass(frozen=True)
class Finetuned:
    """The end of a run.

    Attributes:
        record: What ``ropectl.json`` of the result holds; with ``dry_run`` the estimate; None if interrupted.
        signal: Number of the signal that interrupted it; 0 if it ran to its end.
        step: Finished steps.
    """

    record: dict[str, Any] | None
    signal: int = 0
    step: int = 0


def result_id(settings: FinetuneSettings, identity: Mapping[str, Any]) -> str:
    """Returns the name of a result: what decides the training, and the form it is written in where that is not the usual one."""
    fields = FinetuneSettings.model_fields
    form = {name: getattr(settings, name) for name in _FORM if getattr(settings, name) != fields[name].default}
    return content_id({**identity, **form})


def finished_record(settings: FinetuneSettings, identity: Mapping[str, Any]) -> dict[str, Any] | None:
    """Returns the record of a result that this very request has already given; None if there is none."""
    assert settings.out is not None
    out = settings.out
    path = out / SIDECAR
    if not path.is_file():
        return None
    record = read_object(path)
    return record if record.get("training", {}).get("id") == result_id(settings, identity) else None
