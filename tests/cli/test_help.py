"""Help texts: every command explains itself at the width of a terminal, with examples that are accepted."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ropectl.builtin import TINY_MODEL_DIR
from ropectl.cli.app import COMMANDS, full_command

Run = Callable[..., tuple[int, str, str]]
NAMES = [command.name for command in COMMANDS]
FULL = {name: full_command(name) for name in NAMES}
EXAMPLES = [(command.name, example) for command in COMMANDS for example in command.examples]
#: Only these options are not of a kind that has a panel.
UNGROUPED = {"--help"}


def words_of(example: str) -> list[str]:
    return shlex.split(example.partition(" > ")[0])[1:]


@pytest.mark.parametrize("name", NAMES)
def test_help_at_80_columns(ropectl: Run, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    code, out, err = ropectl(name, "--help")
    assert (code, err) == (0, "") and "\x1b" not in out
    assert max(map(len, out.splitlines())) <= 80 and "…" not in out
    assert f"Example: ropectl {name}" in " ".join(out.split())


@pytest.mark.parametrize("name", NAMES)
def test_every_option_stands_in_a_panel_and_says_something(name: str) -> None:
    for option in FULL[name].params:
        if option.param_type_name != "option":
            assert option.help
        elif option.opts[0] not in UNGROUPED:
            assert option.rich_help_panel, option.opts
            assert (option.help and option.help[0] != "D") or not option.help.startswith("Default "), option.opts


@pytest.mark.parametrize(("name", "example"), EXAMPLES, ids=lambda value: value)
def test_examples_are_accepted(
    ropectl: Run, name: str, example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every word is understood; what has --print-config resolves its settings, the rest runs as far as its model goes."""
    words = words_of(example)
    assert words[0] == name
    FULL[name].make_context(name, words[1:])
    options = {one for option in FULL[name].params for one in option.opts}
    if name == "env":  # test_env.py runs it
        return
    if "--list" in words:
        assert ropectl(*words)[0] == 0
        return
    shutil.copytree(TINY_MODEL_DIR, tmp_path / "my-model")
    if "--config" in words:  # from a clone
        shutil.copytree(Path(__file__).parent.parent.parent / "configs", tmp_path / "configs")
    monkeypatch.chdir(tmp_path)
    if "--print-config" in options:
        code, out, err = ropectl(*words, "--print-config")
        assert code == 0 and json.loads(out), err
    elif name in ("verify-runtime", "report"):
        code, _, err = ropectl(*words)
        assert code == 2 and words[1] in err  # what it is about is not there, and nothing else is wrong
    else:
        code, out, err = ropectl(*words)
        assert code == 0 and out, err


def test_the_first_page_is_complete(ropectl: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = ropectl("--help")
    assert code == 0 and all(f" {name} " in out for name in NAMES) and max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize("number", [1, 2, 3])
def test_short_of_a_stride_of_its_preset(ropectl: Run, number: int) -> None:
    """The way on is not a stride that the preset refuses."""
    code, _, err = ropectl("eval-perplexity", "--preset", "pi", "--length", str(64 * number))
    assert code == 2 and "at least 257" in err and "--stride" not in err


IDLE = [
    (["finetune", "-m", "yarn", "--factor", "2", "--pose-chunks", "3", "-o", "x"], "pose-chunks = 3 has no effect"),
    (["finetune", "-m", "yarn", "--factor", "2", "--no-merge", "-o", "x"], "no-merge has no effect"),
    (["eval-tasks", "--dry-run", "--out", "x.json"], "--dry-run measures nothing"),
    (["eval-tasks", "--show-prompt", "needle", "--out", "x.json"], "--show-prompt measures nothing"),
    (["harness", "--task", "a", "--include-path", "nowhere"], "'nowhere' is not a folder"),
]


@pytest.mark.parametrize(
    ("arguments", "words"), IDLE, ids=lambda value: " ".join(value) if isinstance(value, list) else ""
)
def test_what_would_be_without_effect_is_refused(
    ropectl: Run, arguments: list[str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = ropectl(*arguments)
    assert code == 2 and out == "" and words in err, err
    assert list(tmp_path.iterdir()) == []


def test_a_comparison_says_which_settings_are_idle() -> None:
    from ropectl.compare.plan import make_plan
    from ropectl.evaluate.config import CompareConfig
    from ropectl.reporter import Reporter

    reporter = Reporter()
    make_plan(CompareConfig(passkey=False, trials=3, methods=("yarn",), factor=2, documents=1), reporter)
    assert "--no-passkey: trials = 3 has no effect." in reporter.notes


def test_why_a_needle_stands_later_than_asked(tokenizer: Any) -> None:
    from ropectl.evaluate.retrieval.prompts import early_position_note
    from ropectl.tasks.kinds.passkey import Passkey
    from ropectl.tasks.prompt_builder import PromptBuilder

    builder, task = PromptBuilder(tokenizer, 0), Passkey()
    first = task.position(builder, 256, 0.0)
    notes = early_position_note(task, builder, [256, 512], [0, 5, 128])
    assert first > 5 and notes and f"from token {first} on: 0, 5 means {first}" in notes[0]
    assert early_position_note(task, builder, [256], [first]) == []


@pytest.mark.process
@pytest.mark.parametrize(("command", "continues"), [("finetune", True), ("eval-passkey", False)])
def test_interrupted_at_the_very_start(command: str, continues: bool) -> None:
    """Nothing is promised that may not be there."""
    code = (
        f"import sys; sys.argv = ['ropectl', {command!r}]\nimport ropectl.cli.app as a\n"
        "def stop(**options): raise a._Interrupted(2)\na.app = stop\na.main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 130 and "saved states" not in done.stderr
    assert ("goes on from what is finished" in done.stderr) == continues
