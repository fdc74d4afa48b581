"""Layers import downwards only, and what must be instant imports nothing heavy."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "ropectl"
LAYERS = {
    "errors": 1, "names": 1, "config_file": 1, "environment": 3, "lengths": 1, "rope": 1, "records": 1, "option": 1, "setting_types": 1,
    "discovery": 1, "memory": 1, "specs": 1, "printable": 1, "reporter": 1,
    "hf": 2, "gguf": 2, "runtimes": 2, "data": 2, "tasks": 2, "builtin": 2, "runs": 2,
    "evaluate": 3, "checkpoint": 3, "train": 3,
    "compare": 4, "advise": 4, "report": 4,
    "cli": 5,
}  # fmt: skip
ENTRY_POINTS = ("__init__", "__main__")


def modules() -> list[Path]:
    return [
        path
        for path in sorted(PACKAGE.rglob("*.py"))
        if path.relative_to(PACKAGE).parts[0] not in map("{}.py".format, ENTRY_POINTS)
    ]


def layer(parts: tuple[str, ...]) -> int:
    return LAYERS[parts[0].removesuffix(".py")]


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
    own = layer(path.relative_to(PACKAGE).parts)
    for node in ast.walk(ast.parse(path.read_text())):
        for name in imported_names(node):
            assert layer(tuple(name.split(".")[1:])) <= own, f"{path.name} imports {name}"


@pytest.mark.process
@pytest.mark.parametrize(
    "code",
    [
        "import ropectl",
        "import ropectl.rope.registry as r; r.all_methods()",
        "import ropectl.report.views, ropectl.report.formats, ropectl.report.terminal",
        "import ropectl.report.tables, ropectl.report.methods, ropectl.report.inspection, ropectl.report.runtimes",
        "import ropectl.report.perplexity, ropectl.evaluate.perplexity.evaluation, ropectl.evaluate.verdicts",
        "import ropectl.report.self_test, ropectl.report.patch, ropectl.report.runtime_check, ropectl.report.finetune",
        "import ropectl.report.figures.frequencies, ropectl.report.figures.decay, sys; assert 'matplotlib' not in sys.modules",
        "import ropectl.report.page.write, ropectl.report.figures.catalog, sys; assert 'matplotlib' not in sys.modules",
        "import ropectl.runtimes as r; from ropectl.runtimes.matrix import all_runtimes; assert len(all_runtimes()) == 4",
        "import ropectl.records.reading, ropectl.lengths, ropectl.runs",
        "import ropectl.tasks.registry as r; r.all_tasks(); import ropectl.tasks.catalog, ropectl.report.tasks",
        "import ropectl.report.choice, ropectl.report.environment, ropectl.environment, ropectl.advise.choosing",
        "import ropectl.cli.app",
        "import ropectl.hf.config.geometry",
    ],
)
def test_imports_no_torch(code: str) -> None:
    check = f"{code}; import sys; assert 'torch' not in sys.modules and 'transformers' not in sys.modules"
    subprocess.run([sys.executable, "-c", check], check=True)


def test_no_module_is_long_without_reason() -> None:
    long = [path.name for path in modules() if len(path.read_text().splitlines()) > 300]
    assert not long
