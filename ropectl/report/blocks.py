"""What a page holds beside tables and sentences, without a word of HTML: sections, bars, figures, commands, files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ropectl.report.document import Part


@dataclass(frozen=True)
class Points:
    """A list of short sentences."""

    entries: Sequence[str]


@dataclass(frozen=True)
class Bar:
    """A length against the target.

    Attributes:
        name: What it is the length of.
        text: The length.
        share: Of the target, in [0, 1]; None where it is not known.
        meaning: What the length says, in plain words.
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

    bars: Sequence[Bar]
    target: str
    trained_share: float
    trained: str
    is_short: bool
    aim: str


@dataclass(frozen=True)
class Figure:
    """A figure, as SVG that is safe in the page."""

    svg: str
    title: str
    caption: str


@dataclass(frozen=True)
class Figures:
    """Figures beside each other where there is room, and sentences about those that could not be drawn."""

    figures: Sequence[Figure | Part]


@dataclass(frozen=True)
class Command:
    """A command line.

    Attributes:
        about: What it gives.
        line: To be pasted into a shell.
        is_risky: Whether it lets the checkpoint run code.
    """

    about: str
    line: str
    is_risky: bool = False


@dataclass(frozen=True)
class Commands:
    """Command lines to be copied."""

    commands: Sequence[Command]


@dataclass(frozen=True)
class Hidden:
    """Blocks that are shown when a reader asks for them."""

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

    files: Sequence[Download]


@dataclass(frozen=True)
class Section:
    """A part of a page, under a heading.

    Attributes:
        title: The heading.
        id: The id that links lead to, without the prefix that the page gives to all ids of a run.
        blocks: What it consists of; sections stand one level deeper.
        badge: A short word behind the heading.
    """

    title: str
    id: str
    blocks: Sequence[Block]
    badge: str = ""


@dataclass(frozen=True)
class Page:
    """A whole page.

    Attributes:
        title: The page's heading.
        subtitle: Below it.
        contents: Prefix of the ids of each section, and the section.
    """

    title: str
    subtitle: str
    contents: Sequence[tuple[str, Section]]


Block = Part | Points | Bars | Figures | Commands | Hidden | Downloads | Section
