"""Options that are not settings: where results go, and in which form."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from ropectl.errors import ConfigError
from ropectl.file_reading import home_path
from ropectl.option import Panel
from ropectl.report.format_names import NAMES, REPORT_NAMES
from ropectl.timing.durations import parse_duration

#: The panel that shows all of them.
RUN = Panel.run.value


class Format(str, Enum):
    """Output formats of commands whose records are not tables of results."""

    human = "human"
    json = "json"


def _file_path(text: str) -> Path:
    """Returns the path of a file, whose name does not end as that of a folder does."""
    if text.endswith("/"):
        raise ConfigError(f"{text} names a folder; the result is one file.", f"Type for example: {text}result.json")
    return home_path(text)


Out = Annotated[Path | None, typer.Option("--out", "-o", help="Where results are written.", rich_help_panel=RUN)]
OutFile = Annotated[
    Path | None,
    typer.Option(
        "--out", "-o", metavar="FILE", parser=_file_path, help="Write the record there, as JSON.", rich_help_panel=RUN
    ),
]


def _budget(text: str) -> float:
    return parse_duration(text, "--budget")


Budget = Annotated[
    float | None,
    typer.Option(
        "--budget",
        metavar="TIME",
        parser=_budget,
        help="Measure what fits in this time, as in 90s, 10m, 2h; the same command goes on.",
        rich_help_panel=RUN,
    ),
]
OutputFormat = Annotated[Format, typer.Option("--format", help="human or json.", rich_help_panel=RUN)]


def _format_option(names: Sequence[str], help: str) -> Any:
    """Returns the option that chooses one of some formats."""

    def known(value: str) -> str:
        if value not in names:
            raise typer.BadParameter(f"{value!r} is not one of {', '.join(map(repr, names))}.")
        return value

    return typer.Option(
        "--format",
        metavar="NAME",
        help=f"{', '.join(names[:-1])} or {names[-1]}; {help}",
        callback=known,
        autocompletion=lambda: list(names),
        rich_help_panel=RUN,
    )


TableFormat = Annotated[str, _format_option(NAMES, "csv: one measured value a row, latex: booktabs.")]
ReportFormat = Annotated[
    str,
    _format_option(
        REPORT_NAMES,
        "human and html write the page, json too and says what it is of; the others print all tables.",
    ),
]
Plot = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        parser=_file_path,
        help="Draw a figure: .svg, .pdf or .png, replaced if it is there.",
        rich_help_panel=RUN,
    ),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an existing result file.", rich_help_panel=RUN)]
ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", help="YAML file with any of these settings; flags override it.", rich_help_panel=RUN),
]
PrintConfig = Annotated[
    bool, typer.Option("--print-config", help="Print the resolved settings and stop.", rich_help_panel=RUN)
]
