"""Comma-separated values, one measured number a row, unrounded: ``pandas.read_csv`` takes it as it is."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, fields, replace

from ropectl.printable import printable
from ropectl.records import (
    ComparisonRecord,
    Difference,
    PasskeyCell,
    PasskeyLength,
    PasskeyRecord,
    PerplexityPoint,
    PerplexityRecord,
    TaskCell,
    TaskLength,
    TasksRecord,
)
from ropectl.records.reading import AnyRecord
from ropectl.report.document import View


@dataclass(frozen=True)
class MeasuredValue:
    """A measured number; its fields are the columns. None if a field does not apply or could not be measured.

    Attributes:
        model: The model, as the user wrote it.
        method: Method spec.
        tuned: Whether the method was trained first.
        task: Task spec, of ``eval-tasks``.
        measure: Name of what is measured.
        protocol: Protocol of a perplexity.
        length: Context [tokens].
        depth: Depth of the fact that is asked for, in [0, 1].
        position: Position of that fact, or of the first target of a bin of positions [tokens].
        value: The number.
        unit: Its unit.
        ci_low: Lower end of its 95 % interval.
        ci_high: Upper end.
        n: Number of ``n_of`` that it is the result of.
        n_of: ``tokens``, ``trials``, ``tasks`` or ``documents``.
        beyond_capacity: Whether the length is past the length that the method is made for.
        training: Id of the training.
        against: Of a paired difference, the method that the other number is of.
    """

    model: str
    method: str
    tuned: bool = False
    task: str | None = None
    measure: str = ""
    protocol: str | None = None
    length: int | None = None
    depth: float | None = None
    position: int | None = None
    value: float | None = None
    unit: str = "1"
    ci_low: float | None = None
    ci_high: float | None = None
    n: int | None = None
    n_of: str | None = None
    beyond_capacity: bool | None = None
    training: str | None = None
    against: str | None = None


#: The columns.
COLUMNS = tuple(field.name for field in fields(MeasuredValue))

#: A spreadsheet would run text that begins with one of these.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def csv_text(view: View, record: AnyRecord) -> str:
    """Returns what :func:`values_csv` does: a table of values needs no view."""
    return values_csv(record)


def values_csv(record: AnyRecord) -> str:
    """Returns the measured values of a record: a header line, then a line each; numbers keep all digits."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows([_text(entry) for entry in astuple(value)] for value in values_of(record))
    return file.getvalue()


def _text(value: str | float | None) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return printable(f"'{value}" if value.startswith(_FORMULA) else value)
    return repr(value)


Values = Iterator[MeasuredValue]


def values_of(record: AnyRecord) -> Values:
    """Yields the measured values of a record."""
    if isinstance(record, ComparisonRecord):
        yield from _comparison(record)
    elif isinstance(record, PerplexityRecord):
        yield from _perplexity(record)
    elif isinstance(record, PasskeyRecord):
        yield from _passkey(record)
    elif isinstance(record, TasksRecord):
        yield from _tasks(record)


def _comparison(record: ComparisonRecord) -> Values:
    for row in record.rows:
        training = row.training.id if row.training else None
        about = MeasuredValue(row.model, row.method, training is not None, training=training)
        yield from _points(replace(about, protocol="prefix"), row.perplexity)
        yield from _points(replace(about, protocol="tail"), row.tail)
        yield from _lengths(about, row.passkey)
        computes = math.inf if row.reach.computes is None else row.reach.computes
        for sense, tokens in (("computes", computes), ("models", row.reach.models), ("uses", row.reach.uses)):
            yield replace(about, measure=f"reach_{sense}", value=tokens, unit="tokens")
        yield replace(
            about, measure="short_delta", value=row.short_delta, ci_low=row.short_delta_ci_low, ci_high=row.short_delta_ci_high
        )  # fmt: skip
        yield replace(about, measure="seconds", value=row.seconds, unit="s")
    for one in record.differences:
        row, other = record.rows[one.row], record.rows[one.against]
        training = row.training.id if row.training else None
        about = MeasuredValue(row.model, row.method, training is not None, training=training)
        against = f"{other.method}{' tuned' if other.training else ''}"
        yield _difference(about, one, against if other.model == row.model else f"{other.model} {against}")


#: The measure and unit of a paired difference, by what it is of.
_DIFFERENCES = {
    "prefix": ("nll_difference", "nats/token"), "tail": ("nll_difference", "nats/token"),
    "passkey": ("passkey_difference", "1"), "task": ("score_difference", "1"), "short_delta": ("short_delta_difference", "1"),
}  # fmt: skip


def _difference(about: MeasuredValue, one: Difference, against: str) -> MeasuredValue:
    measure, unit = _DIFFERENCES.get(one.measure, ("nll_difference", "nats/token"))
    return replace(
        about, measure=measure, protocol=one.measure if measure == "nll_difference" else None, length=one.length,
        value=one.value, unit=unit, ci_low=one.ci_low, ci_high=one.ci_high, n=one.units,
        n_of="documents" if measure in ("nll_difference", "short_delta_difference") else "trials", against=against,
    )  # fmt: skip


def _perplexity(record: PerplexityRecord) -> Values:
    about = MeasuredValue(record.model, record.method, protocol=record.protocol)
    yield from _points(about, record.points)
    if record.protocol == "tail":
        yield replace(about, measure="reach_models", value=record.reach.models, unit="tokens")
    if record.short_delta is not None:
        yield replace(
            about, measure="short_delta", value=record.short_delta, ci_low=record.short_delta_ci_low,
            ci_high=record.short_delta_ci_high,
        )  # fmt: skip
    for one in record.differences:
        yield _difference(about, one, "none")


def _passkey(record: PasskeyRecord) -> Values:
    about = MeasuredValue(record.model, record.method)
    yield from _lengths(about, record.lengths)
    for accuracy, length in record.k_max.items():
        yield replace(about, measure=f"k_max_{accuracy}", value=length, unit="tokens")
    yield replace(about, measure="reach_uses", value=record.reach.uses, unit="tokens")


def _tasks(record: TasksRecord) -> Values:
    about = MeasuredValue(record.model, record.method)
    for result in record.tasks:
        named = replace(about, task=result.task)
        yield from _lengths(named, result.lengths)
        yield replace(named, measure="reach_uses", value=result.uses, unit="tokens")
    average = replace(about, task="average")
    for entry in record.average:
        yield replace(
            average, length=entry.length, beyond_capacity=entry.beyond_capacity, measure="score", value=entry.score,
            ci_low=entry.ci_low, ci_high=entry.ci_high, n=entry.tasks, n_of="tasks",
        )  # fmt: skip
    yield replace(average, measure="reach_uses", value=record.reach.uses, unit="tokens")


def _points(about: MeasuredValue, points: Sequence[PerplexityPoint]) -> Values:
    for point in points:
        at = replace(
            about, length=point.context_length, beyond_capacity=point.beyond_capacity, n=point.num_tokens, n_of="tokens"
        )
        yield replace(at, measure="perplexity", value=point.perplexity, ci_low=point.ci_low, ci_high=point.ci_high)
        if point.bits_per_byte is not None:
            yield replace(at, measure="bits_per_byte", value=point.bits_per_byte, unit="bits/byte")
        if point.num_windows > point.num_documents:  # else it is the mean over documents
            yield replace(at, measure="window_mean_perplexity", value=point.window_mean_perplexity)
        if point.gain_over_trained is not None:
            yield replace(
                at, measure="gain_over_trained", value=point.gain_over_trained, unit="nats/token",
                ci_low=point.gain_ci_low, ci_high=point.gain_ci_high,
            )  # fmt: skip
        if point.num_candidates:
            value = point.candidates_perplexity
            yield replace(at, measure="candidates_perplexity", value=value, n=point.num_candidates)
        for part in point.positions:
            loss = part.nll_sum / part.num_tokens if part.num_tokens else None
            yield replace(
                at, measure="nll_by_position", position=part.start, value=loss, unit="nats/token", n=part.num_tokens
            )


def _lengths(about: MeasuredValue, lengths: Sequence[PasskeyLength] | Sequence[TaskLength]) -> Values:
    """Yields values of passkeys or of a task: by length, and by depth at each."""
    for entry in lengths:
        at = replace(about, length=entry.length, beyond_capacity=entry.beyond_capacity)
        yield from _trials(at, entry)
        for cell in entry.depths:
            position = cell.needle_position if isinstance(cell, PasskeyCell) else cell.position
            yield from _trials(replace(at, depth=cell.depth, position=position), cell)


def _trials(at: MeasuredValue, found: PasskeyLength | PasskeyCell | TaskLength | TaskCell) -> Values:
    at = replace(at, n=found.trials, n_of="trials")
    measure, value = (
        ("passkey", found.accuracy) if isinstance(found, PasskeyLength | PasskeyCell) else ("score", found.score)
    )
    yield replace(at, measure=measure, value=value, ci_low=found.ci_low, ci_high=found.ci_high)
    if found.answer_logprob is not None:
        yield replace(at, measure="answer_logprob", value=found.answer_logprob, unit="nats")
