"""Every kind of record is shown in every format that can hold it, and refused in words in the others."""

from __future__ import annotations

import csv
import io
import re

import pytest
from markdown_it import MarkdownIt

from ropectl.errors import ConfigError
from ropectl.records.reading import KINDS
from ropectl.report.document import BestNote, Cell, Column, Row, Sentence, SmallTables, Table, View
from ropectl.report.format_names import REPORT_NAMES, TEXTS
from ropectl.report.record_views import VIEWS, ShownRecord, about_record
from ropectl.report.writers.formats import FORMATS, check_format
from ropectl.report.writers.notes import explains
from ropectl.report.writers.terminal import terminal_lines
from tests.report import records
from tests.report.every_record import HOSTILE, every_json, renamed, shown

EVERY = every_json()


def test_every_kind_has_its_view() -> None:
    assert set(VIEWS) == set(KINDS) == {type(shown(json).record) for json in EVERY.values()}
    assert all("{model}" in view.title for view in VIEWS.values())
    assert tuple(FORMATS) == TEXTS, "every name has its writer"


def as_read(markdown: str) -> str:
    """The texts of Markdown, as another program reads them."""
    tokens = MarkdownIt("commonmark").enable("table").parse(markdown)
    return "\n".join("".join(each.content for each in token.children or []) for token in tokens)


@pytest.mark.parametrize("name", EVERY)
def test_nothing_is_left_out(name: str) -> None:
    """Every table with its name and what was counted, every entry and every sentence; in LaTeX a float for each."""
    one = shown(EVERY[name])
    text, latex = as_read(FORMATS["markdown"].text([one])), FORMATS["latex"].text([one])
    floats = [part for part in one.parts() if isinstance(part, Table | SmallTables)]
    for table in (each for part in floats for each in (part.separate() if isinstance(part, SmallTables) else [part])):
        assert (table.name or table.title) and (table.name or table.title) in text and table.about in text
        assert all(cell.text in text for row in table.rows for cell in row.cells)
        for low, high in (cell.interval for row in table.rows for cell in row.cells if cell.interval):
            assert f"[{low}, {high}]" in text
    assert one.about in text and all(part.text in text for part in one.parts() if isinstance(part, Sentence))
    assert len(re.findall(r"\\label{", latex)) >= len(floats)


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("form", REPORT_NAMES)
def test_what_cannot_be_held_is_refused(name: str, form: str) -> None:
    one = shown(EVERY[name])
    holds = one.record.kind in ("comparison", "perplexity", "passkey", "tasks", "finetune", "harness")
    if form == "csv" and not holds:
        with pytest.raises(ConfigError, match="my run has none: possible are human, json, markdown, latex, html"):
            check_format(form, one.view, "my run", REPORT_NAMES)
        return
    check_format(form, one.view, "my run", REPORT_NAMES)
    if form in FORMATS:
        assert FORMATS[form].text([one]).strip()
    if form == "csv":
        assert len(FORMATS[form].text([one]).splitlines()) > 1, "what claims to have values has some"


def test_csv_of_trainings_and_of_ordinary_tasks() -> None:
    rows = list(csv.DictReader(io.StringIO(FORMATS["csv"].text([shown(records.finetuning())]))))
    found = {(row["measure"], row["length"], row["tuned"]): row["value"] for row in rows}
    training = records.finetuning()["training"]
    for when, tuned in (("validation_before", "false"), ("validation", "true")):
        for measure in ("perplexity", "passkey"):
            for length, value in training[when][measure].items():
                assert float(found[measure, str(length), tuned]) == value
    (row,) = csv.DictReader(io.StringIO(FORMATS["csv"].text([shown(records.harness())])))
    assert (row["task"], row["measure"], row["value"], row["n"]) == ("arc_easy", "acc", "0.25", "2376")


def test_several_runs_are_told_apart() -> None:
    runs = [shown(records.comparison(), "first"), shown(records.passkey(), "second_run")]
    rows = list(csv.DictReader(io.StringIO(FORMATS["csv"].text(runs))))
    alone = FORMATS["csv"].text(runs[:1]).splitlines()[0].split(",")
    assert alone[0] == "run" and {row["run"] for row in rows} == {"first", "second_run"}
    assert len(rows) == sum(len(FORMATS["csv"].text([each]).splitlines()) - 1 for each in runs)
    markdown, latex = FORMATS["markdown"].text(runs), FORMATS["latex"].text(runs)
    assert "## first\n" in markdown and "## second\\_run\n" in markdown
    assert "\\subsection*{first}" in latex and "\\subsection*{second\\_run}" in latex
    assert latex.count("Run second\\_run.") == len(
        re.findall(r"\\begin{table\*?}", latex.partition("{second\\_run}")[2])
    )
    labels = re.findall(r"\\label{(.*?)}", latex)
    assert len(set(labels)) == len(labels) and latex.count("usepackage{booktabs}") == 1


def test_what_a_record_is_of() -> None:
    about = about_record(shown(records.comparison()).record)
    assert about == "Model builtin:tiny; trained length L = 512 tokens; target 2,048 tokens; text builtin:stdlib"
    local = records.perplexity() | {"model": "/home/somebody/models/my-model/", "text": "./books/moby.txt"}
    about = about_record(shown(local).record)
    assert about.startswith("Model my-model; yarn:") and about.endswith("text moby.txt") and "somebody" not in about
    assert about_record(shown(records.several_models()).record).startswith("Models ")


#: Words that are only right where something is drawn, and the formats that draw it.
DRAWN = {"bars of": ("terminal", "markdown"), "curve": ("terminal", "markdown"), "\u2588": ("terminal", "markdown")}


@pytest.mark.parametrize("name", EVERY)
def test_captions_speak_of_what_the_format_has(name: str) -> None:
    """No bars, curves or marks of a terminal where there are none; a mark is explained where it is, and only there."""
    one = shown(EVERY[name])
    texts = {form: FORMATS[form].text([one]) for form in ("markdown", "latex")}
    texts["terminal"] = "\n".join(line.plain for line in terminal_lines(one.view.all_parts(one.record), 80))
    for word, forms in DRAWN.items():
        assert not [form for form, text in texts.items() if word in text and form not in forms]
    for form in ("markdown", "latex"):
        assert "< best" not in texts[form] and "= not told apart from the best" not in texts[form]
    if "continued" in texts["latex"]:  # what goes on on another page is explained there
        return
    for table in re.findall(r"\\begin{table\*?}.*?\\end{table\*?}", texts["latex"], re.DOTALL):
        assert ("Bold: " in table) == ("\\textbf{" in table)
        assert "past the length" in table or "\\rlap{*}" not in table


def test_a_terminal_leaves_out_details_and_what_explains_them() -> None:
    row = Row("a", [Cell("1"), Cell("2")])
    table = Table("T", "x", [Column("one"), Column("two", is_detail=True)], [row])
    detail = Table("D", "x", [Column("one")], [Row("a", [Cell("3", "?")])], is_detail=True)
    note = Sentence("? open", concerns=["?"])
    plain = "\n".join(line.plain for line in terminal_lines([table, detail, note, BestNote("best")], 80))
    assert "two" not in plain and "D" not in plain and "open" not in plain and "best" not in plain
    text = FORMATS["markdown"].text([ShownRecord(View(lambda _: [table, detail, note]), None)])
    assert "two" in text and "**D**" in text and "open" in text
    assert explains(note, detail) and not explains(note, table)


@pytest.mark.parametrize("name", EVERY)
def test_hostile_names_stay_names(name: str) -> None:
    """As LaTeX they are escaped whole: no command of theirs is left."""
    text = FORMATS["latex"].text([shown(renamed(EVERY[name], HOSTILE), HOSTILE)])
    assert "\\input{" not in text and "\\end{table} _" not in text and "\x00" not in text and "\u202e" not in text
    FORMATS["markdown"].text([shown(renamed(EVERY[name], HOSTILE), HOSTILE)])
