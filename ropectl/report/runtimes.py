"""The runtime matrix for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ropectl.report.layout import NOT_AVAILABLE
from ropectl.report.sheet import BAD, GOOD, Cell, Column, Part, Row, Sentence, Sheet
from ropectl.runtimes.judge import DEVIATION_TOLERANCE, SERVING_CODES

NO_LIMIT = "any"

#: Red lines about how much is served, not about what is computed.
LENGTH_CODES = {*SERVING_CODES, "tokenizer-capped"}


def runtime_parts(readings: Sequence[Mapping[str, Any]]) -> list[Part]:
    """Returns one row per version, then one line per red line with the versions that it holds for.

    Args:
        readings: What :meth:`ropectl.runtimes.RuntimeReading.to_json` gives.
    """
    numbers = [Column(head) for head in ("attention", "deviation", "serves")]
    columns = [Column("reads as", is_text=True), *numbers, Column("", is_text=True)]
    return [Sheet("", "runtime", columns, [_row(reading) for reading in readings]), *red_lines(readings)]


def _row(reading: Mapping[str, Any]) -> Row:
    loads, usable = reading["loads"], reading["usable_length"]
    cells = [
        Cell(reading["rope_type"] or NOT_AVAILABLE),
        Cell(f"{reading['attention_factor']:.4f}" if loads else NOT_AVAILABLE),
        Cell(deviation_text(reading["max_deviation"]) if loads else NOT_AVAILABLE),
        Cell((NO_LIMIT if usable is None else str(usable)) if loads else NOT_AVAILABLE),
        _verdict(reading),
    ]
    return Row(f"{reading['runtime']} {reading['version']}", cells)


def _verdict(reading: Mapping[str, Any]) -> Cell:
    if not reading["loads"]:
        return Cell("FAILS", tone=BAD)
    codes = {problem["code"] for problem in reading["problems"]}
    if not codes:
        return Cell("ok", tone=GOOD)
    return Cell("length") if codes <= LENGTH_CODES else Cell("WRONG", tone=BAD)


def deviation_text(deviation: float) -> str:
    """Returns the largest frequency deviation: in percent, as a multiple where it is more than that, none as 0."""
    if deviation <= DEVIATION_TOLERANCE:
        return "0"
    return f"{deviation:.2%}" if deviation < 10 else f"{deviation + 1:.3g}x"


def red_lines(readings: Sequence[Mapping[str, Any]]) -> list[Sentence]:
    """Returns one line per red line, with the versions that it holds for."""
    versions: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for reading in readings:
        for problem in reading["problems"]:
            key = (problem["code"], problem["text"])
            versions.setdefault(key, []).append((reading["runtime"], reading["version"]))
    return [Sentence(f"{version_names(names)}: {text} [{code}]") for (code, text), names in versions.items()]


def version_names(names: Sequence[tuple[str, str]]) -> str:
    """Returns ``transformers 4.44, 4.48; vllm 0.32``."""
    grouped: dict[str, list[str]] = {}
    for runtime, version in names:
        grouped.setdefault(runtime, []).append(version)
    return "; ".join(f"{runtime} {', '.join(found)}" for runtime, found in grouped.items())
