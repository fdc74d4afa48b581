"""Results of lm-evaluation-harness as a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.table import Table

from ropectl.report.layout import table_of


def harness_parts(record: Mapping[str, Any]) -> list[Table]:
    """Returns the table of ``harness --run``: one line per task and metric."""
    table = table_of("lm-evaluation-harness", ["metric", "value", "stderr", "examples"], first="task")
    for task, values in record["results"].items():
        counted = record.get("n-samples", {}).get(task, {}).get("effective", "n/a")
        for key, value in values.items():
            metric, _, filtered = key.partition(",")
            if metric.endswith("_stderr") or metric == "sample_len" or not isinstance(value, int | float):
                continue
            error = values.get(f"{metric}_stderr,{filtered}")
            table.add_row(
                task, metric, f"{value:.4f}", f"{error:.4f}" if isinstance(error, int | float) else "n/a", str(counted)
            )
    return [table]
