"""``ropectl eval-tasks``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ropectl.cli import completion, options
from ropectl.errors import ConfigError

if TYPE_CHECKING:
    from ropectl.evaluate.tasks_config import TasksConfig


def eval_tasks(
    settings: TasksConfig,
    out: options.OutFile = None,
    overwrite: options.Overwrite = False,
    list_tasks: Annotated[
        bool, typer.Option("--list", help="List the tasks and stop.", rich_help_panel=options.RUN)
    ] = False,
    show_prompt: Annotated[
        str | None,
        typer.Option(
            metavar="SPEC",
            help="Print one prompt of a task, shortened, and stop.",
            rich_help_panel=options.RUN,
            autocompletion=completion.tasks,
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Count prompts and tokens and stop.", rich_help_panel=options.RUN)
    ] = False,
    format: options.TableFormat = "human",
) -> None:
    """Measure retrieval tasks by length: needles, keys, values, chains of assignments, counting, lookup.

    Shapes and scoring are RULER's, prompts are ropectl's own. Small base models fail several of them at any length:
    compare with the score at the trained length.

    Example: ropectl eval-tasks ./my-model -m yarn --factor 4 --task needle --task multi-key --length 2k..16k

    Example: ropectl eval-tasks --list

    Example: ropectl eval-tasks ./my-model --task multi-key:distractors=7 --chat --dry-run
    """
    from ropectl.cli import next_steps, output

    printed = _what_is_printed({"--list": list_tasks, "--show-prompt": show_prompt is not None, "--dry-run": dry_run})
    if list_tasks:
        _check_nothing_else(settings)
        _print_list(format)
        return
    output.quiet_libraries()
    if printed:
        _check_unused(out, settings.min_score, printed)
        _print_preview(settings, show_prompt, format)
        return
    output.check_one_process("eval-tasks")
    output.check_new(out, overwrite, settings)
    from ropectl.cli.progress import BarReporter
    from ropectl.evaluate.retrieval.task_evaluation import evaluate_tasks, failed_gate

    with BarReporter() as reporter:
        record = evaluate_tasks(settings, reporter)
    output.present(record, format, out)
    next_steps.show(next_steps.after_measurement(settings, out), format)
    if messages := failed_gate(record, settings.min_score):
        output.gate_failed(messages)


def _check_unused(out: Path | None, limit: float | None, option: str) -> None:
    """Refuses a place for results, and a limit for them, of what measures nothing."""
    if limit is not None:
        raise ConfigError(
            f"--min-score {limit:g} would judge nothing: {option} measures nothing.", "Leave out one of the two."
        )
    if out is not None:
        raise ConfigError(
            f"--out {out} would stay empty: {option} measures nothing.",
            "Leave out one of the two. To keep what is printed: --format json > FILE",
        )


def _what_is_printed(asked: Mapping[str, bool]) -> str:
    """Returns the option that prints something instead of a measurement; empty where there is none."""
    given = [option for option, is_given in asked.items() if is_given]
    if len(given) > 1:
        raise ConfigError(f"{' and '.join(given)} each print something and stop.", "Give one of them.")
    return given[0] if given else ""


def _check_nothing_else(settings: TasksConfig) -> None:
    """Refuses settings beside ``--list``, which lists the tasks whatever they are."""
    if idle := sorted(settings.model_fields_set):
        raise ConfigError(
            f"--list only lists the tasks; {', '.join(idle)} would change nothing.", "Leave out one of the two."
        )


def _print_list(form: str) -> None:
    from ropectl.cli import output
    from ropectl.report.views.task_previews import LIST
    from ropectl.report.writers.formats import check_format
    from ropectl.tasks.registry import all_tasks, describe_task

    check_format(form, LIST, "--list")
    kinds = list(all_tasks().values())
    output.show([describe_task(kind) for kind in kinds], form, LIST, kinds)


def _print_preview(settings: TasksConfig, task: str | None, form: str) -> None:
    from ropectl.cli import next_steps, output
    from ropectl.evaluate.retrieval.task_evaluation import example_prompt, plan_tasks
    from ropectl.report.format_names import HUMAN, JSON
    from ropectl.report.views.task_previews import PLAN, prompt_lines
    from ropectl.report.writers.formats import check_format

    if task is None:
        check_format(form, PLAN, "--dry-run")
        record = plan_tasks(settings)
        if form == HUMAN:
            for text in record["notes"]:
                output.note(text)
        output.show(record, form, PLAN, record)
        next_steps.show(next_steps.after_dry_run(), form)
        return
    if form not in (HUMAN, JSON):
        raise ConfigError(
            f"--format {form} is for tables, and --show-prompt prints a prompt: possible are human, json."
        )
    example = example_prompt(settings, task)
    if form == JSON:
        output.print_json(example)
    else:
        output.print_lines(prompt_lines(example))
