"""The view of ``harness --run``: results of lm-evaluation-harness."""

from __future__ import annotations

from ropectl.records import HarnessRecord
from ropectl.report.document import Cell, Column, Part, Row, Table, View, columns
from ropectl.report.tables.words import NOT_AVAILABLE


def harness_parts(record: HarnessRecord) -> list[Part]:
    """Returns a table with one line for each task and metric."""
    rows = []
    for task, values in record.results.items():
        counted = (record.n_samples or {}).get(task, {})
        for key, value in values.items():
            metric, _, filtered = key.partition(",")
            if metric.endswith("_stderr") or metric == "sample_len" or type(value) not in (int, float):
                continue
            error = values.get(f"{metric}_stderr,{filtered}")
            numbers = [
                Cell(f"{value:.4f}", value=value),
                Cell(f"{error:.4f}" if isinstance(error, int | float) else NOT_AVAILABLE),
                Cell(str(counted.get("effective", NOT_AVAILABLE))),
            ]
            rows.append(Row(task, [Cell(metric), *numbers]))
    heads = [Column("metric", is_text=True), *columns(["value", "stderr", "examples"])]
    return [Table("lm-evaluation-harness", "task", heads, rows)]


VIEW = View(harness_parts)
