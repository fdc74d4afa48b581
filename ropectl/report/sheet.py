"""What a report consists of, before anybody knows how it is written: tables, legends and sentences.

Terminal, Markdown and LaTeX are three ways to write the same parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ropectl.printable import printable

#: What a cell or a sentence means, for those who can colour it.
GOOD, BAD = "good", "bad"

Record = Mapping[str, Any]


@dataclass(frozen=True)
class Cell:
    """One entry of a table.

    Attributes:
        text: What is read.
        mark: Footnote mark behind it.
        best: Whether it is the best of its column.
        tone: ``good``, ``bad`` or neither; never the only carrier of what is meant.
        shade: Position on the colour scale of a heat map, in [0, 1]; None for none.
        bar: Length of a bar behind the text as a share of the whole, in [0, 1]; None for none.
    """

    text: str
    mark: str = ""
    best: bool = False
    tone: str = ""
    shade: float | None = None
    bar: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", printable(self.text))


@dataclass(frozen=True)
class Column:
    """One column of a table beside that of the names.

    Attributes:
        head: Its heading.
        is_text: Whether it holds words, which are written from the left and may be broken, instead of numbers.
        is_drawing: Whether it holds block characters, which not every format has.
        word: Characters of a word in it that is not to be broken, if there are any.
    """

    head: str
    is_text: bool = False
    is_drawing: bool = False
    word: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "head", printable(self.head))


@dataclass(frozen=True)
class Row:
    """One row of a table.

    Attributes:
        name: What it is about.
        cells: One a column.
        is_total: Whether a rule sets it apart from those above.
    """

    name: str
    cells: Sequence[Cell]
    is_total: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", printable(self.name))


@dataclass(frozen=True)
class Sheet:
    """One table.

    Attributes:
        title: What the numbers are.
        first: Heading of the names.
        columns: The other columns.
        rows: The rows.
    """

    title: str
    first: str
    columns: Sequence[Column]
    rows: Sequence[Row]

    def __post_init__(self) -> None:
        object.__setattr__(self, "title", printable(self.title))


@dataclass(frozen=True)
class Multiples:
    """Small tables of equal form that are read side by side; each one's title is its name.

    Attributes:
        title: What the numbers are.
        sheets: The tables.
    """

    title: str
    sheets: Sequence[Sheet]


@dataclass(frozen=True)
class Sentence:
    """A line of text.

    Attributes:
        text: It.
        tone: As in a cell.
        is_of_drawing: Whether it explains a drawing, which not every format has.
        is_heading: Whether it says what follows.
    """

    text: str
    tone: str = ""
    is_of_drawing: bool = False
    is_heading: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", printable(self.text))


@dataclass(frozen=True)
class BestLegend:
    """What it means to be marked as best."""

    text: str


Part = Sheet | Multiples | Sentence | BestLegend


@dataclass(frozen=True)
class View:
    """How a kind of record is shown.

    Attributes:
        parts: Its tables and sentences.
        has_values: Whether there are measured values in it, to be written one a row.
        is_headed: Whether model and method stand above.
    """

    parts: Callable[[Any], Sequence[Part]]
    has_values: bool = False
    is_headed: bool = True

    def all_parts(self, record: Record) -> list[Part]:
        """Returns the parts, with the heading if there is one."""
        from ropectl.rope.method import short_spec  # brings pydantic, which the help of a command does without

        heading = [Sentence(f"{record['model']}, {short_spec(record['method'])}")] if self.is_headed else []
        return [*heading, *self.parts(record)]


def cells(texts: Iterable[str]) -> list[Cell]:
    """Returns plain entries."""
    return [Cell(text) for text in texts]


def columns(heads: Iterable[str]) -> list[Column]:
    """Returns columns of numbers."""
    return [Column(head) for head in heads]


def facts(title: str, rows: Iterable[tuple[str, str]]) -> Sheet:
    """Returns a table without headings: a name and what there is to say, a line each."""
    return Sheet(title, "", [Column("", is_text=True)], [Row(name, [Cell(value)]) for name, value in rows])
