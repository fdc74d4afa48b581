"""The records themselves, inside of the page."""

from __future__ import annotations

import base64

from markupsafe import Markup

from ropectl.report.blocks import Download, Downloads, Section
from ropectl.report.document import Sentence
from ropectl.report.runs_read import Run
from ropectl.report.values import values_of
from ropectl.report.writers.csv import values_csv


def downloads_section(run: Run) -> Section:
    """Returns the files of a run as links that hold them."""
    files = [_file(name, _media(name), content) for name, content in run.files]
    if any(values_of(run.record)):
        files.append(_file("numbers.csv", "text/csv", values_csv(run.record).encode("utf-8", "backslashreplace")))
    return Section(
        "Records",
        "records",
        [Sentence("Everything on this page is made from these files, which it holds."), Downloads(files)],
    )


def _media(name: str) -> str:
    return "application/json" if name.endswith(".json") else "text/plain"


def _file(name: str, media: str, content: bytes) -> Download:
    size = f"{len(content) / 1024:,.0f} KiB" if len(content) >= 1024 else f"{len(content)} bytes"
    return Download(name, media, Markup(base64.b64encode(content).decode()), size)
