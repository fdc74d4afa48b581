"""docs/cli.md: every command with its options and examples, out of the application itself."""

from __future__ import annotations

from typing import Any

from docs_markdown import code, escaped, generated_note, page, table

from ropectl.cli import app as application
from ropectl.cli.binding import CommandLine
from ropectl.cli.output import EXIT_GATE

EXIT_CODES = (
    ("0", "Done."),
    (str(application.EXIT_FAILED), "Something failed; the message says what. Records that are finished are kept."),
    (str(application.EXIT_BAD_INPUT), "Bad usage or bad input, found before weights load. Nothing was written."),
    (str(EXIT_GATE), "Done, and short of a limit that a flag set (`--fail-above`, `--min-accuracy`, ...)."),
    ("130, 143", "Interrupted by Ctrl-C, or ended by SIGTERM; nothing half written is left."),
    (str(application.EXIT_BROKEN_PIPE), "The reader of a pipe left early."),
)
INTRODUCTION = (
    "`ropectl COMMAND --help` says the same in the terminal. Options of a command that measures, trains or patches are also "
    "settings of a YAML file, `--config FILE`, under the same names with `-` or `_`: defaults, then the file, then flags; "
    "`--print-config` shows what is in force. Lengths are written `4096`, `8k`, `2k,4k`, `1k..32k` (doublings) or "
    "`1k..16k/1k` (steps). With `--format json` a command prints one JSON document; everything else goes to stderr.",
    "Completion of commands, options, methods with their parameters, tasks, presets, runtimes and `builtin:` names: "
    "`ropectl --install-completion`, then open a new shell.",
)


def cli_page() -> str:
    """Returns the page."""
    parts = [generated_note("the commands' own help"), "# Command line", *INTRODUCTION]
    parts.append("\n".join(table(("Exit code", "Meaning"), EXIT_CODES)))
    rows = [
        (f"[{code(command.name)}](#{command.name})", command.panel, escaped(command.description[0]))
        for command in application.COMMANDS
    ]
    parts.append("\n".join(table(("Command", "", "What it does"), rows)))
    for command in application.COMMANDS:
        parts += _command(command, application.full_command(command.name))
    return page(parts)


def _command(line: CommandLine, command: Any) -> list[str]:
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    usage = " ".join(["ropectl", line.name, "[OPTIONS]", *(_argument(one) for one in arguments)])
    shown = "\n".join(line.examples)
    parts = [
        f"## {line.name}",
        f"```\n{usage}\n```",
        *(escaped(paragraph) for paragraph in line.description),
        f"```bash\n{shown}\n```",
    ]
    if arguments:
        parts.append(
            "\n".join(table(("Argument", "Meaning"), [(code(_name(a)), escaped(a.help or "")) for a in arguments]))
        )
    panels: dict[str, list[Any]] = {}
    for option in command.params:
        if option.param_type_name == "option" and not option.hidden:
            panels.setdefault(option.rich_help_panel or "Options", []).append(option)
    for panel, options in panels.items():
        rows = [(_spelling(option), _meaning(option)) for option in options]
        parts.append("\n".join(table((panel, "Meaning"), rows)))
    return parts


def _name(argument: Any) -> str:
    return str(argument.metavar or argument.name.upper())


def _argument(argument: Any) -> str:
    text = _name(argument) + ("..." if argument.nargs == -1 else "")
    return text if argument.required else f"[{text}]"


def _spelling(option: Any) -> str:
    names = [*option.opts, *option.secondary_opts]
    words = getattr(option, "is_flag", False)
    value = "" if words else f" {option.metavar or _choices(option) or option.name.upper()}"
    return ", ".join(code(f"{name}{value}") for name in names)


def _choices(option: Any) -> str:
    """The words of an option that allows some only."""
    kind = type(option.default)
    return "|".join(member.value for member in kind) if hasattr(kind, "__members__") else ""


def _meaning(option: Any) -> str:
    default = option.default
    shown = f" [default: {default.value}]" if hasattr(type(default), "__members__") else ""
    return escaped((option.help or "") + shown) + (" (required)" if option.required else "")
