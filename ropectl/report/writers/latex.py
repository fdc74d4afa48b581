"""Tables for LaTeX: floats with caption, label and notes, in the style of the package ``booktabs``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ropectl.report.document import BestNote, Part, Sentence, SmallTables, Table
from ropectl.report.record_views import ShownRecord
from ropectl.report.writers.notes import explains
from ropectl.report.writers.tabular import STACK, STACK_DEFINITION, bodies, fits_beside, needs_page, small_bodies
from ropectl.report.writers.tex_text import DEFINITION, OTHERS, listed_text, sentence_text

#: How a file begins.
HEAD = "% Tables made by ropectl."

_NEEDS = (
    r"% They need \usepackage{booktabs} and \usepackage{graphicx}; for names that are not ASCII \usepackage[T1]{fontenc}.",
    "% What is wider than a column spans both of two (table*), and is made smaller where it is wider than the line.",
)


@dataclass
class _Float:
    """A table, and the notes that are printed under it."""

    part: Table | SmallTables
    notes: list[str] = field(default_factory=list)


def latex_text(shown: Sequence[ShownRecord]) -> str:
    """Returns a float for each table of records, with the sentences under the tables that they are about."""
    labels: Counter[str] = Counter()
    blocks = []
    for number, each in enumerate(shown):
        if number:
            blocks.append("\\clearpage")  # LaTeX holds only so many floats back
        if each.run:
            blocks.append(f"\\subsection*{{{sentence_text(each.run)}}}")
        floats, others = _floats(list(_fitting(each.parts())))
        blocks += [text for one in floats for text in _float_texts(one, each, labels)]
        blocks += [f"\\noindent {sentence_text(sentence)}\\par" for sentence in others]
    body = "\n\n".join(blocks)
    definitions = [text for name, text in ((STACK, STACK_DEFINITION), (OTHERS, DEFINITION)) if name in body]
    return "\n".join([HEAD, *_NEEDS, *definitions, "", body]) + "\n"


def _fitting(parts: Sequence[Part]) -> Iterator[Part]:
    """Yields the parts, with small tables that are too wide to stand side by side one after the other."""
    for part in parts:
        yield from part.separate() if isinstance(part, SmallTables) and not fits_beside(part) else [part]


def _floats(parts: Sequence[Part]) -> tuple[list[_Float], list[str]]:
    """Returns the tables with their notes, and sentences where there is no table.

    A note that explains marks is under every table that has them; what is about the whole is under the table before it.
    """
    floats = [_Float(part) for part in parts if isinstance(part, Table | SmallTables)]
    number, others = 0, []
    for part in parts:
        if isinstance(part, Table | SmallTables):
            number += 1
            continue
        if isinstance(part, Sentence) and part.explains_drawing:
            continue
        text = f"Bold: {part.of_several()}" if isinstance(part, BestNote) else part.text
        explained = [each for each in floats if explains(part, each.part)]
        for each in explained or floats[max(number - 1, 0) :][:1]:
            each.notes.append(text)
        others += [] if floats else [text]
    return floats, others


def _float_texts(one: _Float, shown: ShownRecord, labels: Counter[str]) -> Iterator[str]:
    """Yields the floats of a table: several, where it is longer than a page."""
    part = one.part
    name = part.title if isinstance(part, SmallTables) else part.name or part.title
    pages = small_bodies(part) if isinstance(part, SmallTables) else bodies(part)
    environment = "table*" if needs_page(part) else "table"
    for number, body in enumerate(pages):
        title = f"{name}, continued" if number else name
        yield "\n".join(
            [
                f"\\begin{{{environment}}}",
                "\\centering",
                "\\small",
                *_caption(title, "" if isinstance(part, SmallTables) else part.about, shown),
                f"\\label{{{_label(name, labels)}}}\\smallskip",
                *body,
                *(_notes(one.notes) if number == len(pages) - 1 else []),
                f"\\end{{{environment}}}",
            ]
        )


def _caption(title: str, about: str, shown: ShownRecord) -> list[str]:
    """Returns the caption, whose first part alone is for a list of tables."""
    run = f"Run {shown.run}" if shown.run else ""
    whole = " ".join(_ended(text) for text in (title, run, shown.about, about) if text)
    return [f"\\caption[{listed_text(title)}]{{{sentence_text(whole)}}}"]


def _label(name: str, labels: Counter[str]) -> str:
    """Returns a label that no other table has; it depends on what the table is, not on its numbers."""
    words = re.split(r"[,:(\[]", name)[0].lower()
    stem = f"tab:ropectl-{re.sub('[^a-z]+', '-', words).strip('-') or 'table'}"
    labels[stem] += 1
    return stem if labels[stem] == 1 else f"{stem}-{labels[stem]}"


def _notes(notes: Sequence[str]) -> list[str]:
    if not notes:
        return []
    text = " ".join(sentence_text(_ended(note)) for note in notes)
    return ["\\par\\smallskip", f"\\parbox{{\\linewidth}}{{\\footnotesize {text}}}"]


def _ended(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."
