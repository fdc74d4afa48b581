"""``ropectl methods``."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ropectl.cli import completion, options
from ropectl.rope.tuning import Tuning

_CHOICE = "Choosing (with --choose)"


def methods(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="A method, to be explained in full; with --choose the model: folder, hub id, .gguf file or builtin:tiny.",
            show_default=False,
            autocompletion=completion.methods_or_models,
        ),
    ] = None,
    is_choice: Annotated[
        bool,
        typer.Option("--choose", help="Name the methods worth testing for a length.", rich_help_panel=_CHOICE),
    ] = False,
    target_length: Annotated[
        str | None, typer.Option(metavar="N", help="Wanted context, such as 32k.", rich_help_panel=_CHOICE)
    ] = None,
    tuning: Annotated[
        Tuning,
        typer.Option(
            help="Training there will be: none, light (some hundred steps) or full (as long as it takes).",
            rich_help_panel=_CHOICE,
        ),
    ] = Tuning.none,
    runtime: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Only methods that the newest known version of transformers, vllm, sglang or llama.cpp computes as meant.",
            rich_help_panel=_CHOICE,
            autocompletion=completion.runtimes,
        ),
    ] = None,
    geometry: Annotated[
        str | None,
        typer.Option(
            metavar="KEY=VALUE,...", help="Numbers instead of a model, as in inspect.", rich_help_panel=_CHOICE
        ),
    ] = None,
    layers: options.Layers = None,
    revision: options.Revision = None,
    original_length: options.OriginalLength = None,
    trust_remote_code: options.TrustRemoteCode = None,
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
    given = locals()  # the options are the settings, under the same names
    from ropectl.cli import output

    as_json = format is options.Format.json
    if is_choice:
        record = _choice({**given, "model": name})
        if as_json:
            output.print_json(record)
            return
        from ropectl.report.choice import choice_lines, choice_parts

        output.print_parts(choice_parts(record))
        output.print_lines(choice_lines(record))
        return
    _check_unused(given)
    _explain(name, as_json)


def _explain(name: str | None, as_json: bool) -> None:
    """One method in full, or a list of all."""
    from ropectl.cli import output
    from ropectl.errors import ConfigError
    from ropectl.report.methods import method_page, methods_list
    from ropectl.rope.catalog import describe_method
    from ropectl.rope.registry import all_methods, find_method
    from ropectl.runtimes.reference import reference_readings

    if name is None and not as_json:
        output.print_parts(methods_list([describe_method(kind) for kind in all_methods().values()]))
        return
    bare, colon, _ = (name or "").partition(":")
    if colon and bare in all_methods():
        raise ConfigError(f"{name} sets parameters; what is explained is the method.", f"Type: ropectl methods {bare}")
    kinds = [find_method(name)] if name else list(all_methods().values())
    entries = [{**describe_method(kind), "readings": reference_readings(kind)} for kind in kinds]
    if as_json:
        output.print_json(entries)
    else:
        output.print_parts(method_page(entries[0]))


def _choice(given: dict[str, Any]) -> dict[str, Any]:
    from ropectl.cli.choosing import Chooser
    from ropectl.errors import ConfigError
    from ropectl.evaluate.config import ModelConfig
    from ropectl.lengths import parse_length
    from ropectl.rope.registry import all_methods

    if given["target_length"] is None:
        raise ConfigError("--choose needs the length that is wanted.", "Type for example: --target-length 32k")
    if (given["model"] or "").partition(":")[0] in all_methods():
        raise ConfigError(
            f"{given['model']} is a method; --choose takes a model.", "Leave it out for builtin:tiny, or name a folder."
        )
    numbers = given["geometry"]
    if numbers is not None and any(given[key] is not None for key in ("model", "original_length", "layers")):
        raise ConfigError(
            "--geometry says all numbers itself: it goes neither with a model nor with --original-length or --layers."
        )
    target = parse_length(given["target_length"], "--target-length")
    settings = options.resolve_config(ModelConfig, None, {**given, "target_length": None})
    return Chooser.of(settings, numbers, target, given["tuning"], given["runtime"]).record()


def _check_unused(given: dict[str, Any]) -> None:
    """Refuses options of the choice without it: a listing would leave them unheard."""
    from ropectl.errors import ConfigError

    names = ("target_length", "runtime", "geometry", "layers", "revision", "original_length", "trust_remote_code")
    unheard = [name for name in names if given[name] is not None] + ["tuning"] * (given["tuning"] is not Tuning.none)
    if unheard:
        raise ConfigError(f"--{unheard[0].replace('_', '-')} belongs to --choose.", "Add --choose, or leave it out.")
