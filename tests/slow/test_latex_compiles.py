"""What is written as LaTeX is set by pdfLaTeX, in one column and in two, without an error and nothing wider than its line."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from ropectl.report.record_views import ShownRecord
from ropectl.report.writers.formats import FORMATS
from ropectl.report.writers.tex_text import _SET, _SPECIAL, DEFINITION, latex_escape
from tests.report.every_record import HOSTILE, every_json, renamed, shown

PDFLATEX, PDFTOTEXT = shutil.which("pdflatex"), shutil.which("pdftotext")
WANTED = "apt-get install texlive-latex-base texlive-latex-recommended texlive-fonts-recommended poppler-utils"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PDFLATEX is None or PDFTOTEXT is None, reason=f"needs pdflatex and pdftotext: {WANTED}"),
]

EVERY = every_json()
COLUMNS = ("onecolumn", "twocolumn")

#: What the file itself says that it needs, and nothing else.
PREAMBLE = r"""\documentclass[10pt,%s]{article}
\usepackage[T1]{fontenc}
\usepackage{booktabs}
\usepackage{graphicx}
\begin{document}
"""


def set_by_latex(body: str, folder: Path, columns: str = "onecolumn") -> tuple[str, str]:
    """Sets a text as the body of a paper, twice for its references; returns what LaTeX says and what the pages read."""
    (folder / "body.tex").write_text(body, encoding="utf-8")
    (folder / "paper.tex").write_text(PREAMBLE % columns + "\\input{body.tex}\n\\end{document}\n")
    for _ in range(2):
        done = subprocess.run(
            [str(PDFLATEX), "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "paper.tex"],
            cwd=folder, capture_output=True, timeout=300, check=False,
        )  # fmt: skip
        said = re.sub(r"(?<=.{79})\n", "", done.stdout.decode("utf-8", "replace"))
        assert done.returncode == 0, said[-3000:]
    words = subprocess.run([str(PDFTOTEXT), "-layout", "paper.pdf", "-"], cwd=folder, capture_output=True, check=True)
    return said, words.stdout.decode("utf-8")


def check(shown_records: Sequence[ShownRecord], folder: Path, columns: str) -> str:
    """Sets records, and looks for what would be seen as wrong; returns what the pages read."""
    body = FORMATS["latex"].text(shown_records)
    said, words = set_by_latex(body, folder, columns)
    problems = [line for line in said.splitlines() if line.startswith(("Overfull", "LaTeX Warning", "!"))]
    assert not problems, problems
    for _, label in re.findall(r"(\\label{)([^}]*)", body):
        assert label in (folder / "paper.aux").read_text(encoding="utf-8", errors="replace")
    return words


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("name", EVERY)
def test_every_kind_of_record(name: str, columns: str, tmp_path: Path) -> None:
    words = check([shown(EVERY[name])], tmp_path, columns)
    assert "Table 1:" in words


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("name", EVERY)
def test_hostile_names(name: str, columns: str, tmp_path: Path) -> None:
    """Names are read as they are written; characters without a font by their numbers."""
    words = check([shown(renamed(EVERY[name], HOSTILE))], tmp_path, columns)
    if name == "harness":
        flat = "".join(words.split())
        assert "\\input{/etc/passwd}$x_1^2$100%#1&~{a}" in flat and "U+4E2DU+6587" in flat


def test_a_list_of_tables_before_them(tmp_path: Path) -> None:
    """As in a thesis: what the list says was written before the file is read."""
    body = FORMATS["latex"].text([shown(renamed(EVERY["tasks"], HOSTILE), HOSTILE)])
    _, words = set_by_latex(f"\\listoftables\n{body}", tmp_path)
    listed = "".join(words.partition("Table 1:")[0].split())
    assert "ListofTables" in listed and "\\input{/etc/passwd}" in listed and "U+4E2D" in listed


def test_several_runs_in_one_file(tmp_path: Path) -> None:
    runs = [shown(json, f"run_{number} of {name}") for number, (name, json) in enumerate(list(EVERY.items())[:6])]
    words = check(runs, tmp_path, "twocolumn")
    assert all(each.run in words for each in runs) and words.count("Run run_") >= 6


def test_what_is_said_stands_on_the_page(tmp_path: Path) -> None:
    """Values with intervals, signs, the marks with their notes, and the tail as well as the prefix."""
    words = " ".join(check([shown(EVERY["quickstart"])], tmp_path, "onecolumn").split())
    row = shown(EVERY["quickstart"]).record.rows[0]
    for point in (*row.perplexity, *row.tail):
        assert f"{point.perplexity:.2f}" in words and f"[{point.ci_low:.2f}, {point.ci_high:.2f}]" in words
    assert (
        "past the length that the method is made for" in words and "\u2212" in words and "Pick: dynamic-yarn" in words
    )
    assert "same last tokens" in words and "builtin:stdlib" in words and "L = 512 tokens" in words


@pytest.mark.parametrize(
    "characters", [_SET, _SPECIAL, "\u4e2d\u6587\U0001f389\u03b1\u202f\u0f00"], ids=["set", "special", "other"]
)
def test_every_character_has_a_font(characters: Sequence[str], tmp_path: Path) -> None:
    body = "\n\n".join(f"x{latex_escape(character)}x" for character in sorted(characters))
    said, words = set_by_latex(f"{DEFINITION}\n{body}", tmp_path)
    assert "Missing character" not in said and words.count("x") >= 2 * len(characters)
