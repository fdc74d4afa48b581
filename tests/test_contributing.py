"""The recipes of CONTRIBUTING.md, followed to the letter in a copy of the tree: what they add works, and the tests pass with it."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ropectl.rope.registry import all_methods
from ropectl.tasks.registry import all_tasks
from tests.processes import AFRESH, ROOT, as_script, run_python

TEXT = (ROOT / "CONTRIBUTING.md").read_text()
RECIPES = dict(re.findall(r"<!-- try: (\S+) -->\n```python\n(.*?)```", TEXT, flags=re.DOTALL))
PARTS = [
    "ropectl",
    "tests",
    "scripts",
    "docs",
    "configs",
    "README.md",
    "README.zh-CN.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "pyproject.toml",
]

#: Tests of *all* methods, tasks, runtimes or text sources, as far as they start no process.
SUITES = (
    "tests/rope/test_contract.py", "tests/rope/test_golden.py", "tests/rope/test_guides.py", "tests/hf/test_patch.py",
    "tests/tasks/test_contract.py", "tests/tasks/test_registry.py", "tests/tasks/test_kinds.py", "tests/runtimes",
    "tests/data/test_sources.py", "tests/cli/test_completion.py", "tests/advise", "tests/cli/test_help.py",
    "tests/report/test_snapshots.py", "tests/report/test_methods.py", "tests/test_layers.py", "tests/test_house_rules.py",
    "tests/test_docs.py",
)  # fmt: skip

#: A pytest plugin that leaves out cases of what was there before, which are tested where it is.
ONLY_NEW = """
import re

def pytest_collection_modifyitems(items):
    cases = [(item, item.name.partition("[")[2]) for item in items]
    items[:] = [item for item, case in cases if re.search({new!r}, case) or not re.search({old!r}, case)]
"""

pytestmark = pytest.mark.process


def golden_rows() -> list[dict[str, Any]]:
    """Reference vectors of the recipe's method, with numpy alone."""
    rows = []
    for dim, base, length, factor in (
        (128, 1e4, 4096, 4.0),
        (64, 1e5, 8192, 4.0),
        (32, 1e4, 256, 8.0),
        (96, 1e4, 4096, 2.5),
    ):
        pairs = np.arange(dim // 2)
        turns = [dim * np.log(length / (rotations * 2 * np.pi)) / (2 * np.log(base)) for rotations in (32.0, 1.0)]
        low, high = max(np.floor(turns[0]), 0), min(np.ceil(turns[1]), dim - 1)
        trained = base ** (-2 * pairs / dim)
        frequencies = trained / factor ** np.clip((pairs - low) / (high - low), 0, 1)
        geometry = {"rotary_dim": dim, "rope_theta": base, "original_max_position_embeddings": length}
        row = {"spec": f"mrrope-uni:factor={factor:g}", "source": "numpy", "geometry": geometry, "seq_len": None}
        rows.append({**row, "inv_freq": frequencies.tolist(), "attention_factor": 1 + 0.1 * np.log(factor)})
    return rows


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tree with all that the recipes add, and what they have generated."""
    place = tmp_path_factory.mktemp("copy")
    for name in PARTS:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, place / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, place / name)
    for name, content in RECIPES.items():
        assert not (place / name).exists()
        (place / name).write_text(content)
    (place / "tests" / "golden" / "mrrope-uni.json").write_text(json.dumps(golden_rows()))
    python(place, as_script(str(place / "scripts" / "gen_docs.py")))
    return place


def python(copy: Path, code: str, *arguments: str) -> str:
    """Runs code where the copy's ropectl and tests are the only ones."""
    environment = {"PYTHONPATH": str(copy), "COLUMNS": "80"}
    done = run_python(["-c", AFRESH + code, *arguments], environment, cwd=copy)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]
    return done.stdout


def run(copy: Path, *arguments: str) -> str:
    return python(copy, "from ropectl.cli.app import main; main()", *arguments)


def test_there_is_one_of_each() -> None:
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
    request = ["--text", "py:pyyaml", "--length", "64", "--documents", "2", "--format", "json"]
    record = json.loads(run(copy, "eval-perplexity", *request))
    assert record["manifest"]["documents"] == ["_yaml/__init__.py", "yaml/__init__.py"]


def test_a_task(copy: Path) -> None:
    entries = json.loads(run(copy, "eval-tasks", "--list", "--format", "json"))
    assert "code-word" in {entry["name"] for entry in entries}
    assert "The code word of" in run(copy, "eval-tasks", "--show-prompt", "code-word", "--length", "512")


def test_a_runtime(copy: Path) -> None:
    assert "imagined 1.0" in run(copy, "inspect", "builtin:tiny", "-m", "llama3", "--factor", "4")
    request = ["--choose", "--target-length", "2k", "--runtime", "imagined", "builtin:tiny", "--format", "json"]
    choice = json.loads(run(copy, "methods", *request))
    assert {"llama3"} <= {pick["name"] for pick in choice["picks"]}
    assert any(passed["name"] == "yarn" and "imagined" in passed["reason"] for passed in choice["passed"])


def test_the_documents_name_what_was_added(copy: Path) -> None:
    for page in ("README.md", "README.zh-CN.md", "docs/methods.md"):
        assert "mrrope-uni" in (copy / page).read_text(), page
    assert "code-word" in (copy / "docs" / "measuring.md").read_text()


def test_the_tests_pass_with_what_was_added(copy: Path) -> None:
    """Without another edit. What starts a process is left out: it knows no method by name; and so are cases of old ones."""
    options = ["-q", "-x", "-p", "no:cacheprovider", "-p", "only_new", "-m", "not process"]
    old = "|".join(map(re.escape, (*all_methods(), *all_tasks())))
    (copy / "only_new.py").write_text(ONLY_NEW.format(old=rf"(?<!\w)({old})(?!\w)", new="mrrope-uni|code-word"))
    python(copy, "import pytest; sys.exit(pytest.main(sys.argv[1:]))", *options, *SUITES)


def test_what_the_text_names_is_there() -> None:
    """Files, tests and scripts that it sends people to."""
    named = set(re.findall(r"`(?:python |bash |pytest )?((?:scripts|tests|ropectl|docs)/[\w./]+)", TEXT))
    missing = [name for name in named if not (ROOT / name).exists() and name not in RECIPES]
    assert [name for name in missing if "NAME" not in name and name != "tests/golden/mrrope"] == []
