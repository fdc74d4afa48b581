"""From blocks to one HTML file, under a policy that lets it load and run nothing but its own parts."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from ropectl.printable import printable
from ropectl.report.blocks import Page
from ropectl.report.document import BAD, GOOD

_ASSETS = Path(__file__).parent / "assets"

#: The mark of a page, whatever version made it.
MARKER = '<meta name="generator" content="ropectl '

#: Longer text from a record is cut; the whole record can be downloaded from the page.
MAX_TEXT = 8000

#: Facts get a line each if one of them is longer than this [characters].
_LONG_FACT = 48


def html_text(page: Page) -> str:
    """Returns the HTML file of a page; the same for the same page."""
    style, script = (_asset(name) for name in ("page.css", "page.js"))
    template = _environment().get_template("page.html.j2")
    return template.render(
        page=page,
        style=Markup(style),
        script=Markup(script),
        style_hash=_hash(style),
        script_hash=_hash(script),
        generator=f"ropectl {version('ropectl')}",
    ).lstrip()


def is_page(path: Path) -> bool:
    """Returns whether a file is a page that ropectl made."""
    try:
        with path.open("rb") as file:
            return MARKER.encode() in file.read(4096)
    except OSError:
        return False


def shown(value: Any) -> Any:
    """Returns a value as the page shows it, before it is escaped: no control or direction characters, and not too long.

    The package's own markup stays as it is.
    """
    if value is None:
        return ""
    if isinstance(value, Markup):
        return value
    text = str(value)
    if len(text) > MAX_TEXT:
        text = f"{text[:MAX_TEXT]} [\u2026 {len(text) - MAX_TEXT} more characters]"
    return printable(text, keep="\n\t")


@cache
def _asset(name: str) -> str:
    return (_ASSETS / name).read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_ASSETS),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "kind": lambda block: type(block).__name__,
        "without_drawings": lambda table: table.without(lambda column: column.is_drawing),  # the page has figures
        "is_long": lambda table: any(len(row.cells[0].text) > _LONG_FACT for row in table.rows),
        "css": lambda tone: {GOOD: "better", BAD: "worse"}.get(tone, tone),
    }
    return environment


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"sha256-{digest}"
