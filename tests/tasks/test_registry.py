"""Tasks are found by scanning, chosen by specs, and refused in words."""

from __future__ import annotations

import importlib
import importlib.metadata
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from ropectl.errors import ConfigError
from ropectl.tasks import kinds
from ropectl.tasks.registry import ENTRY_POINT_GROUP, all_tasks, parse_task, parse_tasks
from tests.tasks.builders import make_builder

Run = Callable[..., tuple[int, str, str]]

ONE_FILE = '''
from ropectl.tasks.haystack import HaystackTask
from ropectl.tasks.prompt_parts import TrialText
from ropectl.tasks.task import EXACT, RULER
from ropectl.tasks.words import ADJECTIVES

class Colour(HaystackTask):
    """A colour is said once, and asked for."""
    name = "colour"
    title = "A colour"
    reference = RULER
    measures = "whether one word is found"
    instruction = "Remember the colour.\\n"
    metric = EXACT
    has_depths = True

    def draw(self, builder, rng):
        """Returns the colour."""
        (word,) = builder.draw_different(rng, colour, 1)
        return TrialText((f"\\nThe colour is {word}.\\n",), "\\nWhich colour?", " The colour is", f" {word}")

def colour(rng):
    return rng.choice(ADJECTIVES)
'''


@pytest.fixture
def fresh() -> Iterator[None]:
    all_tasks.cache_clear()
    yield
    all_tasks.cache_clear()


@pytest.fixture
def dropped_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fresh: None) -> Iterator[None]:
    """One more file in the folder of tasks."""
    (tmp_path / "colour.py").write_text(ONE_FILE)
    monkeypatch.setattr(kinds, "__path__", [*kinds.__path__, str(tmp_path)])
    importlib.invalidate_caches()
    yield
    sys.modules.pop("ropectl.tasks.kinds.colour", None)


@pytest.mark.process
def test_a_task_is_one_file(dropped_in: None, ropectl: Run, tokenizer: Any) -> None:
    assert "colour" in all_tasks()
    trial = parse_task("colour:haystack=filler").build(make_builder(tokenizer), 200, 0.5, 0)
    assert trial.seq_len == 200
    code, out, _ = ropectl("eval-tasks", "--list")
    assert code == 0 and "colour" in out
    code, out, err = ropectl("eval-tasks", "--task", "colour", "--length", "256", "--trials", "1", "--format", "json")
    assert code == 0, err
    assert '"task": "colour"' in out


def test_installed_packages_bring_tasks(monkeypatch: pytest.MonkeyPatch, fresh: None) -> None:
    module = ModuleType("elsewhere")
    exec(compile(ONE_FILE, "elsewhere", "exec"), vars(module))

    class Point:
        def load(self) -> ModuleType:
            return module

    monkeypatch.setattr(
        importlib.metadata, "entry_points", lambda group: [Point()] if group == ENTRY_POINT_GROUP else []
    )
    assert all_tasks()["colour"].__module__ == "elsewhere"


def test_two_tasks_of_one_name_are_refused(dropped_in: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "other.py").write_text(ONE_FILE)
    importlib.invalidate_caches()
    with pytest.raises(ConfigError, match="Two tasks are called 'colour'"):
        all_tasks()
    sys.modules.pop("ropectl.tasks.kinds.other", None)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("multikey", "no task 'multikey'.\nDid you mean multi-key"),
        ("needel", "Did you mean needle"),
        ("xyz", "Known: passkey, "),
        (
            "multi-key:distractors",
            "'distractors' in the task spec .* is not KEY=VALUE.\n.*parameters of multi-key: haystack, digits, distractors",
        ),
        ("multi-key:distractors=1,distractors=2", "is given twice"),
        (
            "multi-key:distractor=1",
            "multi-key has no parameter 'distractor'.\nDid you mean distractors\\? Its parameters",
        ),
        ("multi-key:distractors=0", "distractors = 0 is not possible.*at least 1"),
        ("multi-key:distractors=x", "distractors = x is not possible"),
        ("needle:haystack=essay", "haystack = essay is not possible.*'text' or 'filler'"),
        ("frequent-words:alpha=nan", "alpha = nan is not possible"),
        ("", "no task ''"),
    ],
)
def test_wrong_specs_are_refused_in_words(spec: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_task(spec)


def test_every_task_where_none_is_named_and_each_once() -> None:
    assert [task.name for task in parse_tasks([])] == list(all_tasks())
    assert list(map(str, parse_tasks(["needle", "needle:digits=7", "passkey"]))) == ["needle", "passkey"]
