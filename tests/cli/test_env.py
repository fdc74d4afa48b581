"""``ropectl env``: what a bug report needs, in a whole installation and in broken ones, and nothing secret."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from ropectl import environment
from ropectl.report.views.env import environment_parts

pytestmark = pytest.mark.process

Run = Callable[..., tuple[int, str, str]]
ROOT = Path(__file__).parent.parent.parent


def in_a_process(path: Path | None = None, **more: str) -> tuple[dict[str, Any], str]:
    """The record of a fresh process, modules in ``path`` found first; and its stderr."""
    python_path = os.pathsep.join([*([str(path)] if path else []), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-m", "ropectl", "env", "--format", "json"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": python_path, **more},
    )
    assert done.returncode == 0, done.stderr
    record: dict[str, Any] = json.loads(done.stdout)
    return record, done.stdout + done.stderr


@pytest.fixture(scope="module")
def whole() -> dict[str, Any]:
    """This installation, with secrets in the environment."""
    secrets = {
        "HF_TOKEN": "hf_secret",
        "HUGGING_FACE_HUB_TOKEN": "hf_other",
        "AWS_SECRET_ACCESS_KEY": "aws",
        "HF_HUB_OFFLINE": "1",
    }
    record, text = in_a_process(**secrets)
    assert not any(word in text for word in ("hf_secret", "hf_other", "aws", "_TOKEN"))
    return record


def test_what_is_installed(whole: dict[str, Any]) -> None:
    for name in ("torch", "transformers", "pydantic"):
        assert whole["packages"][name] == version(name)
    assert whole["imports"] == dict.fromkeys(("numpy", "torch", "tokenizers", "safetensors", "transformers"))
    assert whole["variables"]["HF_HUB_OFFLINE"] == "1" and whole["cpu_count"] == os.cpu_count()
    assert 0 < whole["memory"]["free"] <= whole["memory"]["total"] and whole["disk"]["free"] > 0


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("raise ImportError('libcudart.so.12: cannot open shared object file')", "libcudart"),
        ("raise SystemExit(3)", "SystemExit"),
    ],
)
def test_a_package_that_does_not_import_is_a_row(tmp_path: Path, content: str, words: str) -> None:
    (tmp_path / "torch.py").write_text(content)
    record, _ = in_a_process(tmp_path)
    assert words in record["imports"]["torch"] and record["devices"] == []
    assert record["imports"]["numpy"] is None
    assert any(words in str(cell) for part in environment_parts(record) for cell in _cells(part))


def test_a_package_that_kills_the_process_is_a_row(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("import os; os.kill(os.getpid(), 11)")
    record, _ = in_a_process(tmp_path)
    assert "code -11" in record["probe_error"] and record["packages"]["torch"] == version("torch")


def test_one_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "_PROBE", "import time; time.sleep(60)")
    monkeypatch.setattr(environment, "PROBE_SECONDS", 0.2)
    assert "more than 0.2 s" in environment.describe_environment()["probe_error"]


def test_for_people(ropectl: Run, whole: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ropectl.environment.describe_environment", lambda: whole)
    for width in ("60", "80", "120"):
        monkeypatch.setenv("COLUMNS", width)
        code, out, err = ropectl("env")
        assert (code, err) == (0, "") and "\x1b" not in out and "…" not in out
        assert max(map(len, out.splitlines())) <= int(width) and all(line == line.rstrip() for line in out.splitlines())
        assert version("torch") in out and "not installed" in out


def test_the_home_s_owner_is_not_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "home", lambda: Path("/home/somebody"))
    monkeypatch.setenv("HF_HOME", "/home/somebody/models")
    monkeypatch.setattr(environment, "_probe", dict)
    record = environment.describe_environment()
    assert record["hub_cache"]["path"] == "~/models/hub"


def _cells(part: Any) -> list[Any]:
    return [cell.text for row in part.rows for cell in row.cells]


@pytest.mark.parametrize(
    ("error", "command"),
    [
        ("ImportError('libcudart.so.12 is missing')", "eval-perplexity"),
        ("RuntimeError('libcudart.so.12 is missing')", "inspect --self-test"),
    ],
)
def test_a_torch_that_does_not_import_is_named(tmp_path: Path, error: str, command: str) -> None:
    """transformers says of it that it could not import a module of its own."""
    (tmp_path / "torch.py").write_text(f"raise {error}")
    root = Path(__file__).parent.parent.parent
    done = subprocess.run(
        [sys.executable, "-m", "ropectl", *command.split()],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{tmp_path}"},
    )
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.startswith(
        f"Error: torch does not import: {error.partition('(')[0]}: libcudart.so.12 is missing\n"
    )


def test_a_long_failure_is_shortened(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('x' * 500)")
    record, _ = in_a_process(tmp_path)
    assert record["imports"]["torch"] == "ImportError: " + "x" * 80
