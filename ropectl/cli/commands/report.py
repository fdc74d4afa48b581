"""``ropectl report``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ropectl.cli import options

if TYPE_CHECKING:
    from ropectl.records import Unfinished
    from ropectl.report.page.write import Written
    from ropectl.report.runs_read import Run


def report(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN",
            help="Run folder of compare-methods or finetune, tuned checkpoint, or JSON file that a command wrote; several are "
            "shown side by side.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="The file (default: the page is report.html in a run folder, else beside the first RUN; the rest is printed).",
            rich_help_panel=options.RUN,
            show_default=False,
        ),
    ] = None,
    figures: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Write all figures there too, as SVG, PDF and PNG.", rich_help_panel=options.RUN
        ),
    ] = None,
    overwrite: Annotated[
        bool,
        typer.Option(
            "--overwrite", help="Replace a file that is not one of ropectl's reports.", rich_help_panel=options.RUN
        ),
    ] = False,
    format: options.ReportFormat = "human",
) -> None:
    """Show results as one HTML file: verdict, tables, figures, methods, protocol, commands, and the records themselves.

    It needs no model and loads nothing from elsewhere. A comparison that was interrupted is shown as far as it has come.
    With --format latex, markdown or csv it prints the same tables, whole and ready to be used.

    Example: ropectl report ropectl-runs/compare-tiny-1a2b3c4d

    Example: ropectl report first-run second-run -o both.html --figures figures

    Example: ropectl report ropectl-runs/compare-tiny-1a2b3c4d --format latex -o tables.tex --figures figures
    """
    from ropectl.cli import output
    from ropectl.report.format_names import HTML, JSON, TEXTS
    from ropectl.report.page.write import write_report

    output.check_one_process("report")
    written = write_report(runs, out, figures, overwrite, format if format in TEXTS else HTML)
    if format == JSON:
        output.print_json(_record(written))
        return
    for run in written.runs:
        if left := _unfinished(run):
            output.warn(
                f"{run.name} is unfinished: {left.missing} of {left.cells} cells are missing. The command "
                "that began it continues it."
            )
    drawn = [f"{len(written.figures)} figure files in {figures}"] if written.figures else []
    if written.path is None:
        output.write(written.content)
        for line in drawn:
            output.note(f"{line}.")
    else:
        output.print_lines([f"{written.path} ({written.num_bytes / 1024:,.0f} KiB)", *drawn])


def _record(written: Written) -> dict[str, Any]:
    from ropectl.records import to_json

    runs = []
    for run in written.runs:
        left = _unfinished(run)
        about = {"place": str(run.place), "kind": run.record.kind, "name": run.name}
        runs.append({**about, "unfinished": None if left is None else to_json(left)})
    return {
        "output": str(written.path),
        "bytes": written.num_bytes,
        "runs": runs,
        "figures": [str(path) for path in written.figures],
    }


def _unfinished(run: Run) -> Unfinished | None:
    """How much is missing of a comparison that did not come to its end."""
    left: Unfinished | None = getattr(run.record, "unfinished", None)
    return left
