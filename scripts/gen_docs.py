"""Writes what documentation says about methods from the registry, so that it cannot be wrong.

python scripts/gen_docs.py           # rewrites the methods table of README.md
python scripts/gen_docs.py --check   # exits 1 if it is not up to date
"""

from __future__ import annotations

import sys
from pathlib import Path

from ropectl.rope.catalog import describe_method
from ropectl.rope.registry import all_methods

README = Path(__file__).parent.parent / "README.md"
BEGIN, END = "<!-- methods:begin (scripts/gen_docs.py) -->", "<!-- methods:end -->"


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


def with_methods(text: str) -> str:
    """Returns ``text`` with the part between the marks replaced."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{methods_table()}\n{END}{after}"


def main() -> None:
    current = README.read_text()
    wanted = with_methods(current)
    if "--check" in sys.argv[1:]:
        sys.exit(current != wanted)
    README.write_text(wanted)


if __name__ == "__main__":
    main()
