"""From blocks to one HTML file, under a policy that lets it load and run nothing but what it was made with."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from ropectl.report.page.blocks import Section
from ropectl.report.page.text import finalize

_ASSETS = Path(__file__).parent / "assets"

#: How a page is told from other files, whatever version made it.
MARKER = '<meta name="generator" content="ropectl '


@dataclass(frozen=True)
class Page:
    """What is shown.

    Attributes:
        title: The page's heading.
        subtitle: Below it.
        contents: Prefix of the ids of each section, and the section.
    """

    title: str
    subtitle: str
    contents: Sequence[tuple[str, Section]]


def render(page: Page) -> str:
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
    """Whether a file is a page that ropectl made."""
    try:
        with path.open("rb") as file:
            return MARKER.encode() in file.read(4096)
    except OSError:
        return False


@cache
def _asset(name: str) -> str:
    return (_ASSETS / name).read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(_ASSETS),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"sha256-{digest}"
