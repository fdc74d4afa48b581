"""Tables with a row for each method and a column for each length: of one comparison, and of several runs side by side."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from ropectl.records import PasskeyLength, PerplexityPoint, Reach
from ropectl.report.document import BAD, Cell, Column, Row, Table, columns
from ropectl.report.tables.words import (
    NONE_MARK,
    NOT_AVAILABLE,
    beyond_mark,
    bits_text,
    change_cell,
    change_text,
    change_tone,
    length_head,
    perplexity_text,
)

#: Sorts after every length that has a limit.
UNLIMITED = float(2**63)


@dataclass(frozen=True)
class MeasuredSubject:
    """The measurements of one row: a method on a model.

    Attributes:
        name: Name of the row.
        perplexity: Perplexities by length.
        passkey: Retrieval by length.
        reach: How far the method reaches; None if not known.
        compares: Equal for rows that scored the same documents in the same tokens.
        short_delta: Worst relative change of perplexity up to the trained length; None if not judged.
        seconds: Time of the measurements [s]; None if not known.
        href: Id of its section of the page.
        is_pick: Whether it is the pick of its comparison.
        note: What is missing.
    """

    name: str
    perplexity: Sequence[PerplexityPoint] = ()
    passkey: Sequence[PasskeyLength] = ()
    reach: Reach | None = None
    compares: Hashable = None
    short_delta: float | None = None
    seconds: float | None = None
    href: str = ""
    is_pick: bool = False
    note: str = ""

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
        ranks: Returns a key for each subject at a length, equal for those that are ranked together; None if no perplexity
            is to be marked there.
    """

    subjects: Sequence[MeasuredSubject]
    lengths: Sequence[int]
    first: str
    trained: int | None
    ranks: Callable[[int], Sequence[Hashable] | None]

    def heads(self) -> list[Column]:
        """Returns a column for each length."""
        return columns(length_head(length, self.trained) for length in self.lengths)

    def table(self, title: str, heads: Sequence[Column], by_column: Sequence[Sequence[Cell]]) -> Table:
        """Returns a table from its columns."""
        rows = [
            Row(
                each.name, [column[index] for column in by_column], href=each.href, is_pick=each.is_pick, note=each.note
            )
            for index, each in enumerate(self.subjects)
        ]
        return Table(title, self.first, heads, rows, is_sortable=True)


def perplexities(grid: LengthGrid, title: str, base: MeasuredSubject | None = None) -> Table:
    """Returns perplexity by length, with the change against the unscaled model.

    Args:
        grid: What is measured.
        title: Of the table.
        base: The unscaled model; None if there is none to compare with.
    """
    numbers = []
    for length in grid.lengths:
        values = [each.value(length) for each in grid.subjects]
        keys = grid.ranks(length)
        best = [False] * len(values) if keys is None else best_marks(list(map(perplexity_text, values)), values, keys)
        numbers.append([_perplexity(each, length, base, grid.trained, mark) for each, mark in _marked(grid, best)])
    heads = grid.heads()
    if base is not None:
        heads.append(Column("worst up to L"))
        numbers.append([change_cell(each.short_delta) for each in grid.subjects])
    return grid.table(title, heads, numbers)


def _marked(grid: LengthGrid, best: Sequence[bool]) -> zip[tuple[MeasuredSubject, bool]]:
    return zip(grid.subjects, best, strict=True)


def _perplexity(
    each: MeasuredSubject, length: int, base: MeasuredSubject | None, trained: int | None, is_best: bool
) -> Cell:
    point, value = each.point(length), each.value(length)
    reference = base.value(length) if base is not None and base.compares == each.compares and base is not each else None
    change = value / reference - 1 if value is not None and reference else None
    is_price = each.short_delta is not None and trained is not None and length <= trained
    return Cell(
        perplexity_text(value),
        beyond_mark(point is not None and point.beyond_capacity),
        is_best,
        BAD if is_price and change_tone(change) == BAD else "",
        value=value,
        small="" if change is None else change_text(change),
        small_tone=change_tone(change),
    )


def bits_per_byte(grid: LengthGrid, title: str) -> Table:
    """Returns bits per byte by length, which compare whatever the tokens are."""
    numbers = []
    for length in grid.lengths:
        values = [each.bits(length) for each in grid.subjects]
        texts = list(map(bits_text, values))
        best = best_marks(texts, values)
        entries = zip(texts, values, best, strict=True)
        numbers.append([Cell(text, is_best=mark, value=value) for text, value, mark in entries])
    return grid.table(title, grid.heads(), numbers)


def passkeys(grid: LengthGrid, title: str) -> Table:
    """Returns right answers by length, with their share and its 95 % interval."""
    entries = [each.found(length) for each in grid.subjects for length in grid.lengths]
    differ = len({entry.trials for entry in entries if entry is not None}) > 1
    numbers = []
    for length in grid.lengths:
        found = [each.found(length) for each in grid.subjects]
        counts = [None if entry is None else entry.correct for entry in found]
        is_ranked = grid.ranks(length) is not None
        best = best_marks(list(map(str, counts)), counts, smallest=False) if is_ranked else [False] * len(counts)
        numbers.append([_passkey(each.found(length), mark, differ) for each, mark in _marked(grid, best)])
    return grid.table(title, grid.heads(), numbers)


def _passkey(entry: PasskeyLength | None, is_best: bool, tells_trials: bool) -> Cell:
    if entry is None:
        return Cell(NOT_AVAILABLE)
    trials = f"{entry.correct}/{entry.trials}, " if tells_trials else ""
    return Cell(
        str(entry.correct),
        beyond_mark(entry.beyond_capacity),
        is_best,
        shade=entry.accuracy,
        value=entry.accuracy,
        small=f"{trials}{100 * entry.ci_low:.0f}\u2013{100 * entry.ci_high:.0f}%",
    )


def reaches(grid: LengthGrid, target: int | None) -> Table:
    """Returns how far each subject reaches in three senses.

    Args:
        grid: What is measured; lengths do not matter.
        target: Length that the bars are drawn against [tokens]; None for no bars.
    """
    senses = ("computes", "models", "uses")
    numbers = [[_reach(each, sense, target) for each in grid.subjects] for sense in senses]
    heads = list(senses)
    if any(each.seconds is not None for each in grid.subjects):
        numbers.append([Cell(f"{each.seconds or 0.0:.1f}", value=each.seconds) for each in grid.subjects])
        heads.append("seconds")
    bars = f", bars of {target}" if target else ""
    return grid.table(f"Reach: how far it ... [tokens]{bars}", columns(heads), numbers)


def _reach(each: MeasuredSubject, sense: str, target: int | None) -> Cell:
    length: int | None = getattr(each.reach, sense, None)
    if sense == "computes" and each.reach is not None and length is None:
        return Cell("unlimited", bar=1.0 if target else None, value=UNLIMITED)
    if length is None:
        return Cell(NOT_AVAILABLE)
    return Cell(str(length or NONE_MARK), bar=length / target if target else None, value=length)


def best_marks(
    texts: Sequence[str],
    values: Sequence[float | None],
    keys: Sequence[Hashable] | None = None,
    *,
    smallest: bool = True,
) -> list[bool]:
    """Returns which entries of a column are marked as its best: those that read the same as the best one.

    A text that more than half of the rows share does not tell them apart and is not marked. Reach is not ranked: it is
    shown against the target instead.

    Args:
        texts: The entries as they are shown.
        values: Their values; None or not finite if missing.
        keys: Entries with equal keys are ranked together; None if all are.
        smallest: Whether less is better.
    """
    result = [False] * len(texts)
    keys = [None] * len(texts) if keys is None else keys
    for key in dict.fromkeys(keys):
        group = [index for index, each in enumerate(keys) if each == key]
        best = _best_text([texts[i] for i in group], [values[i] for i in group], smallest)
        for index in group:
            result[index] = texts[index] == best
    return result


def _best_text(texts: Sequence[str], values: Sequence[float | None], smallest: bool) -> str | None:
    known = [value for value in values if value is not None and math.isfinite(value)]
    if len(known) < 2:
        return None
    text = texts[list(values).index(min(known) if smallest else max(known))]
    return text if 2 * sum(each == text for each in texts) <= len(known) else None
