"""``ropectl inspect``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ropectl.cli import options
from ropectl.option import Panel

if TYPE_CHECKING:
    from ropectl.advise.requests import InspectSettings


def inspect(
    settings: InspectSettings,
    self_test: Annotated[
        bool,
        typer.Option(
            "--self-test",
            help="Check the model's own rotary code with numbers (no weights); exit code 1 if it fails.",
            rich_help_panel=Panel.shown.value,
        ),
    ] = False,
    plot: options.Plot = None,
    format: options.OutputFormat = options.Format.human,
) -> None:
    """Show what the rotary embedding of a model, or of plain numbers, computes. No weights are loaded.

    Example: ropectl inspect ./my-model -m ntk --target-length 16k

    Example: ropectl inspect --geometry rotary_dim=128,rope_theta=10000,original_max_position_embeddings=4096 -m yarn --factor 8

    Example: ropectl inspect ./my-model -m pi -m ntk -m yarn --factor 4 --plot frequencies.svg
    """
    from ropectl.advise.api import check_rotary_code, frozen_methods, inspect_model, seq_len_notes
    from ropectl.cli import next_steps, output
    from ropectl.records import InspectionRecord
    from ropectl.records.reading import read_as
    from ropectl.report.figures.output import check_figure
    from ropectl.report.views.inspect import inspection_parts

    output.quiet_libraries()
    if plot is not None:
        check_figure(plot)
    for text in seq_len_notes(settings):
        output.note(text)
    if self_test:
        record = check_rotary_code(settings)
        _print_self_test(record, plot, format)
        checked = (check["method"] for check in record["checks"])
        next_steps.show(next_steps.after_inspection(settings, checked, record["geometry"]), format)
        return
    records = inspect_model(settings, every=plot is not None)
    if plot is not None:
        from ropectl.report.figures.frequencies import plot_frequencies

        plot_frequencies(plot, *frozen_methods(settings))
    if format is options.Format.json:
        output.print_json(records[0] if len(records) == 1 else records)
        return
    for number, record in enumerate(records):
        if number:
            print()
        output.print_parts(inspection_parts(read_as(InspectionRecord, record, "The result", "inspect")))
    shown = (record["method"] for record in records)
    next_steps.show(next_steps.after_inspection(settings, shown, records[0]["geometry"]), format)


def _print_self_test(record: dict[str, Any], plot: Path | None, form: options.Format) -> None:
    from ropectl.cli import output
    from ropectl.report.views.self_test import self_test_parts

    if plot is not None:
        from ropectl.report.figures.decay import plot_decay

        plot_decay(plot, record)
    output.print_report(record, form, self_test_parts)
    if not record["passed"]:
        raise typer.Exit(1)
