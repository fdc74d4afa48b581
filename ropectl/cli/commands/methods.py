"""``ropectl methods``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ropectl.cli import options
from ropectl.option import Panel

if TYPE_CHECKING:
    from ropectl.advise.requests import ChoiceSettings


def methods(
    settings: ChoiceSettings,
    is_choice: Annotated[
        bool,
        typer.Option(
            "--choose", help="Name the methods worth testing for a length.", rich_help_panel=Panel.choosing.value
        ),
    ] = False,
    format: options.OutputFormat = options.Format.human,
) -> None:
    """List the scaling methods, explain one in full, or choose those worth testing for a length.

    One method: what it does to fast and slow pairs, when it is worth using, what it costs, parameters with units and
    defaults, reference, and what each runtime computes. With --choose: a short list for a model and a length, by rule from
    its config alone, with reasons and the commands that test it.

    Example: ropectl methods yarn

    Example: ropectl methods --choose --target-length 32k ./my-model

    Example: ropectl methods --choose --target-length 32k --tuning light --runtime vllm ./my-model
    """
    from ropectl.cli import output
    from ropectl.errors import ConfigError

    if is_choice:
        from ropectl.advise.api import choose_methods
        from ropectl.report.views.choices import choice_lines, choice_parts

        output.print_report(choose_methods(settings), format, choice_parts, choice_lines)
        return
    given = settings.model_fields_set
    if ignored := [name for name in type(settings).model_fields if name in given and name != "model"]:
        raise ConfigError(f"--{ignored[0].replace('_', '-')} belongs to --choose.", "Add --choose, or leave it out.")
    _explain(settings.model if "model" in given else None, format is options.Format.json)


def _explain(name: str | None, as_json: bool) -> None:
    """Prints one method in full, or a list of all."""
    from ropectl.cli import next_steps, output
    from ropectl.errors import ConfigError
    from ropectl.report.views.methods import method_page, methods_list
    from ropectl.rope.registry import all_methods, find_method
    from ropectl.runtimes.matrix import describe_with_runtimes, reference_readings

    if name is None and not as_json:
        output.print_parts(methods_list(list(all_methods().values())))
        return
    bare, colon, _ = (name or "").partition(":")
    if colon and bare in all_methods():
        raise ConfigError(f"{name} sets parameters; what is explained is the method.", f"Type: ropectl methods {bare}")
    kinds = [find_method(name)] if name else list(all_methods().values())
    if as_json:
        output.print_json([describe_with_runtimes(kind) for kind in kinds])
    else:
        output.print_parts(method_page(kinds[0], reference_readings(kinds[0])))
        next_steps.show(next_steps.after_explanation(kinds[0]), "human")
