"""Options that several commands share: one spelling and one meaning each.

Every option defaults to None, "not given", so that a config file's value is overridden by flags only.
Numbers are taken as they are typed: the settings read them, and refuse them in the same words as those of a file.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from ropectl.cli import completion
from ropectl.data.sources import source_spellings
from ropectl.report import formats

if TYPE_CHECKING:
    from pydantic import BaseModel

    Config = TypeVar("Config", bound=BaseModel)


class Format(str, Enum):
    """Output formats of commands whose records are no tables of results."""

    human = "human"
    json = "json"


_MODEL, _SCALING, _TEXT, _RUN = "Model", "Scaling", "Measurement", "Run"
RUN = _RUN
MEASUREMENT = _TEXT

_WAYS_TO_SAY_A_FACTOR = {"factor", "factors", "target_length"}

Model = Annotated[
    str | None,
    typer.Argument(
        metavar="MODEL",
        help="Folder, hub id, .gguf file, LoRA adapter folder or builtin:tiny (default).",
        show_default=False,
        autocompletion=completion.models,
    ),
]
Revision = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="Branch, tag or commit on the hub (default: the main one).", rich_help_panel=_MODEL
    ),
]
OriginalLength = Annotated[
    str | None,
    typer.Option(metavar="N", help="Trained context, if the config does not say it.", rich_help_panel=_MODEL),
]
Dtype = Annotated[
    str | None,
    typer.Option(
        metavar="TYPE",
        help="float32, bfloat16, float16 or auto (default: float32 on the CPU, else the checkpoint's own).",
        rich_help_panel=_MODEL,
        autocompletion=completion.names_in("ropectl.hf.run_names", "DTYPES"),
    ),
]
Device = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="cpu, cuda, cuda:1, mps, ... or auto (default: an accelerator if there is one).",
        rich_help_panel=_MODEL,
    ),
]
Attention = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="sdpa, eager, flash_attention_2, ... (default: as transformers chooses).",
        rich_help_panel=_MODEL,
    ),
]
TrustRemoteCode = Annotated[
    bool | None,
    typer.Option("--trust-remote-code", help="Run code that comes with the checkpoint.", rich_help_panel=_MODEL),
]
Strict = Annotated[
    bool | None, typer.Option("--strict", help="Doubts about the config are errors.", rich_help_panel=_MODEL)
]
DropCode = Annotated[
    bool | None,
    typer.Option("--drop-code", help="Leave out code that comes with the checkpoint.", rich_help_panel=_MODEL),
]
AllowPickle = Annotated[
    bool | None, typer.Option("--allow-pickle", help="Load .bin weights, which can run code.", rich_help_panel=_MODEL)
]

MethodSpec = Annotated[
    str | None,
    typer.Option(
        "--method",
        "-m",
        metavar="SPEC",
        help="NAME[:KEY=VALUE,...], see: ropectl methods; the model's own scaling by default.",
        rich_help_panel=_SCALING,
        autocompletion=completion.methods,
    ),
]
MethodSpecs = Annotated[
    list[str] | None,
    typer.Option(
        "--method",
        "-m",
        metavar="SPEC",
        help="NAME[:KEY=VALUE,...], repeatable; every method by default.",
        rich_help_panel=_SCALING,
        autocompletion=completion.methods,
    ),
]
ShownMethods = Annotated[
    list[str] | None,
    typer.Option(
        "--method",
        "-m",
        metavar="SPEC",
        help="NAME[:KEY=VALUE,...], repeatable; the model's own scaling by default.",
        rich_help_panel=_SCALING,
        autocompletion=completion.methods,
    ),
]
Factor = Annotated[str | None, typer.Option(metavar="S", help="Extension factor s = L'/L.", rich_help_panel=_SCALING)]
Factors = Annotated[
    list[str] | None,
    typer.Option(
        "--factor",
        metavar="S",
        help="Extension factor s = L'/L, repeatable.",
        rich_help_panel=_SCALING,
        show_default=False,
    ),
]
TargetLength = Annotated[
    str | None, typer.Option(metavar="N", help="Wanted context, instead of a factor.", rich_help_panel=_SCALING)
]
Layers = Annotated[
    str | None,
    typer.Option(
        metavar="TYPE",
        help="Layer type to scale, where each has its own table (default: those that see the whole context).",
        rich_help_panel=_SCALING,
    ),
]
Replace = Annotated[
    bool | None,
    typer.Option("--replace", help="Set aside the scaling that the checkpoint already has.", rich_help_panel=_SCALING),
]

Compose = Annotated[
    bool | None,
    typer.Option("--compose", help="Extend the scaling that is there: factors multiply.", rich_help_panel=_SCALING),
]
FreezeAt = Annotated[
    str | None,
    typer.Option(metavar="N", help="Length to freeze a length-dependent method at.", rich_help_panel=_SCALING),
]

Lengths = Annotated[
    list[str] | None,
    typer.Option(
        "--length",
        metavar="N",
        help="8k, 2048,4096, 1k..32k (doublings) or 1k..16k/1k (steps); repeatable.",
        rich_help_panel=_TEXT,
    ),
]
Text = Annotated[
    str | None,
    typer.Option(
        metavar="SOURCE",
        help=f"Text to measure on: {source_spellings()} (default builtin:stdlib).",
        rich_help_panel=_TEXT,
        autocompletion=completion.sources,
    ),
]
Documents = Annotated[
    str | None, typer.Option(metavar="N", help="Most documents to score (default 12).", rich_help_panel=_TEXT)
]
BatchSize = Annotated[
    str | None, typer.Option(metavar="N", help="Documents per forward pass (default 1).", rich_help_panel=_TEXT)
]
Bos = Annotated[
    str | None,
    typer.Option(
        metavar="WHEN",
        help="First token of every window: auto (default: as the tokenizer does), always, available (where there is one), "
        "never.",
        rich_help_panel=_TEXT,
        autocompletion=completion.names_in("ropectl.hf.run_names", "BOS_POLICIES"),
    ),
]
PrefillChunk = Annotated[
    str | None,
    typer.Option(
        metavar="N", help="Tokens per forward pass, to save memory; whole windows by default.", rich_help_panel=_TEXT
    ),
]
Depths = Annotated[
    str | None,
    typer.Option(metavar="N", help="Needle depths, evenly spaced over [0, 1] (default 5).", rich_help_panel=_TEXT),
]
Trials = Annotated[
    str | None,
    typer.Option(
        metavar="N", help="Prompts per length and depth (default 5; eval-passkey: 10).", rich_help_panel=_TEXT
    ),
]
Distractors = Annotated[
    str | None,
    typer.Option(metavar="N", help="Other labelled keys in the haystack (default 0).", rich_help_panel=_TEXT),
]
Seed = Annotated[
    str | None, typer.Option(metavar="N", help="Chooses keys and filler (default 0).", rich_help_panel=_TEXT)
]

Out = Annotated[Path | None, typer.Option("--out", "-o", help="Where results are written.", rich_help_panel=_RUN)]
OutputFormat = Annotated[Format, typer.Option("--format", help="human or json.", rich_help_panel=_RUN)]


def _known_format(value: str) -> str:
    if value not in formats.NAMES:
        raise typer.BadParameter(f"{value!r} is not one of {', '.join(map(repr, formats.NAMES))}.")
    return value


TableFormat = Annotated[
    str,
    typer.Option(
        "--format",
        metavar="NAME",
        help=f"{', '.join(formats.NAMES[:-1])} or {formats.NAMES[-1]}; csv: one measured value a row, latex: booktabs.",
        callback=_known_format,
        autocompletion=lambda: list(formats.NAMES),
        rich_help_panel=_RUN,
    ),
]
Plot = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Draw a figure: .svg, .pdf or .png, replaced if it is there.", rich_help_panel=_RUN
    ),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an existing result file.", rich_help_panel=_RUN)]
ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", help="YAML file with any of these settings; flags override it.", rich_help_panel=_RUN),
]
PrintConfig = Annotated[
    bool, typer.Option("--print-config", help="Print the resolved settings and stop.", rich_help_panel=_RUN)
]


def resolve_config(
    kind: type[Config], file: Path | None, given: dict[str, Any], command: Callable[..., Any] | None = None
) -> Config:
    """Returns the settings: defaults, overridden by the file, overridden by the flags that were given.

    Args:
        kind: The settings' type.
        file: YAML file; None for none, as for every command without ``--config``.
        given: A command's arguments by name, None where a flag was not given. Those that are no
            settings of this type, such as the output format, are left alone.
        command: The command, whose options' names a file may use; needed with a file.

    Raises:
        ConfigError: Naming the setting, its value and what is allowed.
    """
    from ropectl.cli.settings_file import read_settings
    from ropectl.hf.run_names import check_run_names
    from ropectl.settings import make_config

    flags = {name: value for name, value in given.items() if name in kind.model_fields and value is not None}
    assert file is None or command is not None, "whose options a file may name"
    settings = {**(read_settings(kind, file, command) if file and command else {}), **flags}
    if flags.keys() & _WAYS_TO_SAY_A_FACTOR:  # a flag overrides the file's other ways to say the same thing
        for name in _WAYS_TO_SAY_A_FACTOR - flags.keys():
            settings.pop(name, None)
    config = make_config(kind, settings)
    said = config.model_dump(include={"dtype", "save_dtype", "device", "attention", "bos", "trust_remote_code"})
    dtypes = {name.replace("_", "-"): said[name] for name in ("dtype", "save_dtype") if name in said}
    trusts_code = bool(said.get("trust_remote_code"))
    check_run_names(dtypes, said.get("device"), said.get("attention"), said.get("bos"), trusts_code)
    return config
