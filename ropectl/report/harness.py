"""Results of lm-evaluation-harness as a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ropectl.report.layout import NOT_AVAILABLE
from ropectl.report.sheet import Cell, Column, Part, Row, Sheet, columns


def harness_parts(record: Mapping[str, Any]) -> list[Part]:
    """Returns the table of ``harness --run``: one line per task and metric."""
    rows = []
    for task, values in record["results"].items():
        counted = record.get("n-samples", {}).get(task, {}).get("effective", NOT_AVAILABLE)
        for key, value in values.items():
            metric, _, filtered = key.partition(",")
            if metric.endswith("_stderr") or metric == "sample_len" or not isinstance(value, int | float):
                continue
            error = values.get(f"{metric}_stderr,{filtered}")
            texts = [f"{value:.4f}", f"{error:.4f}" if isinstance(error, int | float) else NOT_AVAILABLE, str(counted)]
            rows.append(Row(task, [Cell(metric), *map(Cell, texts)]))
    heads = [Column("metric", is_text=True), *columns(["value", "stderr", "examples"])]
    return [Sheet("lm-evaluation-harness", "task", heads, rows)]
