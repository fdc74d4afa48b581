"""The runtime matrix for people, in 80 columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from ropectl.report.layout import NOT_AVAILABLE
from ropectl.runtimes.judge import DEVIATION_TOLERANCE, SERVING_CODES

NO_LIMIT = "any"

#: Red lines about how much is served, not about what is computed.
LENGTH_CODES = {*SERVING_CODES, "tokenizer-capped"}


def runtime_parts(readings: Sequence[Mapping[str, Any]]) -> list[Text | Table]:
    """Returns one row per version, then one line per red line with the versions that it holds for.

    Args:
        readings: What :meth:`ropectl.runtimes.RuntimeReading.to_json` gives.
    """
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column, justify in (
        ("runtime", "left"),
        ("reads as", "left"),
        ("attention", "right"),
        ("deviation", "right"),
        ("serves", "right"),
        ("", "left"),
    ):
        table.add_column(column, justify=justify, no_wrap=True)  # type: ignore[arg-type]
    for reading in readings:
        loads = reading["loads"]
        usable = reading["usable_length"]
        table.add_row(
            f"{reading['runtime']} {reading['version']}",
            (reading["rope_type"] or NOT_AVAILABLE)[:14],
            f"{reading['attention_factor']:.4f}" if loads else NOT_AVAILABLE,
            deviation_text(reading["max_deviation"]) if loads else NOT_AVAILABLE,
            (NO_LIMIT if usable is None else str(usable)) if loads else NOT_AVAILABLE,
            _verdict(reading),
        )
    return [table, *red_lines(readings)]


def _verdict(reading: Mapping[str, Any]) -> str:
    if not reading["loads"]:
        return "FAILS"
    codes = {problem["code"] for problem in reading["problems"]}
    return "ok" if not codes else "length" if codes <= LENGTH_CODES else "WRONG"


def deviation_text(deviation: float) -> str:
    """Returns the largest frequency deviation: in percent, as a multiple where it is more than that, none as 0."""
    if deviation <= DEVIATION_TOLERANCE:
        return "0"
    return f"{deviation:.2%}" if deviation < 10 else f"{deviation + 1:.3g}x"


def red_lines(readings: Sequence[Mapping[str, Any]]) -> list[Text]:
    """Returns one line per red line, with the versions that it holds for."""
    versions: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for reading in readings:
        for problem in reading["problems"]:
            key = (problem["code"], problem["text"])
            versions.setdefault(key, []).append((reading["runtime"], reading["version"]))
    return [Text(f"{version_names(names)}: {text} [{code}]") for (code, text), names in versions.items()]


def version_names(names: Sequence[tuple[str, str]]) -> str:
    """Returns ``transformers 4.44, 4.48; vllm 0.32``."""
    grouped: dict[str, list[str]] = {}
    for runtime, version in names:
        grouped.setdefault(runtime, []).append(version)
    return "; ".join(f"{runtime} {', '.join(found)}" for runtime, found in grouped.items())
