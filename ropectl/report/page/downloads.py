"""The records themselves, inside the page."""

from __future__ import annotations

import base64

from markupsafe import Markup

from ropectl.report.blocks import Download, Downloads, Section
from ropectl.report.document import Sentence
from ropectl.report.runs_read import Run
from ropectl.report.writers.csv import values_csv, values_of


def downloads_section(run: Run) -> Section:
    """Returns the files of a run as links that hold them."""
    contents = list(run.files)
    if any(values_of(run.record)):
        contents.append(("numbers.csv", values_csv(run.record).encode("utf-8", "backslashreplace")))
    files = [_file(name, content) for name, content in contents]
    text = "Everything on this page is made from these files, which it holds."
    return Section("Records", "records", [Sentence(text), Downloads(files)])


def _file(name: str, content: bytes) -> Download:
    media = {"json": "application/json", "csv": "text/csv"}.get(name.rpartition(".")[2], "text/plain")
    size = f"{len(content) / 1024:,.0f} KiB" if len(content) >= 1024 else f"{len(content)} bytes"
    return Download(name, media, Markup(base64.b64encode(content).decode()), size)
