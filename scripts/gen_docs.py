"""Writes what documentation says about methods, tasks, runtimes and model families from the code, so that it cannot be wrong.

python scripts/gen_docs.py           # rewrites the generated parts of README.md, docs/methods.md and docs/cli.md
python scripts/gen_docs.py --check   # exits 1 if one is not up to date, and says which

What is said of model families holds for one version of transformers: with another installed it is not checked.
"""

from __future__ import annotations

import json
import sys
from importlib.metadata import version
from io import StringIO
from pathlib import Path

from docs_cli import cli_page
from docs_methods import methods_page
from rich.console import Console

from ropectl.hf.census import census
from ropectl.hf.geometry import describe_rope
from ropectl.report.runtimes import runtime_parts
from ropectl.rope.catalog import describe_method
from ropectl.rope.registry import all_methods
from ropectl.runtimes import config_facts, read_all
from ropectl.specs import format_value
from ropectl.tasks.catalog import describe_task
from ropectl.tasks.registry import all_tasks

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
DOCS = ROOT / "docs"
METHODS = ("<!-- methods:begin (scripts/gen_docs.py) -->", "<!-- methods:end -->")
TASKS = ("<!-- tasks:begin (scripts/gen_docs.py) -->", "<!-- tasks:end -->")
MATRIX = ("<!-- matrix:begin (scripts/gen_docs.py) -->", "<!-- matrix:end -->")
FAMILIES = ("<!-- families:begin (scripts/gen_docs.py) -->", "<!-- families:end -->")

#: What transformers 5 saves of a model scaled as Llama 3.1: nothing that transformers 4 reads.
MATRIX_CONFIG = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "max_position_embeddings": 131072,
    "rope_parameters": {
        "rope_type": "llama3",
        "rope_theta": 500000.0,
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    },
}


def methods_table() -> str:
    """Returns the methods as a Markdown table."""
    lines = [
        "| Method | What it is | Formula | Parameters | Stock `rope_type` | Reference |",
        "|---|---|---|---|---|---|",
    ]
    for kind in all_methods().values():
        entry = describe_method(kind)
        parameters = ", ".join(f"`{p['name']}`" + (" (required)" if p["required"] else "") for p in entry["parameters"])
        formula = entry["formula"].replace("|", "\\|")
        row = (
            f"`{entry['name']}`",
            entry["title"],
            f"`{formula}`",
            parameters or "-",
            entry["native"],
            entry["reference"],
        )
        lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines)


def tasks_table() -> str:
    """Returns the retrieval tasks as a Markdown table."""
    lines = ["| Task | What it is | A good score shows | Metric | Parameters | Source |", "|---|---|---|---|---|---|"]
    for kind in all_tasks().values():
        entry = describe_task(kind)
        parameters = ", ".join(f"`{p['name']}={format_value(p['default'])}`" for p in entry["parameters"])
        metric = entry["metric"] + (", by depth" if entry["has_depths"] else "")
        row = (f"`{entry['name']}`", entry["title"], entry["measures"], metric, parameters, entry["reference"])
        lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines)


def families_heading() -> str:
    """Returns how the part about families begins, which names the version it holds for."""
    return f"With transformers {version('transformers')}: "


def families_table() -> str:
    """Returns how many causal model types can be scaled, and why others cannot, as Markdown."""
    found = census()
    total = len(found.supported) + len(found.refused) + len(found.without)
    reasons: dict[str, list[str]] = {}
    for model_type, reason in found.refused.items():
        reasons.setdefault(reason, []).append(f"`{model_type}`")
    lines = [
        f"{families_heading()}of {total} causal model types, {len(found.without)} have no rotary positions, "
        f"**{len(found.supported)} are scaled** and {len(found.refused)} are refused:",
        "",
        "| Refused | Why |",
        "|---|---|",
        *(f"| {', '.join(names)} | {reason} |" for reason, names in reasons.items()),
    ]
    return "\n".join(lines)


def matrix_example() -> str:
    """Returns a config that transformers 5 saved, and what each runtime computes from it, as Markdown."""
    rope = describe_rope(MATRIX_CONFIG)
    readings = [reading.to_json() for reading in read_all(config_facts(MATRIX_CONFIG, rope, "./my-model"))]
    text = StringIO()
    console = Console(file=text, width=80, highlight=False)
    for part in runtime_parts(readings):
        console.print(part)
    table = "\n".join(line.rstrip() for line in text.getvalue().strip("\n").splitlines())
    shown = {key: MATRIX_CONFIG[key] for key in ("rope_parameters", "max_position_embeddings")}
    return f"```json\n{json.dumps(shown, indent=1)}\n```\n\n```\n{table}\n```"


def replaced(text: str, marks: tuple[str, str], content: str) -> str:
    """Returns ``text`` with the part between two marks replaced."""
    before, begin, rest = text.partition(marks[0])
    _, end, after = rest.partition(marks[1])
    assert begin and end, f"the README has no {marks[0]}"
    return f"{before}{begin}\n{content}\n{end}{after}"


def main() -> None:
    is_check = "--check" in sys.argv[1:]
    current = README.read_text()
    wanted = replaced(current, METHODS, methods_table())
    wanted = replaced(wanted, TASKS, tasks_table())
    wanted = replaced(wanted, MATRIX, matrix_example())
    if not is_check or families_heading() in current:
        wanted = replaced(wanted, FAMILIES, families_table())
    pages = {README: wanted, DOCS / "methods.md": methods_page(), DOCS / "cli.md": cli_page()}
    stale = [path for path, text in pages.items() if not path.is_file() or path.read_text() != text]
    if is_check:
        if stale:
            sys.exit(f"Not up to date: {', '.join(path.name for path in stale)}. Run: python scripts/gen_docs.py")
        return
    DOCS.mkdir(exist_ok=True)
    for path in stale:
        path.write_text(pages[path])


if __name__ == "__main__":
    main()
