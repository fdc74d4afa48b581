"""The contents of a report, as views make them from records, before anything is known about how they are written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from ropectl.printable import printable

#: Whether a cell or a sentence is good or bad news, for writers that have colours.
GOOD, BAD = "good", "bad"

#: The importance of a sentence on the page: the verdict, the most important lines, small print, a warning.
HEADLINE, LEAD, NOTE, WARNING = "headline", "lead", "note", "warning"


@dataclass(frozen=True)
class Cell:
    """An entry of a table.

    Attributes:
        text: The text.
        mark: Footnote mark after the text.
        is_best: Whether it is the best of its column, or one of several that are not told apart from it.
        is_tied: Whether it is one of several.
        tone: ``good``, ``bad`` or nothing; never the only sign of what is meant.
        shade: Position on the colour scale of a heat map, in [0, 1]; None for no shade.
        bar: Length of a bar after the text as a share of the whole, in [0, 1]; None for no bar.
        possible: How long the bar may be, what is not resolved included.
        value: The number that the text is of, by which readers of the page may sort; None for none.
        interval: The ends of its 95 % interval, as texts; a terminal has room for them only where the table says so.
        spread: The standard deviation over seeds, which stands beside the interval.
        small: A line below the text, shown on the page only, in the tone ``small_tone``.
        url: Address that the text links to on the page; one of the package's own, never one that a record names.
    """

    text: str
    mark: str = ""
    is_best: bool = False
    is_tied: bool = False
    tone: str = ""
    shade: float | None = None
    bar: float | None = None
    possible: float | None = None
    value: float | None = None
    interval: tuple[str, str] | None = None
    spread: str = ""
    small: str = ""
    small_tone: str = ""
    url: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", printable(self.text))


@dataclass(frozen=True)
class Column:
    """A column of a table; the column of names is not among them.

    Attributes:
        head: Its heading.
        is_text: Whether it holds words, which are left-aligned and may be broken, instead of numbers.
        is_drawing: Whether it holds block characters, which not every format has.
        is_detail: Whether a terminal has no room for it.
        word: Length of the longest word in it that must not be broken [characters]; 0 for none.
        group: Heading over this and neighbouring columns, on the page.
    """

    head: str
    is_text: bool = False
    is_drawing: bool = False
    is_detail: bool = False
    word: int = 0
    group: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "head", printable(self.head))


@dataclass(frozen=True)
class Row:
    """A row of a table.

    Attributes:
        name: What the row is about.
        cells: One for each column.
        is_total: Whether a rule separates it from those above.
        href: Id of the section of the page that says more about it.
        is_pick: Whether it is the pick of a comparison.
        note: A line below the name, shown on the page only.
    """

    name: str
    cells: Sequence[Cell]
    is_total: bool = False
    href: str = ""
    is_pick: bool = False
    note: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", printable(self.name))


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
        title: What the numbers are.
        first: Heading of the names.
        columns: The other columns.
        rows: The rows.
        is_sortable: Whether readers of the page may sort the rows.
        name: What it is called where every table needs a name; its title, if it has one.
        drawn: What its bars are of, as the end of the title where there are bars.
        about: What was counted, and what its intervals are, in sentences; for formats in which a table stands alone.
        has_intervals: Whether a terminal has room for the intervals.
        is_detail: Whether a terminal has no room for it.
    """

    title: str
    first: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    is_sortable: bool = False
    name: str = ""
    drawn: str = ""
    about: str = ""
    has_intervals: bool = False
    is_detail: bool = False

    def __post_init__(self) -> None:
        for name in ("title", "name", "drawn", "about"):
            object.__setattr__(self, name, printable(getattr(self, name)))

    @property
    def has_heads(self) -> bool:
        """True if any column has a heading; a table without one lists facts."""
        return bool(self.first) or any(column.head for column in self.columns)

    def groups(self) -> list[tuple[str, int]]:
        """Returns the headings over several columns, each with the number of its columns; empty if there are none."""
        found = [(group, len(list(columns))) for group, columns in groupby(column.group for column in self.columns)]
        return found if any(group for group, _ in found) else []

    def without(self, leaves_out: Callable[[Column], bool]) -> Table:
        """Returns the table without some of its columns."""
        left = [index for index, column in enumerate(self.columns) if not leaves_out(column)]
        rows = [replace(row, cells=[row.cells[index] for index in left]) for row in self.rows]
        return replace(self, columns=[self.columns[index] for index in left], rows=rows)


@dataclass(frozen=True)
class SmallTables:
    """Small tables of the same form that are read side by side; the title of each is its name.

    Attributes:
        title: What the numbers are.
        tables: The tables.
    """

    title: str
    tables: Sequence[Table]

    def separate(self) -> list[Table]:
        """Returns the tables with titles that say what the numbers are, to be read alone."""
        return [replace(table, title=f"{self.title}: {table.title}") for table in self.tables]


@dataclass(frozen=True)
class Sentence:
    """A line of text.

    Attributes:
        text: The text.
        tone: As in a cell, or the importance of the sentence on the page.
        explains_drawing: Whether it explains a drawing, which not every format has.
        is_heading: Whether it is a heading of what follows.
        concerns: Marks and headings, all of which are in the tables that it explains; empty if it is about the whole.
    """

    text: str
    tone: str = ""
    explains_drawing: bool = False
    is_heading: bool = False
    concerns: Sequence[str] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", printable(self.text))


@dataclass(frozen=True)
class BestNote:
    """What the mark of the best means; each format has its own mark.

    Attributes:
        text: Of the best.
        tied: Of several that are not told apart; empty where there are none.
    """

    text: str
    tied: str = ""

    def of_several(self) -> str:
        """Returns both for a format with one mark for the two."""
        return "; several in a column: ".join(filter(None, [self.text, self.tied]))


Part = Table | SmallTables | Sentence | BestNote


@dataclass(frozen=True)
class View:
    """The way a kind of record is shown.

    Attributes:
        parts: Makes its tables and sentences.
        title: Heading of a page about it, with ``{model}``.
        has_values: Whether it has measured values, which CSV lists one a row.
        is_headed: Whether model and method are shown above, on a terminal.
    """

    parts: Callable[[Any], Sequence[Part]]
    title: str = ""
    has_values: bool = False
    is_headed: bool = True

    def all_parts(self, record: Any) -> list[Part]:
        """Returns the parts for a terminal: with the heading if there is one."""
        from ropectl.rope.method import short_spec  # imports pydantic, which the help of a command does not need

        heading = [Sentence(f"{record.model}, {short_spec(record.method or 'as it is')}")] if self.is_headed else []
        return [*heading, *self.parts(record)]


def cells(texts: Iterable[str]) -> list[Cell]:
    """Returns plain entries."""
    return [Cell(text) for text in texts]


def columns(heads: Iterable[str]) -> list[Column]:
    """Returns columns of numbers."""
    return [Column(head) for head in heads]


def facts(title: str, rows: Iterable[tuple[str, str]]) -> Table:
    """Returns a table without headings that has a line for each name and its value."""
    return Table(title, "", [Column("", is_text=True)], [Row(name, [Cell(value)]) for name, value in rows])
