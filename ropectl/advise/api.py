"""Advice for notebooks and other programs, as records: what a model computes, and which methods are worth testing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ropectl.advise.choosing import Chooser
from ropectl.advise.inspected import Inspected
from ropectl.advise.inspection import inspect_rope
from ropectl.advise.requests import ChoiceSettings, InspectSettings
from ropectl.errors import ConfigError
from ropectl.records import InspectionRecord, to_json
from ropectl.runtimes.matrix import read_all


def choose_methods(settings: ChoiceSettings) -> dict[str, Any]:
    """Returns the methods worth testing for a length, with reasons and the commands that test them, as JSON values.

    Args:
        settings: The model and the wanted length.

    Raises:
        RopectlError: If the request cannot work.
    """
    return Chooser.of(settings).record()


def inspect_model(settings: InspectSettings, every: bool = False) -> list[dict[str, Any]]:
    """Returns what a model's rotary embedding computes under each method, as JSON values. No weights are loaded.

    Args:
        settings: The model and the methods.
        every: Without methods but with a factor: all methods that need nothing else.

    Raises:
        RopectlError: If the request cannot work.
    """
    if not settings.methods and not every and (settings.factor is not None or settings.target_length is not None):
        raise ConfigError(
            "--factor and --target-length need a method to apply them to.", "Type for example: -m yarn --factor 4"
        )
    subject = Inspected.of(settings)
    length = settings.seq_len
    records = []
    for method in subject.methods(settings.methods, every):
        facts = subject.facts(method if settings.methods else None, length, settings.target_length)
        shown = inspect_rope(subject.geometry, method, length, subject.notes(method), subject.declared(method))
        shown = subject.with_model(shown, method, length)
        records.append(to_json(replace(shown, runtimes=read_all(facts) if facts else [])))
    return records


def frozen_methods(settings: InspectSettings) -> tuple[str, list[InspectionRecord], int]:
    """Returns the model's name, what every method computes at the length that was asked for, and L' [tokens].

    Methods that follow the length are frozen at ``seq_len``, or at L'.
    """
    subject = Inspected.of(settings)
    methods = subject.methods(settings.methods, every=True)
    target = subject.target(methods)
    frozen = settings.seq_len or target
    records = [
        inspect_rope(subject.geometry, method, frozen if method.depends_on_seq_len else None) for method in methods
    ]
    return subject.name, records, target


def seq_len_notes(settings: InspectSettings) -> list[str]:
    """Returns a note where a sequence length was given that none of the methods depends on."""
    if settings.seq_len is None:
        return []
    methods = Inspected.of(settings).methods(settings.methods, every=False)
    if any(method.depends_on_seq_len for method in methods):
        return []
    return [
        f"--seq-len {settings.seq_len} changes nothing: {', '.join(m.label for m in methods)} is the same at every length."
    ]


def check_rotary_code(settings: InspectSettings) -> dict[str, Any]:
    """Returns the results of checking a model's own rotary code with numbers, as JSON values. No weights are loaded.

    Raises:
        RopectlError: If the request cannot work, or the model has several rotary tables.
    """
    from ropectl.hf.self_test.record import self_test  # imports torch, which nothing else here needs

    subject = Inspected.of(settings)
    methods = subject.methods(settings.methods, every=False)
    target = subject.target(methods)
    return self_test(subject.name, subject.rotary_code(), subject.geometry, methods, target, settings.seq_len)
