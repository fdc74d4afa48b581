"""Writes what documentation says about methods, tasks, runtimes and model families from the code, so that it cannot be wrong.

python scripts/gen_docs.py           # rewrites docs/methods.md, docs/cli.md and docs/records/schemas, and the marked parts of README.md and other pages
python scripts/gen_docs.py --check   # exits 1 if one is not up to date, and says which

What is said of model families holds for one version of transformers: with another installed it is not checked.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from pathlib import Path

from docs_cli import cli_page
from docs_methods import methods_page
from docs_records import DOCUMENTS, schema_text
from docs_runtimes import runs_tables
from model_types import census

from ropectl.data.sources import all_sources
from ropectl.hf.config.geometry import describe_rope
from ropectl.records.reading import AnyRecord, read_record
from ropectl.report.figures.catalog import drawings_of
from ropectl.report.figures.output import write_figures
from ropectl.report.tables.runtimes import runtime_parts
from ropectl.report.views.compare_methods import VIEW
from ropectl.report.writers.terminal import terminal_lines
from ropectl.rope.catalog import describe_method
from ropectl.rope.registry import all_methods
from ropectl.runtimes.facts import config_facts
from ropectl.runtimes.matrix import read_all
from ropectl.specs import format_value
from ropectl.tasks.registry import all_tasks, describe_task

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
CHINESE_README = ROOT / "README.zh-CN.md"
DOCS = ROOT / "docs"
RECORDS = DOCS / "records"
IMAGES = DOCS / "images"

#: Which figures of which record are shown.
FIGURES = {"quickstart": ("perplexity", "passkeys"), "smollm2": ("perplexity-tail",)}

METHODS = ("<!-- methods:begin (scripts/gen_docs.py) -->", "<!-- methods:end -->")
TASKS = ("<!-- tasks:begin (scripts/gen_docs.py) -->", "<!-- tasks:end -->")
SOURCES = ("<!-- sources:begin (scripts/gen_docs.py) -->", "<!-- sources:end -->")
MATRIX = ("<!-- matrix:begin (scripts/gen_docs.py) -->", "<!-- matrix:end -->")
RUNS = ("<!-- runs:begin (scripts/gen_docs.py) -->", "<!-- runs:end -->")
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
    """Returns the methods as a Markdown table, short: docs/methods.md has the formulas."""
    lines = ["| Method | What it is | Worth using | Stock `rope_type` | Reference |", "|---|---|---|---|---|"]
    for kind in all_methods().values():
        entry = describe_method(kind)
        name = entry["name"]
        row = (
            f"[`{name}`](docs/methods.md#{name})",
            entry["title"],
            entry["guide"]["use"],
            entry["native"],
            entry["reference"],
        )
        lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines)


def chinese_methods_table() -> str:
    """Returns the methods for README.zh-CN.md: the rows that it has, and new methods in English until somebody translates them."""
    _, _, after = CHINESE_README.read_text().partition(METHODS[0])
    rows = after.partition(METHODS[1])[0].strip().splitlines()
    translated = {row.split("`")[1]: row for row in rows[2:]}
    english = methods_table().splitlines()[2:]
    return "\n".join([*rows[:2], *(translated.get(row.split("`")[1], row) for row in english)])


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


def sources_list() -> str:
    """Returns the kinds of text sources, and what a document is in each, as a Markdown list."""
    return "\n".join(f"- {kind.help}{f': {kind.document}' if kind.document else ''}" for kind in all_sources().values())


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
    readings = read_all(config_facts(MATRIX_CONFIG, rope, "./my-model"))
    table = "\n".join(line.plain.rstrip() for line in terminal_lines(runtime_parts(readings), 80))
    shown = {key: MATRIX_CONFIG[key] for key in ("rope_parameters", "max_position_embeddings")}
    return f"```json\n{json.dumps(shown, indent=1)}\n```\n\n```\n{table}\n```"


def replaced(text: str, marks: tuple[str, str], content: str) -> str:
    """Returns ``text`` with the part between two marks replaced."""
    before, begin, rest = text.partition(marks[0])
    _, end, after = rest.partition(marks[1])
    assert begin and end, f"there is no {marks[0]}"
    return f"{before}{begin}\n{content}\n{end}{after}"


def recorded(name: str) -> AnyRecord:
    """Returns the record of a comparison that documentation shows."""
    return read_record(json.loads((RECORDS / f"{name}.json").read_text()), name)


def printed(name: str) -> str:
    """Returns what ``compare-methods`` prints of a stored record at 80 columns, as Markdown."""
    lines = terminal_lines(VIEW.all_parts(recorded(name)), 80)
    return "\n".join(["```", *(line.plain.rstrip() for line in lines), "```"])


def output_marks(name: str) -> tuple[str, str]:
    return (f"<!-- {name}-output:begin (scripts/gen_docs.py) -->", f"<!-- {name}-output:end -->")


def draw_figures() -> None:
    """Draws the figures that documentation shows; their bytes depend on matplotlib, so they are not checked."""
    for name, kinds in FIGURES.items():
        drawings = [drawing for drawing in drawings_of(recorded(name)) if drawing.name in kinds]
        named = [replace(drawing, name=f"{name}-{drawing.name}") for drawing in drawings]
        for path in write_figures(named, IMAGES, wide=True):
            if path.suffix != ".svg":
                path.unlink()  # a page needs one of the two


#: What is generated inside written pages: file, marks, content.
PARTS: tuple[tuple[Path, tuple[str, str], Callable[[], str]], ...] = (
    (README, METHODS, methods_table),
    (CHINESE_README, METHODS, chinese_methods_table),
    *(
        (page, output_marks(name), partial(printed, name))
        for page in (README, CHINESE_README)
        for name in ("quickstart", "smollm2")
    ),
    (DOCS / "measuring.md", TASKS, tasks_table),
    (DOCS / "measuring.md", SOURCES, sources_list),
    (DOCS / "checkpoints.md", MATRIX, matrix_example),
    (DOCS / "checkpoints.md", RUNS, runs_tables),
    (DOCS / "checkpoints.md", FAMILIES, families_table),
)

#: Pages that are generated as a whole.
PAGES: tuple[tuple[Path, Callable[[], str]], ...] = (
    (DOCS / "methods.md", methods_page),
    (DOCS / "cli.md", cli_page),
    *((RECORDS / "schemas" / f"{name}.schema.json", partial(schema_text, name)) for name in DOCUMENTS),
)


def main() -> None:
    is_check = "--check" in sys.argv[1:]
    wanted = {path: page() for path, page in PAGES}
    for path, marks, content in PARTS:
        text = wanted.get(path) or path.read_text()
        if is_check and content is families_table and families_heading() not in text:
            continue  # written with another version of transformers
        wanted[path] = replaced(text, marks, content())
    stale = [path for path, text in wanted.items() if not path.is_file() or path.read_text() != text]
    if is_check and stale:
        sys.exit(f"Not up to date: {', '.join(path.name for path in stale)}. Run: python scripts/gen_docs.py")
    if is_check:
        return
    for path in stale:
        path.parent.mkdir(exist_ok=True)
        path.write_text(wanted[path])
    draw_figures()


if __name__ == "__main__":
    main()
