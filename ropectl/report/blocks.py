"""The contents of a page in addition to tables and sentences, without any HTML: sections, bars, figures, commands, files."""

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
        name: The kind of length.
        text: The length, as text.
        share: Share of the target, in [0, 1]; None if not known.
        meaning: What the length says, in plain words.
        possible: The share that it may be, what is not resolved included; None where nothing is open.
    """

    name: str
    text: str
    share: float | None
    meaning: str = ""
    possible: float | None = None


@dataclass(frozen=True)
class Bars:
    """Lengths against the same target.

    Attributes:
        bars: The lengths.
        target: The target, as text.
        trained_share: The trained length as a share of the target, in [0, 1].
        trained: The trained length, as text.
        is_short: Whether the page explains the lengths elsewhere.
        aim: Why this is the target, as the end of a sentence.
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
    """Figures side by side where there is room, and sentences about those that could not be drawn."""

    figures: Sequence[Figure | Part]


@dataclass(frozen=True)
class Command:
    """A command line.

    Attributes:
        about: What it does.
        line: The line to paste into a shell.
        is_risky: Whether it lets the checkpoint run code.
    """

    about: str
    line: str
    is_risky: bool = False


@dataclass(frozen=True)
class Commands:
    """Command lines to copy."""

    commands: Sequence[Command]


@dataclass(frozen=True)
class Hidden:
    """Blocks that are folded until a reader opens them."""

    summary: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Download:
    """A file inside the page.

    Attributes:
        name: File name.
        media: Media type.
        base64: The content in base64.
        size: Number of bytes, as text.
    """

    name: str
    media: str
    base64: str
    size: str


@dataclass(frozen=True)
class Downloads:
    """Files inside the page."""

    files: Sequence[Download]


@dataclass(frozen=True)
class Section:
    """A part of a page under a heading.

    Attributes:
        title: The heading.
        id: The id that links lead to, without the prefix that the page gives to all ids of a run.
        blocks: The contents; sections among them are one level deeper.
        badge: A short word after the heading.
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
        subtitle: The line below the heading.
        contents: Each section with the prefix of its ids.
    """

    title: str
    subtitle: str
    contents: Sequence[tuple[str, Section]]


Block = Part | Points | Bars | Figures | Commands | Hidden | Downloads | Section
