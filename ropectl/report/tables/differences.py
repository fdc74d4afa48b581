"""Paired differences of the rows of a comparison from one of them, by length."""

from __future__ import annotations

from collections.abc import Sequence

from ropectl.data.units import drawn_unit
from ropectl.records import ComparisonRecord, Difference
from ropectl.report.document import BAD, GOOD, Cell, Row, Sentence, Table, columns
from ropectl.report.tables.counts import compared
from ropectl.report.tables.words import NOT_AVAILABLE, SAME_MARK, length_head, row_names

_TITLES = {
    "prefix": "Loss against {}, in pairs [nats a token]",
    "tail": "Loss of the same last tokens against {}, in pairs [nats a token]",
    "passkey": "Passkeys against {}, in pairs [% of the prompts]",
}

#: What is compared in pairs, in the order in which it is shown.
MEASURES = tuple(_TITLES)


#: What the numbers of a table of differences are.
EXPLAINED = Sentence(
    f"\u00b1 half the 95 % interval of the paired difference; {SAME_MARK} not told apart: the interval holds 0",
    concerns=["\u00b1"],
)


def references_of(record: ComparisonRecord) -> list[int]:
    """Returns the rows that the others are compared with, in their order."""
    return list(dict.fromkeys(one.against for one in record.differences))


def difference_tables(record: ComparisonRecord, against: int, measures: Sequence[str] = MEASURES) -> list[Table]:
    """Returns the differences of every other row from one, a table for each measure that there is.

    Args:
        record: The comparison.
        against: Index of the row that the others are compared with.
        measures: The measures.
    """
    names = row_names(record.rows)
    tables = []
    for measure in measures:
        found = {(o.row, o.length): o for o in record.differences if (o.against, o.measure) == (against, measure)}
        if not found:
            continue
        rows = [
            Row(
                name, [difference_cell(found.get((index, length))) for length in record.lengths], href=f"method-{index}"
            )
            for index, name in enumerate(names)
            if any((index, length) in found for length in record.lengths)
        ]
        trained = record.geometry.original_max_position_embeddings
        heads = columns(length_head(length, trained) for length in record.lengths)
        unit = "prompt" if measure == "passkey" else drawn_unit(record.manifest.split, record.manifest.clusters)
        title, about = _TITLES[measure].format(names[against]), compared(list(found.values()), unit)
        tables.append(Table(title, "method", heads, rows, is_sortable=True, about=about))
    return tables


def difference_cell(one: Difference | None) -> Cell:
    """Returns a paired difference with half its interval, marked where it is not told apart from none."""
    if one is None:
        return Cell(NOT_AVAILABLE)
    is_share = one.measure in ("passkey", "task")
    scale, digits = (100, 0) if is_share else (1, 3)
    text = f"{round(scale * one.value, digits) + 0.0:+.{digits}f}"  # no negative zero
    if one.ci_low is None or one.ci_high is None:
        return Cell(text, value=one.value)
    text += f"\u00b1{scale * (one.ci_high - one.ci_low) / 2:.{digits}f}"
    is_better = one.value > 0 if is_share else one.value < 0
    return Cell(
        text,
        "" if one.told_apart else SAME_MARK,
        tone=(GOOD if is_better else BAD) if one.told_apart else "",
        value=one.value,
        small=f"{scale * one.ci_low:+.{digits}f} to {scale * one.ci_high:+.{digits}f}",
    )
