"""What people see, kept as files: run with UPDATE_SNAPSHOTS=1 to write them anew, then read the difference."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from ropectl.report import views
from ropectl.report.finetune import finetune_parts
from ropectl.report.formats import FORMATS
from ropectl.report.sheet import Part, View
from ropectl.report.terminal import terminal_lines
from ropectl.tasks.registry import all_tasks, describe_task

from . import records

SNAPSHOTS = Path(__file__).parent / "snapshots"
WIDTHS = (60, 80, 120)
PLAN = [
    {"task": name, "prompts": 25, "tokens": 48_200, "distinct_tokens": 47_232, "most_generated": 3000}
    for name in ("passkey", "variable-tracking:chains=3,hops=2")
]

#: Named here, so that a further task is not a further line of a snapshot.
LISTED_TASKS = (
    "passkey", "common-words", "frequent-words", "key-value", "multi-key", "multi-query", "multi-value", "needle",
    "variable-tracking",
)  # fmt: skip


SHOWN: dict[str, tuple[View, Any]] = {
    "comparison": (views.COMPARISON, records.comparison()),
    "comparison-twenty-lengths": (views.COMPARISON, records.comparison(lengths=[1000 * n for n in range(1, 21)])),
    "comparison-models": (views.COMPARISON, records.several_models()),
    "comparison-strange": (views.COMPARISON, records.strange_numbers()),
    "comparison-one-length": (views.COMPARISON, records.comparison(lengths=(512,))),
    "comparison-estimate": (views.COMPARISON_ESTIMATE, records.estimate()),
    "perplexity-prefix": (views.PERPLEXITY, records.perplexity()),
    "perplexity-sliding": (views.PERPLEXITY, records.perplexity("sliding", "pi")),
    "perplexity-overlapping": (views.PERPLEXITY, records.perplexity("overlapping", "longlora")),
    "perplexity-tail": (views.PERPLEXITY, records.perplexity("tail")),
    "perplexity-key-tokens": (views.PERPLEXITY, records.perplexity("key-tokens")),
    "perplexity-yarn": (views.PERPLEXITY, records.perplexity("prefix", "yarn")),
    "passkey-depth": (views.PASSKEY, records.passkey()),
    "passkey-depths": (views.PASSKEY, records.passkey(num_depths=17)),
    "passkey-position": (views.PASSKEY, records.passkey("position")),
    "tasks": (views.TASKS, records.tasks()),
    "tasks-one-length": (views.TASKS, records.tasks(1)),
    "tasks-list": (views.TASK_LIST, [describe_task(all_tasks()[name]) for name in LISTED_TASKS]),
    "tasks-plan": (views.TASKS_PLAN, {"lengths": [2048, 4096], "plan": PLAN}),
    "finetune": (View(finetune_parts, is_headed=False), records.finetuning()),
    "harness": (
        views.HARNESS,
        {
            "model": "m",
            "method": "as it is",
            "n-samples": {"arc_easy": {"effective": 2376}},
            "results": {"arc_easy": {"acc,none": 0.25, "acc_stderr,none": 0.0125, "alias": "arc_easy"}},
        },
    ),
}


def lines(parts: Sequence[Part], width: int) -> list[str]:
    return [line.plain for line in terminal_lines(parts, width)]


def check(name: str, text: str) -> None:
    path = SNAPSHOTS / name
    if os.environ.get("UPDATE_SNAPSHOTS"):
        path.write_text(text)
    assert path.read_text() == text, (
        f"{name} differs; if that is meant: UPDATE_SNAPSHOTS=1 pytest {Path(__file__).name}"
    )


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", SHOWN)
def test_terminal(name: str, width: int) -> None:
    view, record = SHOWN[name]
    check(f"{name}-{width}.txt", "\n".join(lines(view.all_parts(record), width)) + "\n")


@pytest.mark.parametrize("form", ["markdown", "latex"])
@pytest.mark.parametrize("name", ["comparison", "comparison-models", "perplexity-tail", "passkey-position", "tasks"])
def test_formats(name: str, form: str) -> None:
    view, record = SHOWN[name]
    check(f"{name}.{form}", FORMATS[form].write(view, record))


@cache
def words(name: str) -> set[str]:
    """All that one enormous line holds."""
    view, record = SHOWN[name]
    return {word for line in lines(view.all_parts(record), 2000) for word in line.split() if set(word) != {"─"}}


@pytest.mark.parametrize("width", (32, 41, *WIDTHS, 200))
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
    wanted = {f"{name}-{width}.txt" for name in SHOWN for width in WIDTHS}
    forms = ("comparison", "comparison-models", "perplexity-tail", "passkey-position", "tasks")
    wanted |= {f"{name}.{form}" for name in forms for form in ("markdown", "latex")}
    assert {path.name for path in SNAPSHOTS.iterdir()} == wanted


@pytest.mark.process
def test_wide_terminals_show_more_per_table() -> None:
    """Twenty lengths in fewer tables the wider it is, in one where there is room."""
    record = records.comparison(lengths=[1000 * n for n in range(1, 21)])
    counts = [
        sum(line.startswith("Perplexity by context") for line in lines(views.COMPARISON.all_parts(record), width))
        for width in (60, 80, 120, 300)
    ]
    assert counts == sorted(counts, reverse=True) and len(set(counts)) > 2 and counts[-1] == 1
