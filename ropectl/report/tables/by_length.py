"""Tables with a row for each method and a column for each length: of one comparison, and of several runs side by side."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from ropectl.evaluate.judging.paired import loss_difference, score_difference
from ropectl.records import Difference, PasskeyLength, PerplexityPoint, Reach
from ropectl.report.document import BAD, Cell, Column, Row, Table, columns
from ropectl.report.tables.best import best_marks, marked
from ropectl.report.tables.counts import IN_BRACKETS, asked, scored
from ropectl.report.tables.words import (
    NOT_AVAILABLE,
    beyond_mark,
    bits_text,
    change_cell,
    change_text,
    change_tone,
    ends_text,
    length_head,
    perplexity_text,
    share_text,
    worst_head,
)


@dataclass(frozen=True)
class MeasuredSubject:
    """The measurements of one row: a method on a model.

    Attributes:
        name: Name of the row.
        perplexity: Perplexities by length.
        passkey: Retrieval by length.
        reach: How far the method reaches; None if not known.
        compares: Equal for rows that scored the same documents in the same tokens.
        short_delta: Worst relative change of perplexity at a measured length up to the trained one; None if not judged.
        short_interval: The ends of its 95 % interval.
        seconds: Time of the measurements [s]; None if not known.
        href: Id of its section of the page.
        is_pick: Whether it is the pick of its comparison.
        note: What is missing.
        clusters: The document of each scored unit; None where each is one of its own.
    """

    name: str
    perplexity: Sequence[PerplexityPoint] = ()
    passkey: Sequence[PasskeyLength] = ()
    reach: Reach | None = None
    compares: Hashable = None
    short_delta: float | None = None
    short_interval: tuple[float | None, float | None] = (None, None)
    seconds: float | None = None
    href: str = ""
    is_pick: bool = False
    note: str = ""
    clusters: Sequence[int] | None = None

    def point(self, length: int) -> PerplexityPoint | None:
        """Returns the perplexity in a context [tokens]; None where none was measured."""
        return next((point for point in self.perplexity if point.context_length == length), None)

    def value(self, length: int) -> float | None:
        """Returns the perplexity in a context [tokens] as a number."""
        point = self.point(length)
        return None if point is None else point.perplexity

    def bits(self, length: int) -> float | None:
        """Returns the bits per byte in a context [tokens]."""
        point = self.point(length)
        return None if point is None else point.bits_per_byte

    def found(self, length: int) -> PasskeyLength | None:
        """Returns the retrieval at a length [tokens]; None where none was measured."""
        return next((entry for entry in self.passkey if entry.length == length), None)


@dataclass(frozen=True)
class LengthGrid:
    """The layout that all tables of the same subjects share.

    Attributes:
        subjects: The rows.
        lengths: The columns [tokens].
        first: Heading of the names.
        trained: L [tokens], which is marked; None if subjects differ in it.
        ranks: Returns a key for each subject at a length, equal for those that are ranked together; None if nothing
            is to be marked there.
        split: Tokens of a scored window; None where whole documents were scored.
    """

    subjects: Sequence[MeasuredSubject]
    lengths: Sequence[int]
    first: str
    trained: int | None
    ranks: Callable[[int], Sequence[Hashable] | None]
    split: int | None = None

    def scored(self, intervals: str = IN_BRACKETS) -> str:
        """Returns what the perplexities are of, in a sentence; see :func:`~ropectl.report.tables.counts.scored`."""
        points = [point for each in self.subjects for point in each.perplexity]
        clusters = next((each.clusters for each in self.subjects if each.clusters), ())
        return scored(points, self.split, clusters, intervals)

    def heads(self) -> list[Column]:
        """Returns a column for each length."""
        return columns(length_head(length, self.trained) for length in self.lengths)

    def table(
        self, title: str, heads: Sequence[Column], by_column: Sequence[Sequence[Cell]], about: str = "", drawn: str = ""
    ) -> Table:
        """Returns a table from its columns."""
        rows = [
            Row(
                each.name, [column[index] for column in by_column], href=each.href, is_pick=each.is_pick, note=each.note
            )
            for index, each in enumerate(self.subjects)
        ]
        return Table(title, self.first, heads, rows, is_sortable=True, about=about, drawn=drawn)


def perplexities(grid: LengthGrid, title: str, base: MeasuredSubject | None = None) -> Table:
    """Returns perplexity by length, with the change against the unscaled model.

    Args:
        grid: What is measured.
        title: Of the table.
        base: The unscaled model; None if there is none to compare with.
    """
    numbers = []
    for length in grid.lengths:
        marks = best_marks(
            [each.value(length) for each in grid.subjects], grid.ranks(length), partial(_losses, grid, length)
        )
        columns = zip(grid.subjects, marks, strict=True)
        numbers.append([marked(_perplexity(each, length, base, grid.trained), mark) for each, mark in columns])
    heads = grid.heads()
    if base is not None:
        measured = [n for n in grid.lengths if any(each.value(n) is not None for each in grid.subjects)]
        heads.append(Column(worst_head(measured, grid.trained)))
        numbers.append([_price(each) for each in grid.subjects])
    return grid.table(title, heads, numbers, grid.scored())


def _losses(grid: LengthGrid, length: int, first: int, second: int) -> Difference | None:
    ours, theirs = (grid.subjects[index].point(length) for index in (first, second))
    if ours is None or theirs is None:
        return None
    return loss_difference("prefix", ours, theirs, grid.subjects[first].clusters)


def _price(each: MeasuredSubject) -> Cell:
    return replace(change_cell(each.short_delta), interval=ends_text(*each.short_interval, change_text))


def _perplexity(each: MeasuredSubject, length: int, base: MeasuredSubject | None, trained: int | None) -> Cell:
    point, value = each.point(length), each.value(length)
    reference = base.value(length) if base is not None and base.compares == each.compares and base is not each else None
    change = value / reference - 1 if value is not None and reference else None
    is_price = each.short_delta is not None and trained is not None and length <= trained
    return Cell(
        perplexity_text(value),
        beyond_mark(point is not None and point.beyond_capacity),
        tone=BAD if is_price and change_tone(change) == BAD else "",
        value=value,
        interval=None if point is None else ends_text(point.ci_low, point.ci_high, perplexity_text),
        small="" if change is None else change_text(change),
        small_tone=change_tone(change),
    )


def bits_per_byte(grid: LengthGrid, title: str) -> Table:
    """Returns bits per byte by length, which compare whatever the tokens are; other tokens are no pairs, and none is marked."""
    numbers = [[_bits(each, length) for each in grid.subjects] for length in grid.lengths]
    return grid.table(title, grid.heads(), numbers, grid.scored(intervals=""))


def _bits(each: MeasuredSubject, length: int) -> Cell:
    point, value = each.point(length), each.bits(length)
    return Cell(bits_text(value), beyond_mark(point is not None and point.beyond_capacity), value=value)


def passkeys(grid: LengthGrid, title: str) -> Table:
    """Returns right answers by length, with their share and its 95 % interval."""
    entries = [each.found(length) for each in grid.subjects for length in grid.lengths]
    differ = len({entry.trials for entry in entries if entry is not None}) > 1
    numbers = []
    for length in grid.lengths:
        found = [each.found(length) for each in grid.subjects]
        shares = [None if entry is None else entry.accuracy for entry in found]
        marks = best_marks(shares, grid.ranks(length), partial(_answers, found, length), smallest=False)
        numbers.append([marked(_passkey(entry, differ), mark) for entry, mark in zip(found, marks, strict=True)])
    return grid.table(title, grid.heads(), numbers, asked([entry for entry in entries if entry is not None]))


def _answers(found: Sequence[PasskeyLength | None], length: int, first: int, second: int) -> Difference | None:
    ours, theirs = found[first], found[second]
    if ours is None or theirs is None:
        return None
    return score_difference("passkey", length, ours.outcomes(), theirs.outcomes())


def _passkey(entry: PasskeyLength | None, tells_trials: bool) -> Cell:
    if entry is None:
        return Cell(NOT_AVAILABLE)
    return Cell(
        str(entry.correct),
        beyond_mark(entry.beyond_capacity),
        shade=entry.accuracy,
        value=entry.accuracy,
        interval=(share_text(entry.ci_low), share_text(entry.ci_high)),
        spread="" if entry.seed_spread is None else share_text(entry.seed_spread),
        small=f"of {entry.trials}" if tells_trials else "",
    )
