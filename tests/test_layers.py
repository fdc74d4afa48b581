"""Layers import downwards only, and what must be instant imports nothing heavy."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "ropectl"
#: The rooms of the package from the ground up. Each imports only those before it: nothing is on one floor with another.
ORDER = (
    "errors", "extras", "memory", "printable", "file_reading", "json_reading", "timing", "reporter", "names", "output_places", "option",
    "slips", "lengths", "config_file", "discovery", "specs", "faults", "setting_types", "builtin", "environment", "rope", "records", "runs", "gguf", "hf", "runtimes", "data", "tasks",
    "evaluate", "advise", "checkpoint", "train", "compare", "report", "cli",
)  # fmt: skip
ENTRY_POINTS = ("__init__", "__main__")


def modules() -> list[Path]:
    return [
        path
        for path in sorted(PACKAGE.rglob("*.py"))
        if path.relative_to(PACKAGE).parts[0] not in map("{}.py".format, ENTRY_POINTS)
    ]


def room(parts: tuple[str, ...]) -> int:
    return ORDER.index(parts[0].removesuffix(".py"))


def imported_names(node: ast.AST) -> list[str]:
    """Modules of the package that a statement imports, whatever its form."""
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        assert node.level == 0, "imports are absolute"
        inside = node.module == "ropectl"
        names = [f"ropectl.{alias.name}" for alias in node.names] if inside else [node.module or ""]
    else:
        names = []
    return [name for name in names if name.startswith("ropectl.")]


@pytest.mark.parametrize("path", modules(), ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_imports_only_downwards(path: Path) -> None:
    own = path.relative_to(PACKAGE).parts
    for node in ast.walk(ast.parse(path.read_text())):
        for imported in imported_names(node):
            there = tuple(imported.split(".")[1:])
            same = there[0] == own[0].removesuffix(".py")
            assert same or room(there) < room(own), f"{path.name} imports {imported}"


@pytest.mark.process
@pytest.mark.parametrize(
    "code",
    [
        "import ropectl",
        "import ropectl.rope.registry as r; r.all_methods()",
        "import ropectl.report.views.compare_methods, ropectl.report.writers.formats, ropectl.report.writers.terminal",
        "import ropectl.report.tables.words, ropectl.report.views.methods, ropectl.report.views.inspect, ropectl.report.tables.runtimes",
        "import ropectl.report.views.eval_perplexity, ropectl.evaluate.perplexity.evaluation, ropectl.evaluate.judging.verdicts",
        "import ropectl.report.views.self_test, ropectl.report.views.patch_checkpoint, ropectl.report.views.verify_runtime, ropectl.report.views.finetune",
        "import ropectl.report.figures.frequencies, ropectl.report.figures.decay, sys; assert 'matplotlib' not in sys.modules",
        "import ropectl.report.page.write, ropectl.report.figures.catalog, sys; assert 'matplotlib' not in sys.modules",
        "from ropectl.runtimes.matrix import all_runtimes; assert all_runtimes()",
        "import ropectl.records.reading, ropectl.lengths, ropectl.runs",
        "import ropectl.tasks.registry as r; r.all_tasks(); import ropectl.report.views.eval_tasks, ropectl.report.views.task_previews",
        "import ropectl.report.views.choices, ropectl.report.views.env, ropectl.environment, ropectl.advise.choosing",
        "import ropectl.cli.app",
        "import ropectl.hf.config.geometry",
    ],
)
def test_imports_no_torch(code: str) -> None:
    check = f"{code}; import sys; assert 'torch' not in sys.modules and 'transformers' not in sys.modules"
    subprocess.run([sys.executable, "-c", check], check=True)
