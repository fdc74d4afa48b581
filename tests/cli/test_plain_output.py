"""What is printed holds no control character, whatever a model or a text is called; on a terminal colours are styles alone."""

from __future__ import annotations

import os
import pty
import re
import shutil
import subprocess
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest

from ropectl.builtin import TINY_MODEL_DIR
from ropectl.cli import output
from ropectl.printable import printable
from tests.report import records

pytestmark = pytest.mark.usefixtures("short_calibration")

Run = Callable[..., tuple[int, str, str]]
ROOT = Path(__file__).parent.parent.parent
ESCAPE = "\x1b"
NAME = f"m{ESCAPE}[31m{ESCAPE}]0;title\x07\u202e[red]x[/red]:smile:\x9b"
SEEN = printable(NAME)

SMALL = ("--length", "128", "--documents", "1")
PASSKEYS = ("--length", "128", "--trials", "1", "--depths", "2")
COMMANDS: dict[str, tuple[str, ...]] = {
    "eval-perplexity": SMALL,
    "eval-passkey": PASSKEYS,
    "eval-tasks": ("--task", "passkey", *PASSKEYS),
    "compare-methods": ("-m", "pi", "--factor", "2", *PASSKEYS, "--documents", "1", "-o", "run"),
    "inspect": ("-m", "yarn", "--factor", "4"),
    "patch": ("-m", "yarn", "--factor", "4", "--dry-run", "-o", f"out{NAME}"),
    "finetune": ("-m", "pi", "--factor", "2", "--seq-len", "128", "--steps", "1", "--dry-run", "-o", "out"),
    "harness": ("--task", f"t{NAME}"),
}


def controls(text: str) -> set[str]:
    """Characters that are no writing, line breaks aside."""
    kinds = ("Cc", "Cs", "Zl", "Zp")
    return {c for c in text if (unicodedata.category(c) in kinds and c != "\n") or c == "\u202e"}


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The built-in model in a folder with a name to do harm."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(TINY_MODEL_DIR, tmp_path / NAME)
    return Path(NAME)


@pytest.mark.process
@pytest.mark.parametrize("command", COMMANDS)
def test_names_are_written_not_obeyed(ropectl: Run, model: Path, command: str) -> None:
    code, out, err = ropectl(command, f"./{model}", *COMMANDS[command])
    assert code == 0, err
    assert not controls(out + err)
    if command not in ("compare-methods", "harness"):  # no model's name is in a comparison of one; a script quotes it
        assert "[red]x[/red]:smile:?" in "".join(out.split()), "not swallowed as markup, nor replaced by a picture"


@pytest.mark.process
@pytest.mark.parametrize("form", ["csv", "markdown", "latex", "json"])
def test_other_formats_hold_no_controls(ropectl: Run, model: Path, form: str) -> None:
    code, out, err = ropectl("eval-perplexity", f"./{model}", *SMALL, "--format", form)
    assert code == 0 and not controls(out + err)
    assert form != "csv" or out.splitlines()[1].startswith(f"./{SEEN},none,false,")


def test_errors_and_prompts_hold_no_controls(ropectl: Run, tmp_path: Path) -> None:
    for arguments in (
        ("eval-perplexity", f"./nowhere{NAME}"),
        ("eval-perplexity", "-m", f"yarm{NAME}"),
        ("methods", f"yarm{NAME}"),
    ):
        code, out, err = ropectl(*arguments)
        assert code == 2 and not controls(out + err) and "[red]x[/red]" in err
    (tmp_path / "text.txt").write_text(f"A story{NAME}. " * 500)
    code, out, err = ropectl(
        "eval-tasks", "--show-prompt", "needle", "--text", tmp_path / "text.txt", "--length", "512"
    )
    assert code == 0 and not controls(out + err) and "[red]" in out


@pytest.mark.parametrize(
    "text", ["plain \u00e9 \u4e2d \U0001f600", "\x00\x1b\x7f\x85\x9b", "a\u2028b\u202ec\u2066", "\ud800"]
)
def test_printable(text: str) -> None:
    assert not controls(printable(text)) and len(printable(text)) == len(text)
    assert printable(printable(text)) == printable(text)
    assert text[0] != "p" or printable(text) == text
    assert printable("a\nb\tc") == "a?b?c" and printable("a\nb\tc", keep="\n\t") == "a\nb\tc"


@pytest.mark.parametrize("arguments", [("eval-tasks", "--list"), ("compare-methods", "--dry-run")])
@pytest.mark.parametrize("form", ["csv", "yaml"])
def test_formats_that_cannot_be_are_refused_before_any_work(
    ropectl: Run, arguments: tuple[str, ...], form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ropectl.compare.dry_run.estimate_comparison", None)
    code, out, err = ropectl(*arguments, "--format", form)
    assert code == 2 and out == "" and form in err and "markdown" in err and "latex" in err


@pytest.mark.parametrize("command", ["methods", "inspect", "patch", "finetune", "harness"])
def test_commands_without_tables_of_results_say_so(ropectl: Run, command: str) -> None:
    code, out, err = ropectl(command, "--format", "csv")
    assert code == 2 and out == "" and "'csv' is not one of 'human', 'json'" in " ".join(err.replace("│", "").split())


def test_tables_of_other_formats_from_lists(ropectl: Run) -> None:
    code, out, _ = ropectl("eval-tasks", "--list", "--format", "markdown")
    assert code == 0 and out.startswith("| task | measures |")
    code, out, err = ropectl("eval-tasks", "--show-prompt", "needle", "--format", "latex")
    assert code == 2 and out == "" and "--show-prompt prints a prompt" in err


@pytest.mark.parametrize("form", ["human", "markdown"])
def test_ascii_where_nothing_else_can_be_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, form: str) -> None:
    """An encoding without block characters gets the same table in letters that it has."""
    with (tmp_path / "out").open("w", encoding="ascii") as file:
        monkeypatch.setattr(sys, "stdout", file)
        output.show(records.comparison(), form)
    text = (tmp_path / "out").read_text(encoding="ascii")
    assert "####" in text and "?" not in text
    assert form == "markdown" or ("-----" in text and all(len(line) <= 80 for line in text.splitlines()))


SHOW = "from ropectl.cli import output; from tests.report import records; "
SHOW += "output.show(records.comparison(), 'human')"


def on_a_terminal(columns: int, **environment: str) -> str:
    """What a terminal is sent."""
    ours, theirs = pty.openpty()
    env = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS")}
    env |= {"TERM": "xterm-256color", "PYTHONPATH": str(ROOT), "COLUMNS": str(columns), **environment}
    with subprocess.Popen([sys.executable, "-c", SHOW], stdout=theirs, stderr=theirs, stdin=theirs, env=env) as process:
        os.close(theirs)
        data = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:
                break
            data += part
            if not part:
                break
        process.wait()
    os.close(ours)
    return data.decode().replace("\r\n", "\n")


STYLE = re.compile(r"\x1b\[[\d;]*m")


@pytest.mark.process
@pytest.mark.parametrize("columns", [60, 80])
def test_a_terminal_gets_the_same_text_with_styles(capsys: pytest.CaptureFixture[str], columns: int) -> None:
    sent = on_a_terminal(columns)
    styles = set(STYLE.findall(sent))
    assert any(";48;" in style or "[48;" in style or "48;5" in style for style in styles), (
        "the heat map has backgrounds"
    )
    assert any("1;32" in style for style in styles), "the best are bold and green"
    assert any(re.fullmatch(r"\x1b\[31m", style) for style in styles), "regressions are red"
    os.environ["COLUMNS"], before = str(columns), os.environ["COLUMNS"]
    try:
        output.show(records.comparison(), "human")
    finally:
        os.environ["COLUMNS"] = before
    assert STYLE.sub("", sent) == capsys.readouterr().out, "and nothing else"


@pytest.mark.process
def test_no_color_is_honoured() -> None:
    sent = on_a_terminal(80, NO_COLOR="1")
    codes = {code for style in STYLE.findall(sent) for code in style[2:-1].split(";")}
    assert codes <= {"0", "1"}, "bold is no colour"
    assert not STYLE.findall(on_a_terminal(80, TERM="dumb"))
