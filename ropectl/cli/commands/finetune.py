"""``ropectl finetune``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from ropectl.cli import options

if TYPE_CHECKING:
    from ropectl.train.settings import FinetuneSettings


def finetune(settings: FinetuneSettings, format: options.OutputFormat = options.Format.human) -> None:
    """Train a model with a scaling in force, and write it as a checkpoint that stock runtimes load.

    The same command continues an interrupted training. On several devices: accelerate launch -m ropectl finetune ...

    Example: ropectl finetune ./my-model -m yarn --factor 4 --text 'books/*.txt' --steps 400 -o tuned

    Example: ropectl finetune ./my-model -m yarn --factor 4 --text 'books/*.txt' --positions pose --dry-run

    Example: ropectl finetune -m yarn --factor 4 --config configs/finetune/builtin-lora.yaml -o tuned-lora
    """
    from ropectl.cli import next_steps, output
    from ropectl.cli.progress import BarReporter
    from ropectl.records import FinetuneRecord
    from ropectl.report.views.estimates import estimate_parts
    from ropectl.report.views.finetune import finetune_parts
    from ropectl.report.views.patch_checkpoint import step_lines
    from ropectl.train.finetuning import finetune as run

    output.quiet_libraries()
    hints = [] if format is options.Format.json else next_steps.before_training(settings)
    with BarReporter() as reporter:
        finished = run(settings, reporter, hints)
    record = finished.record
    if record is not None and output.is_main_process():
        if settings.dry_run:
            output.print_report(record, format, estimate_parts)
            next_steps.show(next_steps.after_dry_run(settings.out is None), format)
        else:
            output.print_report(record, format, finetune_parts, step_lines, FinetuneRecord)
            next_steps.show(next_steps.after_training(settings, record), format)
    if finished.signal:
        raise typer.Exit(output.EXIT_OF_SIGNAL + finished.signal)
