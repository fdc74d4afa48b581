"""The runtime matrix: how each version of each runtime reads a checkpoint."""

from __future__ import annotations

from collections.abc import Sequence

from ropectl.records import ReadingEvidence, RuntimeReading
from ropectl.report.document import BAD, GOOD, Cell, Column, Part, Row, Sentence, Table
from ropectl.report.tables.words import NOT_AVAILABLE
from ropectl.runtimes.judge import DEVIATION_TOLERANCE, SERVING_CODES

NO_LIMIT = "any"

#: How a row is known, as it is shown.
KINDS = {
    "run": "run: this version was run with this family and form of scaling.",
    "read": "read: its source was read, and not run with them.",
    "unknown": "-: not known for this family, so nothing is claimed.",
}

#: A version that does not have the model at all: no fault of the file.
ABSENT = "no-such-model-type"

#: Problems of how much is served, not of what is computed.
LENGTH_CODES = {*SERVING_CODES, "tokenizer-capped"}


def runtime_parts(readings: Sequence[RuntimeReading]) -> list[Part]:
    """Returns one row per version, then one line per problem with the versions that have it."""
    numbers = [Column(head) for head in ("attention", "deviation", "serves")]
    columns = [Column("reads as", is_text=True), *numbers, Column("", is_text=True), Column("known", is_text=True)]
    return [
        Table("", "runtime", columns, [_row(reading) for reading in readings], name="In other programs"),
        *_legend(readings),
        *red_lines(readings),
    ]


def _row(reading: RuntimeReading) -> Row:
    loads, usable, attention = reading.loads, reading.usable_length, reading.attention_factor
    cells = [
        Cell(reading.rope_type or NOT_AVAILABLE),
        Cell(NOT_AVAILABLE if attention is None or not loads else f"{attention:.4f}"),
        Cell(deviation_text(reading.max_deviation) if loads else NOT_AVAILABLE),
        Cell((NO_LIMIT if usable is None else str(usable)) if loads else NOT_AVAILABLE),
        _verdict(reading),
        _known(reading.evidence),
    ]
    return Row(f"{reading.runtime} {reading.version}", cells)


def _known(evidence: ReadingEvidence) -> Cell:
    if evidence.kind == "unknown":
        return Cell("-", small=evidence.source)
    return Cell(evidence.kind, small=", ".join(filter(None, (evidence.version, evidence.date, evidence.source))))


def _legend(readings: Sequence[RuntimeReading]) -> list[Sentence]:
    """Returns what the last column says, where not every row was run."""
    kinds = {reading.evidence.kind for reading in readings}
    return [Sentence(" ".join(KINDS[kind] for kind in KINDS if kind in kinds))] if kinds - {"run"} else []


def _verdict(reading: RuntimeReading) -> Cell:
    if reading.loads is None:
        return Cell("not known")
    codes = {problem.code for problem in reading.problems}
    if codes == {ABSENT}:
        return Cell("absent")
    if not reading.loads:
        return Cell("FAILS", tone=BAD)
    if not codes:
        return Cell("ok", tone=GOOD)
    return Cell("length") if codes <= LENGTH_CODES else Cell("WRONG", tone=BAD)


def deviation_text(deviation: float | None) -> str:
    """Returns the largest frequency deviation: 0, a percentage, or a multiple if it is large."""
    if deviation is None:
        return NOT_AVAILABLE
    if deviation <= DEVIATION_TOLERANCE:
        return "0"
    return f"{deviation:.2%}" if deviation < 10 else f"{deviation + 1:.3g}x"


def red_lines(readings: Sequence[RuntimeReading]) -> list[Sentence]:
    """Returns one line per problem, with the versions that have it."""
    versions: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for reading in readings:
        for problem in reading.problems:
            key = (problem.code, problem.text)
            versions.setdefault(key, []).append((reading.runtime, reading.version))
    return [Sentence(f"{version_names(names)}: {text} [{code}]") for (code, text), names in versions.items()]


def version_names(names: Sequence[tuple[str, str]]) -> str:
    """Returns ``transformers 4.44, 4.48; vllm 0.32``."""
    grouped: dict[str, list[str]] = {}
    for runtime, version in names:
        grouped.setdefault(runtime, []).append(version)
    return "; ".join(f"{runtime} {', '.join(found)}" for runtime, found in grouped.items())
