"""Comma-separated values, one measured number a row, unrounded: ``pandas.read_csv`` takes it as it is."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import astuple, fields

from ropectl.printable import printable
from ropectl.records.reading import AnyRecord
from ropectl.report.measured_values import MeasuredValue, values_of
from ropectl.report.record_views import ShownRecord, view_of

#: The columns, and the one before them where there are several runs.
COLUMNS = tuple(field.name for field in fields(MeasuredValue))
RUN = "run"

#: A spreadsheet would run text that begins with one of these.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def csv_text(shown: Sequence[ShownRecord]) -> str:
    """Returns the measured values of records: a header line, then a line each; numbers keep all digits.

    Those of several runs are one table, whose first column is the run.
    """
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    several = any(each.run for each in shown)
    writer.writerow([*([RUN] if several else []), *COLUMNS])
    for each in shown:
        run = [_text(each.run)] if several else []
        writer.writerows([*run, *map(_text, astuple(value))] for value in values_of(each.record))
    return file.getvalue()


def values_csv(record: AnyRecord) -> str:
    """Returns the measured values of one record."""
    return csv_text([ShownRecord(view_of(record), record)])


def _text(value: str | float | None) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return printable(f"'{value}" if value.startswith(_FORMULA) else value)
    return repr(value)
