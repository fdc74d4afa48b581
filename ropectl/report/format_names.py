"""The names of the formats of results, which the help of a command needs without what writes them."""

from __future__ import annotations

HUMAN, JSON, HTML = "human", "json", "html"

#: Those that hold tables as text; each has a writer in ``ropectl.report.writers.formats``.
TEXTS = ("csv", "markdown", "latex")

#: The values of ``--format`` for a command that prints tables of results, and for one that also makes a page of them.
NAMES = (HUMAN, JSON, *TEXTS)
REPORT_NAMES = (*NAMES, HTML)
