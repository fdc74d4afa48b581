"""Paired differences between the rows of a comparison, and which row leads a column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace

from ropectl.errors import ConfigError
from ropectl.evaluate.config import CompareConfig
from ropectl.evaluate.judging.paired import loss_difference, score_difference
from ropectl.evaluate.judging.verdicts import short_delta
from ropectl.names import unknown_choice
from ropectl.records import Difference, MethodRow, Pick, RowDifference
from ropectl.rope.method import ScalingMethod, short_spec


def check_against(config: CompareConfig, methods: Sequence[ScalingMethod]) -> None:
    """Checks that what differences are to be taken against is compared.

    Args:
        config: The settings.
        methods: The methods of the first model.

    Raises:
        ConfigError: If it is none of the rows, or several.
    """
    specs = [str(method) for method in methods]
    for name in config.against:
        found = _named(name, specs)
        if not found and name not in config.others:
            names = [*dict.fromkeys(spec.partition(":")[0] for spec in specs), *config.others]
            raise unknown_choice("against", name, names)
        if len(found) > 1:
            raise ConfigError(
                f"against = {name} is several of the rows: {', '.join(map(short_spec, found))}.",
                f"Name one of them, for example: --against {short_spec(found[0])}",
            )


def _named(name: str, specs: Sequence[str]) -> list[str]:
    """Returns the specs that a name means: the whole of one, or the method alone."""
    exact = [spec for spec in specs if name in (spec, short_spec(spec))]
    return exact or [spec for spec in specs if spec.partition(":")[0] == name]


def references(rows: Sequence[MethodRow], pick: Pick | None, against: Sequence[str]) -> list[int]:
    """Returns the rows that all others are compared with: those that were asked for, else the unscaled model and the pick.

    Args:
        rows: All rows.
        pick: What is preferred.
        against: Methods or models as they were asked for.
    """
    if against:
        own = [row.method for row in rows if row.model == rows[0].model and row.training is None]
        wanted = [spec for name in against for spec in _named(name, own)]
        return [
            index
            for index, row in enumerate(rows)
            if row.model in against or (row.model == rows[0].model and row.training is None and row.method in wanted)
        ]
    return [0, index] if (index := picked_index(rows, pick)) else [0]


def picked_index(rows: Sequence[MethodRow], pick: Pick | None) -> int | None:
    """Returns the index of the picked row; None if none is."""
    if pick is None:
        return None
    key = pick.model, pick.method, pick.training
    keys = [(row.model, row.method, row.training.id if row.training else None) for row in rows]
    return keys.index(key) if key in keys else None


def differences(
    rows: Sequence[MethodRow],
    chosen: Sequence[int],
    trained_length: int,
    clusters: Sequence[int] | None = None,
    other_tokens: Sequence[str] = (),
) -> list[RowDifference]:
    """Returns every paired difference of every row against the chosen ones.

    Args:
        rows: All rows.
        chosen: Indices of the rows to compare with.
        trained_length: L [tokens].
        clusters: The document of each scored unit; a document of its own by default.
        other_tokens: Models that read the text in other tokens than the first, whose losses and prompts are no pairs.
    """
    found = []
    for against in chosen:
        for row, each in enumerate(rows):
            mixes = (each.model in other_tokens) or (rows[against].model in other_tokens)
            if row == against or (mixes and each.model != rows[against].model):
                continue
            for one in row_differences(each, rows[against], trained_length, clusters):
                values = {field.name: getattr(one, field.name) for field in fields(Difference)}
                found.append(RowDifference(row=row, against=against, **values))
    return found


def row_differences(
    row: MethodRow, against: MethodRow, trained_length: int, clusters: Sequence[int] | None = None
) -> Iterator[Difference]:
    """Yields the paired differences of one row from another, in every measure and at every length that both have."""
    for measure, ours, theirs in (("prefix", row.perplexity, against.perplexity), ("tail", row.tail, against.tail)):
        reference = {point.context_length: point for point in theirs}
        for point in ours:
            other = reference.get(point.context_length)
            loss = None if other is None else loss_difference(measure, point, other, clusters)
            if loss is not None:
                yield loss
    price = short_delta(row.perplexity, against.perplexity, trained_length, clusters)
    if price is not None:
        yield replace(price, measure="short_delta")
    answered = {entry.length: entry for entry in against.passkey}
    for entry in row.passkey:
        found = answered.get(entry.length)
        share = None if found is None else score_difference("passkey", entry.length, entry.outcomes(), found.outcomes())
        if share is not None:
            yield share
