"""The command tree, and the one place where errors become messages and exit codes.

Nothing heavy is imported here: ``ropectl --help`` must answer at once. Commands import what they need
when they run.
"""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup
from typer.main import get_command

from ropectl.cli import completion
from ropectl.cli.binding import CommandLine
from ropectl.cli.commands.compare_methods import compare_methods
from ropectl.cli.commands.env import env
from ropectl.cli.commands.eval_passkey import eval_passkey
from ropectl.cli.commands.eval_perplexity import eval_perplexity
from ropectl.cli.commands.eval_tasks import eval_tasks
from ropectl.cli.commands.finetune import finetune
from ropectl.cli.commands.harness import harness
from ropectl.cli.commands.inspect import inspect
from ropectl.cli.commands.methods import methods
from ropectl.cli.commands.patch import patch
from ropectl.cli.commands.report import report
from ropectl.cli.commands.verify_runtime import verify_runtime
from ropectl.cli.output import EXIT_OF_SIGNAL
from ropectl.cli.strict_command import StrictCommand
from ropectl.errors import RopectlError
from ropectl.memory import is_out_of_memory
from ropectl.names import name_hint, near_names
from ropectl.printable import brief, printable, shown

EXIT_FAILED = 1
EXIT_BAD_INPUT = 2
EXIT_BROKEN_PIPE = 141  # as a program that SIGPIPE ended

#: Commands that find their own finished work when they are called again.
_CONTINUED = {"compare-methods", "finetune"}

_OUT_OF_MEMORY_HINT = "To need less memory: shorter lengths, --prefill-chunk 2048, or --dtype bfloat16."

CONTEXT: dict[str, Any] = {"help_option_names": ["-h", "--help"]}

_LOOK, _MEASURE, _CHANGE, _SHOW = "Look", "Measure", "Change", "Show"

#: The command tree.
COMMANDS = (
    CommandLine("methods", _LOOK, methods, "ropectl.advise.requests:ChoiceSettings", takes_file=False),
    CommandLine("inspect", _LOOK, inspect, "ropectl.advise.requests:InspectSettings", takes_file=False),
    CommandLine("env", _LOOK, env),
    CommandLine("compare-methods", _MEASURE, compare_methods, "ropectl.evaluate.config:CompareConfig"),
    CommandLine(
        "eval-perplexity",
        _MEASURE,
        eval_perplexity,
        "ropectl.evaluate.config:PerplexityConfig",
        completed="ropectl.evaluate.perplexity.presets:apply_preset",
    ),
    CommandLine("eval-passkey", _MEASURE, eval_passkey, "ropectl.evaluate.config:PasskeyConfig"),
    CommandLine("eval-tasks", _MEASURE, eval_tasks, "ropectl.evaluate.tasks_config:TasksConfig"),
    CommandLine("harness", _MEASURE, harness, "ropectl.evaluate.harness:HarnessConfig"),
    CommandLine(
        "verify-runtime",
        _MEASURE,
        verify_runtime,
        "ropectl.checkpoint.runtime_check:RuntimeCheckSettings",
        takes_file=False,
    ),
    CommandLine("patch", _CHANGE, patch, "ropectl.checkpoint.settings:PatchSettings"),
    CommandLine("finetune", _CHANGE, finetune, "ropectl.train.settings:FinetuneSettings"),
    CommandLine("report", _SHOW, report),
)


#: What its click raises over options; Typer brings one along, or uses the one that is installed.
_UsageError: Any = typer.BadParameter.__base__


class _ReaderLeft(BaseException):
    """The reader of the output left early, as head does; not a BrokenPipeError, which Typer would turn into exit code 1."""


class _Group(TyperGroup):
    """The group of all commands: suggests names that were perhaps meant, and notices a reader that has left."""

    def invoke(self, ctx: Any) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()  # what is short is written only here
        except BrokenPipeError:
            raise _ReaderLeft from None
        except typer.BadParameter as error:
            value, *allowed = re.findall("'([^']*)'", error.message) or [""]
            if " is not one of " in error.message and (near := near_names(value, allowed)):
                error.message += f" Did you mean {' or '.join(near)}?"
            error.message = brief(error.message)
            raise
        except _UsageError as error:
            error.message = brief(error.message)
            raise
        return result

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name = args[0]
        if name in _BY_NAME:
            self.commands[name] = full_command(name)
        if self.get_command(ctx, name) is None and not name.startswith("-") and not ctx.resilient_parsing:
            ctx.fail(f"There is no command {shown(name)}. {name_hint(name, self.list_commands(ctx))}")
        return super().resolve_command(ctx, args)


app = typer.Typer(
    name="ropectl",
    cls=_Group,
    help="Extend the context window of LLaMA-style models: see what RoPE computes, scale it, and measure how far the model "
    "really reaches.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings=CONTEXT,
)
_BY_NAME = {command.name: command for command in COMMANDS}


def _register(typer_app: typer.Typer, command: CommandLine, function: Callable[..., None]) -> None:
    typer_app.command(
        command.name, cls=StrictCommand, help="\n\n".join(command.paragraphs), rich_help_panel=command.panel
    )(function)


for _command in COMMANDS:  # without their options, whose settings take a while to import
    _register(app, _command, lambda: None)


def full_command(name: str) -> Any:
    """Returns a command with all of its options, as Typer runs it."""
    single = typer.Typer(add_completion=False, pretty_exceptions_enable=False, context_settings=CONTEXT)
    _register(single, _BY_NAME[name], _BY_NAME[name].bound())
    return get_command(single)


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        from importlib.metadata import version

        print(version("ropectl"))
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


class _Interrupted(BaseException):
    """Ctrl-C or SIGTERM, which clean up in the same way; not a KeyboardInterrupt, which Typer would turn into exit code 1."""


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    raise _Interrupted(number)


def _broken_torch() -> str | None:
    """Returns what is wrong with torch if it does not import: libraries that need it then blame something else."""
    if "torch" in sys.modules:
        return None
    try:
        import torch  # noqa: F401
    except Exception as error:
        return f"torch does not import: {type(error).__name__}: {' '.join(str(error).split())[:200]}"
    return None


def main() -> None:
    """Runs the command line and exits: 0 done, 1 failed, 2 bad input, 3 a limit was not met, 130 interrupted, 143 terminated."""
    signal.signal(signal.SIGINT, _interrupt)
    signal.signal(signal.SIGTERM, _interrupt)
    sys.stdout = sys.stdout or Path(os.devnull).open("w")  # noqa: SIM115 (closed by the caller: >&-)
    sys.stderr = sys.stderr or Path(os.devnull).open("w")  # noqa: SIM115
    run = partial(app, prog_name="ropectl")  # however it was started: completion goes by the name
    try:
        if os.environ.get(completion.REQUEST) == "complete_bash":
            completion.run(run)
        run()
    except _Interrupted as interruption:
        goes_on = " The same command goes on from what is finished." if _CONTINUED & set(sys.argv[1:2]) else ""
        print(f"Interrupted. Nothing half written is left.{goes_on}", file=sys.stderr)
        sys.exit(EXIT_OF_SIGNAL + interruption.args[0])
    except (_ReaderLeft, BrokenPipeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(EXIT_BROKEN_PIPE)
    except RopectlError as error:
        if os.environ.get("ROPECTL_DEBUG"):
            raise
        if os.environ.get("RANK", "0") == "0" or error.exit_code != EXIT_BAD_INPUT:  # every rank finds bad input
            print(brief(printable(f"Error: {error}", keep="\n")), file=sys.stderr)
        sys.exit(error.exit_code)
    except Exception as error:
        if os.environ.get("ROPECTL_DEBUG"):
            raise
        hint = _OUT_OF_MEMORY_HINT if is_out_of_memory(error) else "For the traceback, set ROPECTL_DEBUG=1."
        text = _broken_torch() or f"{type(error).__name__}: {error}"
        print(brief(printable(f"Error: {text}\n{hint}", keep="\n")), file=sys.stderr)
        sys.exit(EXIT_FAILED)


if __name__ == "__main__":
    main()
