"""What a page consists of, without a word of HTML: the template shows each kind, and escapes all text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ropectl.report.page.commands import Command


@dataclass(frozen=True)
class Words:
    """Sentences, a paragraph.

    Attributes:
        text: The sentences.
        tone: ``headline`` or ``lead`` for what matters most, ``note`` for small print, ``warning``, or nothing.
    """

    kind: ClassVar[str] = "words"
    text: str
    tone: str = ""


@dataclass(frozen=True)
class Points:
    """A list of short sentences."""

    kind: ClassVar[str] = "points"
    entries: Sequence[str]


@dataclass(frozen=True)
class Link:
    """A place in the world, of the package's own sources only: never one that a record names."""

    text: str
    url: str


@dataclass(frozen=True)
class Facts:
    """Names and what they are.

    Attributes:
        entries: The names and what they are.
        is_long: Whether a line holds one of them only.
    """

    kind: ClassVar[str] = "facts"
    entries: Sequence[tuple[str, str | Link]]
    is_long: bool = False


@dataclass(frozen=True)
class Cell:
    """A place in a table.

    Attributes:
        text: What it says.
        mark: ``best``, ``worse``, ``better``, ``beyond``, or nothing.
        small: Said below it, smaller.
        sort: What it is sorted by, where the text is no number.
    """

    text: str
    mark: str = ""
    small: str = ""
    sort: float | None = None
    small_mark: str = ""


@dataclass(frozen=True)
class Row:
    """A line of a table.

    Attributes:
        name: Its head.
        cells: One a column behind the first.
        href: Id of the section that it is the summary of.
        is_pick: Whether it is what the verdict names.
        note: Said below the name.
    """

    name: str
    cells: Sequence[Cell]
    href: str = ""
    is_pick: bool = False
    note: str = ""


@dataclass(frozen=True)
class Table:
    """A table, which is scrolled inside of its own box.

    Attributes:
        caption: What it shows.
        columns: Heads, that of the names first.
        rows: Lines.
        notes: What its marks mean.
        groups: Heads over several columns behind the first: text and how many; none where there are none.
        is_sorted_by_reader: Whether a reader may sort it.
        words: Columns of words instead of numbers.
    """

    kind: ClassVar[str] = "table"
    caption: str
    columns: Sequence[str]
    rows: Sequence[Row]
    notes: Sequence[str] = ()
    groups: Sequence[tuple[str, int]] = ()
    is_sorted_by_reader: bool = False
    words: Sequence[int] = ()


@dataclass(frozen=True)
class Bar:
    """A length against the target.

    Attributes:
        name: What it is the length of.
        text: The length.
        share: Of the target, in [0, 1]; None where it is not known.
        meaning: In plain words.
        is_unlimited: Whether it goes on beyond.
    """

    name: str
    text: str
    share: float | None
    meaning: str = ""


@dataclass(frozen=True)
class Bars:
    """Lengths against the same target.

    Attributes:
        bars: The lengths.
        target: The target, as text.
        trained_share: Where the trained length lies, in [0, 1].
        trained: The trained length, as text.
        is_short: Whether what the lengths mean is said elsewhere on the page.
        aim: Why the target is one, as it ends a sentence.
    """

    kind: ClassVar[str] = "bars"
    bars: Sequence[Bar]
    target: str
    trained_share: float
    trained: str
    is_short: bool = False
    aim: str = "that were asked for"


@dataclass(frozen=True)
class Figure:
    """A figure, as SVG that is safe in the page."""

    kind: ClassVar[str] = "figure"
    svg: str
    title: str
    caption: str
    name: str = ""


@dataclass(frozen=True)
class Figures:
    """Figures, beside each other where there is room."""

    kind: ClassVar[str] = "figures"
    figures: Sequence[Figure | Words]


@dataclass(frozen=True)
class Commands:
    """Command lines to be copied."""

    kind: ClassVar[str] = "commands"
    commands: Sequence[Command]


@dataclass(frozen=True)
class Hidden:
    """What is shown when it is asked for."""

    kind: ClassVar[str] = "hidden"
    summary: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Download:
    """A file inside of the page.

    Attributes:
        name: Its name.
        media: Its media type.
        base64: Its content.
        size: Bytes, for people.
    """

    name: str
    media: str
    base64: str
    size: str


@dataclass(frozen=True)
class Downloads:
    """Files inside of the page."""

    kind: ClassVar[str] = "downloads"
    files: Sequence[Download]


@dataclass(frozen=True)
class Section:
    """A part of a page, under a heading.

    Attributes:
        title: The heading.
        id: What links to it say; without the prefix that the page gives to all ids of a run.
        blocks: What it consists of; sections stand one level deeper.
        badge: A short word behind the heading.
    """

    kind: ClassVar[str] = "section"
    title: str
    id: str
    blocks: Sequence[Block]
    badge: str = ""


Block = Words | Points | Facts | Table | Bars | Figures | Commands | Hidden | Downloads | Section
