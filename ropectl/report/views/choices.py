"""The advice of ``methods --choose`` for people: what to try first, what then, with reasons, and what to type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ropectl.printable import printable
from ropectl.report.document import Part, Sentence, facts
from ropectl.report.tables.runtimes import version_names

_BUDGETS = {"none": "without training", "light": "with some hundred steps of training", "full": "with long training"}


def choice_parts(record: Mapping[str, Any]) -> list[Part]:
    """Returns the heading, notes, the first choice, those after it and what is passed over."""
    model = record["model"] or "plain numbers"
    served = f", served by {record['runtime']}" if record["runtime"] else ""
    factor = f" (factor {record['factor']:.4g})" if record["factor"] > 1 else ""
    parts: list[Part] = [
        Sentence(
            f"{model}: from {record['trained_length']} to {record['target_length']} tokens{factor}, "
            f"{_BUDGETS[record['tuning']]}{served}",
            is_heading=True,
        ),
        *(line for note in record["notes"] for line in (Sentence(""), Sentence(note))),
    ]
    rows = [(pick["name"], _reasons(pick)) for pick in record["picks"]]
    for title, shown in (("Try first", rows[:1]), ("Then, in this order", rows[1:])):
        if shown:
            parts.append(facts(title, shown))
    if record["passed"]:
        rows = [(passed["name"], passed["reason"]) for passed in record["passed"]]
        parts.append(facts("Passed over", rows))
    return parts


def choice_lines(record: Mapping[str, Any]) -> list[str]:
    """Returns the commands, and the file that one of them reads, as lines to copy."""
    lines: list[str] = []
    recipe = record["recipe"]
    if any(printable(step["command"]) != step["command"] for step in record["commands"]):
        return ["", "# No commands to copy: the name holds characters that cannot be printed. See: --format json"]
    if recipe is not None:
        lines += ["", f"# {recipe['file']}", *recipe["content"].splitlines()]
    for step in record["commands"]:
        lines += ["", f"# {step['purpose']}", step["command"]]
    return lines


def _reasons(pick: Mapping[str, Any]) -> str:
    found = [(entry["runtime"], entry["version"]) for entry in pick["runtimes"]]
    computed = "Frozen, it is computed" if pick["depends_on_seq_len"] else "Computed"
    served = f" {computed} as meant by {version_names(found)}." if found else ""
    return " ".join(pick["reasons"]) + served
