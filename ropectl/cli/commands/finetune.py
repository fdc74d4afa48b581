"""``ropectl finetune``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from ropectl.cli import options

if TYPE_CHECKING:
    from ropectl.train.settings import FinetuneSettings

EXIT_OF_SIGNAL = 128


def finetune(settings: FinetuneSettings, format: options.OutputFormat = options.Format.human) -> None:
    """Train a model with a scaling in force, and write it as a checkpoint that stock runtimes load.

    The same command goes on after an interruption. On several devices: accelerate launch -m ropectl finetune ...

    Example: ropectl finetune ./my-model -m yarn --factor 4 --text 'books/*.txt' --steps 400 -o tuned

    Example: ropectl finetune ./my-model -m yarn --factor 4 --text 'books/*.txt' --positions pose --dry-run

    Example: ropectl finetune -m yarn --factor 4 --config configs/finetune/builtin-lora.yaml -o tuned-lora
    """
    from ropectl.cli import output
    from ropectl.cli.progress import BarReporter
    from ropectl.records import FinetuneRecord
    from ropectl.records.reading import read_as
    from ropectl.report.views.estimates import estimate_parts
    from ropectl.report.views.finetune import finetune_parts
    from ropectl.report.views.patch_checkpoint import step_lines
    from ropectl.train.finetuning import finetune as run

    output.quiet_libraries()
    with BarReporter() as reporter:
        finished = run(settings, reporter)
    record = finished.record
    if record is not None and output.is_main_process():
        if format is options.Format.json:
            output.print_json(record)
        elif settings.dry_run:
            output.print_parts(estimate_parts(record))
        else:
            tuned = read_as(FinetuneRecord, record, "The result", "finetune")
            output.print_parts(finetune_parts(tuned))
            output.print_lines(step_lines(tuned))
    if finished.signal:
        raise typer.Exit(EXIT_OF_SIGNAL + finished.signal)
