"""The guide's way from a book to a table in a paper, run as it is written, in both languages."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from ropectl.builtin import TINY_MODEL_DIR
from ropectl.data.sources import open_source

ROOT = Path(__file__).parent.parent
Run = Callable[..., tuple[int, str, str]]

#: What makes step 1 short; nothing else is changed.
LESS = ("--documents", "9", "--length", "256,512", "--depths", "3", "--trials", "2")


def section(readme: str, heading: str) -> list[list[str]]:
    """The commands of a section."""
    text = (ROOT / readme).read_text()
    block = re.search(r"```bash\n(.*?)```", text[text.index(f"## {heading}\n") :], re.DOTALL)
    assert block is not None
    return [shlex.split(line)[1:] for line in block[1].splitlines() if line.startswith("ropectl ")]


ENGLISH = section("README.md", "From a book to a table in a paper")


def test_both_languages_say_the_same() -> None:
    assert section("README.zh-CN.md", "从一本书到论文里的一张表") == ENGLISH and len(ENGLISH) == 3


@pytest.mark.process
def test_a_book_becomes_a_table(ropectl: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my-model").symlink_to(TINY_MODEL_DIR)
    book = "".join(document.text for _, document in zip(range(4), open_source("builtin:stdlib"), strict=False))
    (tmp_path / "novel.txt").write_text(book[:60_000])
    compare, table, figures = ENGLISH
    code, out, err = ropectl(*compare, *LESS)
    assert code == 0, err
    assert "9 windows of 1 document of novel.txt" in out and "Passkeys, of 12 a length, 2 seeds" in out
    code, _, err = ropectl(*table)
    assert code == 0, err
    latex = (tmp_path / "paper" / "tables.tex").read_text()
    captions = re.findall(r"\\caption.*", latex)
    labels = re.findall(r"\\label\{(.*?)\}", latex)
    assert len(captions) == len(labels) == len(set(labels)) >= 5
    assert all("Model my-model" in caption and "novel.txt" in caption for caption in captions)
    assert any("n = 9 windows of 1 document" in caption for caption in captions)
    assert "in pairs" in latex and re.search(r"\[\d+\.\d\d, \d+\.\d\d\]", latex), "values with intervals"
    code, _, err = ropectl(*figures)
    assert code == 0, err
    for name in ("perplexity.pdf", "passkeys.pdf"):
        assert (tmp_path / "paper" / "figures" / name).read_bytes().startswith(b"%PDF-")
    assert "novel.txt" in (tmp_path / "paper" / "report.html").read_text()
