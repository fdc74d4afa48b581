"""Comma-separated values, one measured number a row: ``pandas.read_csv`` takes it as it is."""

from __future__ import annotations

import csv
import io
from dataclasses import astuple, fields

from ropectl.printable import printable
from ropectl.records.reading import AnyRecord
from ropectl.report.document import View
from ropectl.report.values import MeasuredValue, values_of

#: The columns.
COLUMNS = tuple(field.name for field in fields(MeasuredValue))

#: A spreadsheet would run a text that begins with one of these.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def csv_text(view: View, record: AnyRecord) -> str:
    """Returns what :func:`values_csv` does: a table of values needs no view."""
    return values_csv(record)


def values_csv(record: AnyRecord) -> str:
    """Returns the measured values of a record: a header line, then a line each; numbers keep all digits."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows([_text(entry) for entry in astuple(value)] for value in values_of(record))
    return file.getvalue()


def _text(value: str | float | None) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return printable(f"'{value}" if value.startswith(_FORMULA) else value)
    return repr(value)
