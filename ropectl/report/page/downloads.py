"""The records themselves, inside of the page."""

from __future__ import annotations

import base64
import csv
import io
from collections.abc import Iterator, Mapping
from typing import Any

from markupsafe import Markup

from ropectl.report.page.blocks import Download, Downloads, Section, Words
from ropectl.report.runs_read import Run

_COLUMNS = ("model", "method", "training", "measure", "length", "depth", "value", "ci_low", "ci_high", "count")

#: A spreadsheet would run what begins with one of these.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def downloads_section(run: Run) -> Section:
    """Returns the files of a run as links that hold them."""
    files = [_file(name, _media(name), content) for name, content in run.files]
    rows = list(_rows(run.kind, run.record))
    if rows:
        files.append(_file("numbers.csv", "text/csv", _csv(rows)))
    return Section(
        "Records",
        "records",
        [Words("Everything on this page is made from these files, which it holds."), Downloads(files)],
    )


def _media(name: str) -> str:
    return "application/json" if name.endswith(".json") else "text/plain"


def _file(name: str, media: str, content: bytes) -> Download:
    size = f"{len(content) / 1024:,.0f} KiB" if len(content) >= 1024 else f"{len(content)} bytes"
    return Download(name, media, Markup(base64.b64encode(content).decode()), size)


def _csv(rows: list[list[Any]]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    writer.writerows([_safe(value) for value in row] for row in rows)
    return text.getvalue().encode("utf-8", "backslashreplace")


def _safe(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def _rows(kind: str, record: Mapping[str, Any]) -> Iterator[list[Any]]:
    if kind == "comparison":
        for row in record["rows"]:
            head = [row["model"], row["method"], (row["training"] or {}).get("id", "")]
            yield from _points(head, "perplexity", row["perplexity"])
            yield from _points(head, "perplexity_tail", row["tail"])
            yield from _passkeys(head, row["passkey"])
            for sense, length in row["reach"].items():
                yield [*head, f"reach_{sense}", "", "", length, "", "", ""]
    elif kind == "perplexity":
        yield from _points(
            [record["model"], record["method"], ""], f"perplexity_{record['protocol']}", record["points"]
        )
    elif kind == "passkey":
        yield from _passkeys([record["model"], record["method"], ""], record["lengths"])
    elif kind == "tasks":
        for task in record["tasks"]:
            for entry in task["lengths"]:
                bounds = [entry["score"], entry["ci_low"], entry["ci_high"], entry["trials"]]
                yield [record["model"], record["method"], "", task["task"], entry["length"], "", *bounds]


def _points(head: list[Any], name: str, points: list[Mapping[str, Any]]) -> Iterator[list[Any]]:
    for point in points:
        bounds = [point["perplexity"], point["ci_low"], point["ci_high"], point["num_tokens"]]
        yield [*head, name, point["context_length"], "", *bounds]


def _passkeys(head: list[Any], entries: list[Mapping[str, Any]]) -> Iterator[list[Any]]:
    for entry in entries:
        for cell in (entry, *entry["depths"]):
            bounds = [cell["accuracy"], cell["ci_low"], cell["ci_high"], cell["trials"]]
            yield [*head, "passkey_accuracy", cell["length"], cell.get("depth", ""), *bounds]
