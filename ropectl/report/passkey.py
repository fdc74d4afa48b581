"""The tables of ``eval-passkey``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ropectl.report.heat import ABSENT, heat_sheet, needle_place
from ropectl.report.layout import NOT_AVAILABLE, beyond_legend, beyond_mark
from ropectl.report.sheet import Cell, Part, Row, Sentence, Sheet, columns

_NO_PLACE = {
    "depth": f"{ABSENT} the prompt is so short that this depth is the position of another",
    "position": f"{ABSENT} the prompt ends before this position",
}


def passkey_parts(record: Mapping[str, Any]) -> list[Part]:
    """Returns correct answers by needle and length, intervals by length, and what they come to."""
    results, grid = record["lengths"], record["grid"]
    trials = results[0]["depths"][0]["trials"]
    title = f"Passkeys, of {trials} a {'depth' if grid == 'depth' else 'needle'}"
    parts: list[Part] = [heat_sheet(title, results, grid, [_marked(result) for result in results])]
    parts.append(_length_table(results))
    places = {needle_place(cell, grid) for result in results for cell in result["depths"]}
    if any(len(result["depths"]) < len(places) for result in results):
        parts.append(Sentence(_NO_PLACE[grid]))
    parts.extend(beyond_legend(result["beyond_capacity"] for result in results))
    parts.append(Sentence(_k_max(record["k_max"])))
    if record["num_differing"] is not None:
        count = sum(result["trials"] for result in results)
        parts.append(Sentence(f"Decoded greedily, {record['num_differing']} of {count} say otherwise than the scores."))
    return [*parts, Sentence(record["verdict"])]


def _length_table(results: Sequence[Mapping[str, Any]]) -> Sheet:
    rows = []
    for result in results:
        logprob = result["answer_logprob"]
        numbers = [
            Cell(str(result["correct"])),
            Cell(str(result["trials"])),
            Cell(f"{result['accuracy']:.1%}", shade=result["accuracy"]),
            Cell(f"{result['ci_low']:.1%} to {result['ci_high']:.1%}"),
            Cell(NOT_AVAILABLE if logprob is None else f"{logprob:.2f}"),
        ]
        rows.append(Row(_marked(result), numbers))
    heads = columns(["correct", "trials", "accuracy", "95 % interval", "log p(answer)"])
    return Sheet("Over all needles", "length", heads, rows)


def _k_max(values: Mapping[str, int]) -> str:
    parts = [f"{length or 'none'} at {float(accuracy):.0%}" for accuracy, length in values.items()]
    return f"k_max, the longest length with that accuracy up to it: {', '.join(parts)}."


def _marked(result: Mapping[str, Any]) -> str:
    return f"{result['length']}{beyond_mark(result['beyond_capacity'])}"
