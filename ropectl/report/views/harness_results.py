"""The view of ``harness --run``: results of lm-evaluation-harness."""

from __future__ import annotations

from collections.abc import Iterator

from ropectl.records import HarnessRecord
from ropectl.report.document import Cell, Column, Part, Row, Table, View, columns
from ropectl.report.tables.words import NOT_AVAILABLE


def harness_parts(record: HarnessRecord) -> list[Part]:
    """Returns a table with one line for each task and metric."""
    rows = []
    for task, metric, value, error, count in measured_metrics(record):
        numbers = [
            Cell(f"{value:.4f}", value=value),
            Cell(NOT_AVAILABLE if error is None else f"{error:.4f}"),
            Cell(NOT_AVAILABLE if count is None else str(count)),
        ]
        rows.append(Row(task, [Cell(metric), *numbers]))
    heads = [Column("metric", is_text=True), *columns(["value", "stderr", "examples"])]
    about = "By EleutherAI's lm-evaluation-harness."
    return [Table("lm-evaluation-harness", "task", heads, rows, name="Ordinary tasks", about=about)]


def measured_metrics(record: HarnessRecord) -> Iterator[tuple[str, str, float, float | None, int | None]]:
    """Yields task, metric, value, standard error and number of examples; None for what is not known."""
    for task, values in record.results.items():
        count = (record.n_samples or {}).get(task, {}).get("effective")
        for key, value in values.items():
            metric, _, filtered = key.partition(",")
            if metric.endswith("_stderr") or metric == "sample_len" or type(value) not in (int, float):
                continue
            error = values.get(f"{metric}_stderr,{filtered}")
            yield task, metric, value, error if isinstance(error, int | float) else None, count


VIEW = View(harness_parts, "Ordinary tasks on {model}", has_values=True)
