"""What people see, kept as files: run with UPDATE_SNAPSHOTS=1 to write them anew, then read the difference."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from ropectl.report.document import Part, View
from ropectl.report.views import (
    compare_methods,
    estimates,
    eval_passkey,
    eval_perplexity,
    eval_tasks,
    finetune,
    harness_results,
    task_previews,
)
from ropectl.report.writers.formats import FORMATS
from ropectl.report.writers.terminal import terminal_lines
from ropectl.tasks.registry import all_tasks

from . import records

SNAPSHOTS = Path(__file__).parent / "snapshots"
PLAN = [
    {"task": name, "prompts": 25, "tokens": 48_200, "distinct_tokens": 47_232, "most_generated": 3000}
    for name in ("passkey", "variable-tracking:chains=3,hops=2")
]

#: Named here, so that a further task is not a further line of a snapshot.
LISTED_TASKS = (
    "passkey", "common-words", "frequent-words", "key-value", "multi-key", "multi-query", "multi-value", "needle",
    "variable-tracking",
)  # fmt: skip

COMPARISON, PERPLEXITY = compare_methods.VIEW, eval_perplexity.VIEW
TWENTY = records.made(records.comparison(lengths=[1000 * n for n in range(1, 21)]))

SHOWN: dict[str, tuple[View, Any]] = {
    "comparison": (COMPARISON, records.made(records.comparison())),
    "comparison-twenty-lengths": (COMPARISON, TWENTY),
    "comparison-models": (COMPARISON, records.made(records.several_models())),
    "comparison-strange": (COMPARISON, records.made(records.strange_numbers())),
    "comparison-one-length": (COMPARISON, records.made(records.comparison(lengths=(512,)))),
    "comparison-estimate": (estimates.COMPARISON, records.estimate()),
    "perplexity-prefix": (PERPLEXITY, records.made(records.perplexity())),
    "perplexity-sliding": (PERPLEXITY, records.made(records.perplexity("sliding", "pi"))),
    "perplexity-overlapping": (PERPLEXITY, records.made(records.perplexity("overlapping", "longlora"))),
    "perplexity-tail": (PERPLEXITY, records.made(records.perplexity("tail"))),
    "perplexity-key-tokens": (PERPLEXITY, records.made(records.perplexity("key-tokens"))),
    "perplexity-yarn": (PERPLEXITY, records.made(records.perplexity("prefix", "yarn"))),
    "passkey-depth": (eval_passkey.VIEW, records.made(records.passkey())),
    "passkey-depths": (eval_passkey.VIEW, records.made(records.passkey(num_depths=17))),
    "passkey-position": (eval_passkey.VIEW, records.made(records.passkey("position"))),
    "tasks": (eval_tasks.VIEW, records.made(records.tasks())),
    "tasks-one-length": (eval_tasks.VIEW, records.made(records.tasks(1))),
    "tasks-list": (task_previews.LIST, [all_tasks()[name] for name in LISTED_TASKS]),
    "tasks-plan": (task_previews.PLAN, {"lengths": [2048, 4096], "plan": PLAN}),
    "finetune": (finetune.VIEW, records.made(records.finetuning())),
    "harness": (harness_results.VIEW, records.made(records.harness())),
}


#: All views at the width of a file, and one at those of a narrow and a wide terminal.
TERMINAL = [(name, 80) for name in SHOWN] + [("comparison-models", 60), ("comparison-models", 120)]
FORMS = ("markdown", "latex")
WRITTEN = ("comparison-models", "perplexity-tail", "passkey-position", "tasks")


def lines(parts: Sequence[Part], width: int) -> list[str]:
    return [line.plain for line in terminal_lines(parts, width)]


def check(name: str, text: str) -> None:
    path = SNAPSHOTS / name
    if os.environ.get("UPDATE_SNAPSHOTS"):
        path.write_text(text)
    assert path.read_text() == text, (
        f"{name} differs; if that is meant: UPDATE_SNAPSHOTS=1 pytest {Path(__file__).name}"
    )


@pytest.mark.parametrize(("name", "width"), TERMINAL)
def test_terminal(name: str, width: int) -> None:
    view, record = SHOWN[name]
    check(f"{name}-{width}.txt", "\n".join(lines(view.all_parts(record), width)) + "\n")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", WRITTEN)
def test_formats(name: str, form: str) -> None:
    view, record = SHOWN[name]
    check(f"{name}.{form}", FORMATS[form].write(view, record))


@cache
def words(name: str) -> set[str]:
    """All that one enormous line holds."""
    view, record = SHOWN[name]
    return {word for line in lines(view.all_parts(record), 2000) for word in line.split() if set(word) != {"─"}}


@pytest.mark.parametrize("width", (32, 41, 60, 80, 120, 200))
@pytest.mark.parametrize("name", SHOWN)
def test_nothing_is_lost_on_any_width(name: str, width: int) -> None:
    """What one enormous line holds, every width holds: each cell, name and heading, apart from where it breaks."""
    view, record = SHOWN[name]
    shown, entries = lines(view.all_parts(record), width), words(name)
    assert all(cell_len(line) <= width for line in shown), [line for line in shown if cell_len(line) > width]
    assert all(line == line.rstrip() for line in shown) and "\u2026" not in "".join(shown)
    have = "".join("\n".join(shown).split())
    broken = [word for word in entries if word not in have and len(word) < 13]
    assert not broken, f"{broken} are missing or torn"


def test_no_snapshot_is_left_over() -> None:
    wanted = {f"{name}-{width}.txt" for name, width in TERMINAL}
    wanted |= {f"{name}.{form}" for name in WRITTEN for form in FORMS}
    assert {path.name for path in SNAPSHOTS.iterdir()} == wanted


@pytest.mark.process
def test_wide_terminals_show_more_per_table() -> None:
    """Twenty lengths in fewer tables the wider it is, in one where there is room."""
    parts = COMPARISON.all_parts(TWENTY)
    counts = [
        sum(line.startswith("Perplexity by context") for line in lines(parts, width)) for width in (60, 80, 120, 300)
    ]
    assert counts == sorted(counts, reverse=True) and len(set(counts)) > 2 and counts[-1] == 1
