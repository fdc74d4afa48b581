"""Comma-separated values, one measured number a row: ``pandas.read_csv`` takes it as it is."""

from __future__ import annotations

import csv
import io
from typing import Any

from ropectl.printable import printable
from ropectl.report.sheet import View
from ropectl.report.values import FIELDS


def csv_text(view: View, record: Any) -> str:
    """Returns the values of a record: a header line, then a line each; numbers keep all digits."""
    assert view.values is not None, "checked before the work began"
    file = io.StringIO()
    writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
    writer.writeheader()
    for value in view.values(record):
        writer.writerow({name: _text(entry) for name, entry in value.items()})
    return file.getvalue()


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if isinstance(value, float) else printable(str(value))
