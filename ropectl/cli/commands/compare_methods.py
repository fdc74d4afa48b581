"""``ropectl compare-methods``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ropectl.cli import options

if TYPE_CHECKING:
    from ropectl.compare.run import Comparison
    from ropectl.evaluate.config import CompareConfig


def compare_methods(
    settings: CompareConfig,
    out: options.Out = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Measure again what ended in an error.", rich_help_panel=options.RUN)
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Only say what it takes: cells, tokens, time, memory.", rich_help_panel=options.RUN
        ),
    ] = False,
    budget: options.Budget = None,
    format: options.TableFormat = "human",
) -> None:
    """Compare scaling methods side by side: perplexity and passkey retrieval by length, and how far each reaches.

    Without a model it runs on the built-in one, without methods with all of them at a factor of 4. The same command
    continues an interrupted run, or one whose --budget was spent. With --finetune, each method is also trained, from the same weights on the same tokens in
    the same number of steps, and measured again.

    Example: ropectl compare-methods --factor 4 --dry-run

    Example: ropectl compare-methods ./my-model -m pi -m yarn --factor 4 --text 'books/*.txt'

    Example: ropectl compare-methods ./my-model --factor 4 --text 'books/*.txt' --budget 10m

    Example: ropectl compare-methods ./base ./base-yarn ./base-tuned --factor 2 --factor 4
    """
    from ropectl.cli import output

    output.quiet_libraries()
    from ropectl.cli.progress import BarReporter
    from ropectl.compare.run import compare_methods as run

    if dry_run:
        _print_estimate(settings, out, retry_failed, budget, format)
        return
    with BarReporter() as reporter:
        comparison = run(settings, out, reporter, retry_failed, budget)
    if output.is_main_process():
        _print_comparison(comparison, format, settings)


def _print_estimate(
    settings: CompareConfig, out: Path | None, retry_failed: bool, budget: float | None, form: str
) -> None:
    from ropectl.cli import next_steps, output
    from ropectl.cli.progress import BarReporter
    from ropectl.compare.dry_run import estimate_comparison
    from ropectl.report.views.estimates import COMPARISON
    from ropectl.report.writers.formats import check_format

    check_format(form, COMPARISON, "--dry-run")
    with BarReporter() as reporter:
        estimate = estimate_comparison(settings, out, reporter, retry_failed, budget)
    output.show(estimate, form, COMPARISON, estimate)
    next_steps.show(next_steps.after_dry_run(), form)


def _print_comparison(comparison: Comparison, form: str, settings: CompareConfig) -> None:
    from ropectl.cli import next_steps, output
    from ropectl.compare.verdict import unmet_gates

    output.show(comparison.record, form)
    output.note(f"Records: {comparison.folder}")
    next_steps.show(next_steps.after_comparison(comparison.record, comparison.folder, settings), form)
    if comparison.num_failed:
        output.warn(
            f"{comparison.num_failed} cells failed. To measure them again: the same command with --retry-failed"
        )
    if comparison.num_untrained:
        output.warn(f"{comparison.num_untrained} trainings failed; the same command tries them again.")
    if comparison.num_failed or comparison.num_untrained:
        raise typer.Exit(1)
    if not comparison.is_unfinished and (messages := unmet_gates(comparison.record)):
        output.gate_failed(messages)
