"""The recipes of CONTRIBUTING.md, followed to the letter in a copy of the package."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "CONTRIBUTING.md").read_text()
RECIPES = dict(re.findall(r"<!-- try: (\S+) -->\n```python\n(.*?)```", TEXT, flags=re.DOTALL))


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package with every file that the recipes add."""
    place = tmp_path_factory.mktemp("copy")
    shutil.copytree(ROOT / "ropectl", place / "ropectl", ignore=shutil.ignore_patterns("__pycache__"))
    for name, content in RECIPES.items():
        assert not (place / name).exists()
        (place / name).write_text(content)
    return place


def run(copy: Path, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(copy), "COLUMNS": "80"}
    done = subprocess.run(
        [sys.executable, "-m", "ropectl", *arguments], cwd=copy, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_there_are_four() -> None:
    assert sorted(Path(name).parent.name for name in RECIPES) == ["kinds", "methods", "runtimes", "text_sources"]


def test_a_method(copy: Path) -> None:
    """Listed, explained, computed: the middle pair's divisor is the geometric mean of 1 and s, by hand."""
    assert "mrrope-uni" in run(copy, "methods")
    assert "Fast pairs" in run(copy, "methods", "mrrope-uni")
    numbers = "rotary_dim=128,rope_theta=10000,original_max_position_embeddings=4096"
    record = json.loads(run(copy, "inspect", "--geometry", numbers, "-m", "mrrope-uni:factor=4", "--format", "json"))
    divisors = record["divisors"]
    assert divisors[0] == 1 and divisors[-1] == pytest.approx(4)
    low, high = 20, 46  # floor(c(32)) = floor(20.9), ceil(c(1)) = ceil(45.03)
    assert divisors[33] == pytest.approx(4 ** ((33 - low) / (high - low)))


def test_a_text_source(copy: Path) -> None:
    """Help names it, and it is measured."""
    assert "py:PACKAGE" in run(copy, "eval-perplexity", "--help")
    record = json.loads(
        run(copy, "eval-perplexity", "--text", "py:pyyaml", "--length", "64", "--documents", "2", "--format", "json")
    )
    assert record["manifest"]["documents"] == ["_yaml/__init__.py", "yaml/__init__.py"]


def test_a_task(copy: Path) -> None:
    entries = json.loads(run(copy, "eval-tasks", "--list", "--format", "json"))
    assert "code-word" in {entry["name"] for entry in entries}
    assert "The code word of" in run(copy, "eval-tasks", "--show-prompt", "code-word", "--length", "512")


def test_a_runtime(copy: Path) -> None:
    assert "imagined 1.0" in run(copy, "inspect", "builtin:tiny", "-m", "llama3", "--factor", "4")
    choice = json.loads(
        run(
            copy,
            *[
                "methods",
                "--choose",
                "--target-length",
                "2k",
                "--runtime",
                "imagined",
                "builtin:tiny",
                "--format",
                "json",
            ],
        )
    )
    assert {"llama3"} <= {pick["name"] for pick in choice["picks"]}
    assert any(passed["name"] == "yarn" and "imagined" in passed["reason"] for passed in choice["passed"])


def test_what_the_text_names_is_there() -> None:
    """Files, tests and scripts that it sends people to."""
    named = set(re.findall(r"`(?:python |bash |pytest )?((?:scripts|tests|ropectl|docs)/[\w./]+)", TEXT))
    missing = [name for name in named if not (ROOT / name).exists() and name not in RECIPES]
    assert [name for name in missing if "NAME" not in name and name != "tests/golden/mrrope"] == []
