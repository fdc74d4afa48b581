"""``ropectl harness``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ropectl.cli import options

_HARNESS = "Harness"


def harness(
    model: options.Model = None,
    tasks: Annotated[
        list[str] | None,
        typer.Option("--task", metavar="NAME", help="Task of the harness, repeatable.", rich_help_panel=_HARNESS),
    ] = None,
    method: options.MethodSpec = None,
    factor: options.Factor = None,
    target_length: options.TargetLength = None,
    length: Annotated[
        str | None,
        typer.Option(
            metavar="N", help="Longest context; what the method is made for by default.", rich_help_panel=_HARNESS
        ),
    ] = None,
    num_fewshot: Annotated[
        str | None, typer.Option(metavar="K", help="Examples before each question.", rich_help_panel=_HARNESS)
    ] = None,
    batch_size: Annotated[
        str | None, typer.Option(metavar="N", help="Requests per forward pass (default 1).", rich_help_panel=_HARNESS)
    ] = None,
    limit: Annotated[
        str | None, typer.Option(metavar="N", help="Most examples per task, to try it out.", rich_help_panel=_HARNESS)
    ] = None,
    include_path: Annotated[
        str | None, typer.Option(metavar="FOLDER", help="Task files of your own.", rich_help_panel=_HARNESS)
    ] = None,
    run: Annotated[bool, typer.Option("--run", help="Make the calls now.", rich_help_panel=_HARNESS)] = False,
    layers: options.Layers = None,
    replace: options.Replace = None,
    revision: options.Revision = None,
    original_length: options.OriginalLength = None,
    dtype: options.Dtype = None,
    device: options.Device = None,
    attention: options.Attention = None,
    trust_remote_code: options.TrustRemoteCode = None,
    allow_pickle: options.AllowPickle = None,
    out: options.Out = None,
    overwrite: options.Overwrite = False,
    config: options.ConfigFile = None,
    print_config: options.PrintConfig = False,
    format: options.OutputFormat = options.Format.human,
) -> None:
    """Ordinary tasks on a model under a scaling method, by EleutherAI's lm-evaluation-harness: what scaling costs there.

    Prints a Python script with the exact calls on the patched model in memory; with --run it makes them
    (pip install 'ropectl\\[harness]').

    Example: ropectl harness ./my-model -m yarn --factor 4 --task hellaswag --task arc_easy > run.py

    Example: ropectl harness ./my-model -m yarn --factor 4 --task hellaswag --limit 100 --run -o result.json
    """
    given = locals()  # the options are the settings, under the same names
    from ropectl.errors import ConfigError
    from ropectl.evaluate.harness import HarnessConfig, harness_script, run_harness

    settings = options.resolve_config(HarnessConfig, config, given, harness)

    from ropectl.cli import output

    if print_config:
        output.print_json(settings.model_dump(mode="json"))
        return
    output.check_one_process("harness")
    if include_path is not None and not Path(include_path).expanduser().is_dir():
        raise ConfigError(f"include-path = {include_path!r} is no folder.", "Name the folder of your task files.")
    output.check_new(out, overwrite)
    output.quiet_libraries()
    if not run:
        script = harness_script(settings)
        if out is None:
            output.print_lines(script.splitlines())
            return
        from ropectl.runs import written_aside

        with written_aside(out) as file:
            file.write(f"{script}\n".encode())
        output.note(f"Script: {out}")
        return
    from ropectl.report.views import HARNESS

    record = run_harness(settings)
    output.present({**record, "method": record["method"] or "as it is"}, HARNESS, format.value, out)
