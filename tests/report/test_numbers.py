"""Every number of a record is on the terminal and in every format; here each is formatted by hand."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from markdown_it import MarkdownIt

from ropectl.printable import printable
from ropectl.records import to_json
from ropectl.report.document import Cell, Column, Row, Sentence, Table, View
from ropectl.report.views import compare_methods, eval_passkey, eval_perplexity, eval_tasks
from ropectl.report.writers.csv import COLUMNS
from ropectl.report.writers.formats import FORMATS
from ropectl.report.writers.markdown import markdown_escape
from ropectl.report.writers.terminal import terminal_lines
from ropectl.report.writers.tex_text import latex_escape

from . import records


def by_hand(value: float | None) -> str:
    """At least three digits."""
    if value is None:
        return "n/a"
    digits = 2 if value < 100 else 1 if value < 1000 else 0
    return f"{value:.2e}" if value >= 100_000 else f"{value:.{digits}f}"


def comparison_numbers(record: dict[str, Any]) -> Iterator[str]:
    for row in record["rows"]:
        yield from (by_hand(point["perplexity"]) for point in row["perplexity"])
        yield from (str(entry["correct"]) for entry in row["passkey"])
        yield from (str(value) for value in row["reach"].values() if value)
        yield f"{row['seconds']:.1f}"
        if row["short_delta"] is not None and not math.isnan(row["short_delta"]):
            yield f"{row['short_delta'] if abs(row['short_delta']) >= 5e-4 else 0:+.1%}"
        if not record["same_tokens"]:
            bits = (point["bits_per_byte"] for point in row["perplexity"])
            yield from (f"{value:.3f}" for value in bits if value is not None)


def perplexity_numbers(record: dict[str, Any]) -> Iterator[str]:
    for point in record["points"]:
        yield from (str(point["context_length"]), by_hand(point["perplexity"]), str(point["num_tokens"]))
        if point["ci_low"] is not None:
            yield from (by_hand(point["ci_low"]), by_hand(point["ci_high"]))
        if point["bits_per_byte"] is not None:
            yield f"{point['bits_per_byte']:.4f}"
        for key in ("gain_over_trained", "gain_ci_low", "gain_ci_high"):
            if point[key] is not None:
                yield f"{point[key]:+.4f}"
        yield from (str(point[key]) for key in ("short_context", "num_candidates") if point[key])


def passkey_numbers(record: dict[str, Any]) -> Iterator[str]:
    for result in record["lengths"]:
        yield from (str(cell["correct"]) for cell in result["depths"])
        yield from (str(result["length"]), str(result["correct"]), f"{100 * result['accuracy']:.1f}%", "12.5%", "87.5%")


def tasks_numbers(record: dict[str, Any]) -> Iterator[str]:
    for result in record["tasks"]:
        for entry in result["lengths"]:
            score, low, high = (round(100 * entry[key]) for key in ("score", "ci_low", "ci_high"))
            yield from (str(score), f"({low}-{high})")


CASES: list[tuple[View, Any, Callable[[dict[str, Any]], Iterator[str]]]] = [
    (compare_methods.VIEW, records.made(records.comparison()), comparison_numbers),
    (
        compare_methods.VIEW,
        records.made(records.comparison(lengths=[999 * n for n in range(1, 21)])),
        comparison_numbers,
    ),
    (compare_methods.VIEW, records.made(records.several_models()), comparison_numbers),
    (compare_methods.VIEW, records.made(records.strange_numbers()), comparison_numbers),
    *(
        (eval_perplexity.VIEW, records.made(records.perplexity(name)), perplexity_numbers)
        for name in ("prefix", "tail", "key-tokens")
    ),
    (eval_passkey.VIEW, records.made(records.passkey()), passkey_numbers),
    (eval_passkey.VIEW, records.made(records.passkey("position", 17)), passkey_numbers),
    (eval_tasks.VIEW, records.made(records.tasks()), tasks_numbers),
]


@pytest.mark.parametrize("number", range(len(CASES)))
def test_every_number_is_seen(number: int) -> None:
    view, record, numbers = CASES[number]
    lines = [line.plain for line in terminal_lines(view.all_parts(record), 80)]
    seen = set(re.sub(r"[*<=?;.,]*(\s|$)", " ", "\n".join(lines)).split())
    seen |= {word.rstrip("*<=?") for line in lines for word in line.split()}
    missing = [each for each in numbers(to_json(record)) if each not in seen]
    assert not missing and all(len(line) <= 80 for line in lines)


def without_markup(text: str) -> str:
    """The words of a text in Markdown or LaTeX, numbers as they were before they were set."""
    text = re.sub(
        r"\$([-+]?[\d.]+)\\times10\^{(-?)(\d+)}\$", lambda found: f"{found[1]}e{found[2] or '+'}{found[3]:>02}", text
    )
    text = re.sub(r"\\(phantom|rlap){[^}]*}|\\ropectlstack", "", text).replace("}{", "} {")
    text = re.sub(r"\\textbf{(([^{}]|{[^}]*})*)}|\*\*|\\\*|{\\scriptsize", r"\1", text)
    return text.replace("$", "").replace("\\%", "%").replace("{*}", "").replace("|", " ").replace("&", " ")


@pytest.mark.parametrize("form", ["markdown", "latex"])
@pytest.mark.parametrize("number", range(len(CASES)))
def test_every_number_is_written(number: int, form: str) -> None:
    view, record, numbers = CASES[number]
    words = without_markup(FORMATS[form].write(view, record)).split()
    seen = {*words, *(word.strip("[],{}\\") for word in words)}
    wanted = {part for each in numbers(to_json(record)) for part in re.split(r"\((\d+)-(\d+)\)", each) if part}
    assert not wanted - {part.strip("()") for part in seen}


def csv_rows(view: View, record: dict[str, Any]) -> list[dict[str, str]]:
    text = FORMATS["csv"].write(view, records.made(record))
    assert text.splitlines()[0] == ",".join(COLUMNS) and "\r" not in text
    rows = list(csv.DictReader(io.StringIO(text)))
    assert all(None not in row and None not in row.values() for row in rows), "as many fields as columns"
    return rows


def test_csv_has_every_value_of_a_comparison_unrounded() -> None:
    record = records.several_models()
    rows = csv_rows(compare_methods.VIEW, record)
    keys = [(r["model"], r["method"], r["tuned"], r["measure"], r["protocol"], r["length"], r["depth"]) for r in rows]
    assert len(set(keys)) == len(keys), "a value a row, each named"
    found = dict(zip(keys, rows, strict=True))
    for row in record["rows"]:
        about = (row["model"], row["method"], "true" if row["training"] else "false")
        for protocol, points in (("prefix", row["perplexity"]), ("tail", row["tail"])):
            for point in points:
                entry = found[(*about, "perplexity", protocol, str(point["context_length"]), "")]
                assert (float(entry["value"]) if entry["value"] else None) == point["perplexity"]
                assert (float(entry["ci_low"]) if entry["ci_low"] else None) == point["ci_low"]
                assert int(entry["n"]) == point["num_tokens"] and entry["n_of"] == "tokens"
                assert entry["beyond_capacity"] == str(point["beyond_capacity"]).lower()
        for result in row["passkey"]:
            for cell, depth in ((result, ""), *((cell, str(cell["depth"])) for cell in result["depths"])):
                entry = found[(*about, "passkey", "", str(result["length"]), depth)]
                assert float(entry["value"]) == cell["accuracy"] and int(entry["n"]) == cell["trials"]
        computes = row["reach"]["computes"]
        shown = float(found[(*about, "reach_computes", "", "", "")]["value"])
        assert shown == (math.inf if computes is None else computes)
        for sense in ("models", "uses"):
            assert found[(*about, f"reach_{sense}", "", "", "")]["value"] == str(
                "" if row["reach"][sense] is None else row["reach"][sense]
            )


@pytest.mark.parametrize(
    ("view", "record", "measures"),
    [
        (eval_perplexity.VIEW, records.perplexity("tail"), {"perplexity", "gain_over_trained", "reach_models"}),
        (eval_perplexity.VIEW, records.perplexity("key-tokens"), {"perplexity", "candidates_perplexity"}),
        (eval_perplexity.VIEW, records.perplexity(), {"perplexity", "bits_per_byte", "nll_by_position", "short_delta"}),
        (eval_passkey.VIEW, records.passkey("position"), {"passkey", "answer_logprob", "k_max_0.2", "reach_uses"}),
        (eval_tasks.VIEW, records.tasks(), {"score", "answer_logprob", "reach_uses"}),
    ],
)
def test_csv_of_the_other_commands(view: View, record: dict[str, Any], measures: set[str]) -> None:
    rows = csv_rows(view, record)
    assert measures <= {row["measure"] for row in rows}
    assert {row["method"] for row in rows} == {record["method"]}
    keys = [tuple(row[key] for key in ("task", "measure", "length", "depth", "position")) for row in rows]
    assert len(set(keys)) == len(keys)
    for row in rows:
        assert row["value"] == "" or row["value"] == repr(float(row["value"])) or row["value"].isdigit()


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_no_spreadsheet_runs_what_a_record_says(start: str) -> None:
    record = records.passkey() | {"model": f"{start}cmd()", "method": "-yarn"}
    rows = csv_rows(eval_passkey.VIEW, record)
    assert {row["model"] for row in rows} == {printable(f"'{start}cmd()")} and rows[0]["method"] == "'-yarn"
    assert any(float(row["value"]) < 0 for row in rows if row["value"]), "a negative number stays one"


HOSTILE = 'a|b *c* _d_ <e> [f](g) `h` # $i$ & ~j \\k {l} ^m % "n" -- \' --- 1. 中文'


def hostile_view() -> View:
    table = Table(HOSTILE, HOSTILE, [Column(HOSTILE), Column(HOSTILE, is_text=True)], [])
    row = Row(HOSTILE, [Cell(HOSTILE, is_best=True), Cell(HOSTILE)])
    return View(
        lambda _: [Table(table.title, table.first, table.columns, [row, Row("* x", row.cells)]), Sentence(f"- {HOSTILE}"),
                   Sentence(f"1. {HOSTILE}"), Sentence(f"# {HOSTILE}")],
        is_headed=False,
    )  # fmt: skip


def test_markdown_is_read_as_it_is_written() -> None:
    """By another program, a CommonMark parser with GitHub's tables: the same texts in cells, and no other markup."""
    html = MarkdownIt("commonmark").enable("table").parse(FORMATS["markdown"].write(hostile_view(), {}))
    kinds = [token.type for token in html]
    assert kinds.count("table_open") == 1 and kinds.count("tr_open") == 3 and kinds.count("td_open") == 6
    assert not {"bullet_list_open", "ordered_list_open", "heading_open", "html_block", "fence"} & set(kinds)
    inline = [token.children or [] for token in html if token.type == "inline"]
    texts = ["".join(child.content for child in children) for children in inline]
    assert sum(HOSTILE in text for text in texts) == 1 + 3 + 5 + 3
    allowed = {"text", "text_special", "strong_open", "strong_close", "softbreak"}
    assert {child.type for children in inline for child in children} <= allowed


#: How lines begin that define a command, which no small reader can check.
DEFINITIONS = (r"\providecommand", r"\ifdefined")


def latex_problems(text: str) -> list[str]:
    """What would stop LaTeX, or set something else: a small reader of the few things that a table is made of."""
    problems, depth, stack = [], 0, []
    body = "\n".join(
        re.sub(r"(?<!\\)%$", "", line) for line in text.split("\n") if not line.startswith(("%", *DEFINITIONS))
    )
    for command, name in re.findall(r"\\(begin|end){(\w+\*?)}", body):
        if command == "begin":
            stack.append(name)
        elif not stack or stack.pop() != name:
            problems.append(f"end of {name}")
    plain = re.sub(r"\\[#$%&_{}\\]", "", body)
    for character in plain:
        depth += {"{": 1, "}": -1}.get(character, 0)
        if depth < 0:
            problems.append("brace")
    comparing = plain.replace("\\ifdim\\width>\\linewidth", "")
    problems += ["brace"] * bool(depth) + [f"raw {c}" for c in "#%_~|<>" if c in comparing] + stack
    problems += ["raw ^"] * (plain.count("^") != len(re.findall(r"\\times10\^{-?\d+}\$", plain)))
    problems += ["odd $"] * (plain.count("$") % 2)
    for specification, lines in re.findall(
        r"\\begin{tabular}(?:\[t\])?{@{}([^\n]*?)(?:@{})?}\n(.*?)\\end{tabular}", body, re.DOTALL
    ):
        columns = re.sub(r"p{\d+pt}", "p", specification)
        assert set(columns) <= set("lrp")
        for line in lines.split("\n"):
            if line and not line.startswith(("\\toprule", "\\midrule", "\\bottomrule", "\\addlinespace")):
                cells = re.sub(r"\\&", "", line).count("&") + int(
                    (re.findall(r"^\\multicolumn{(\d+)}", line) or [1])[0]
                )
                problems += [f"{cells} cells: {line}"] * (cells != len(columns))
                problems += [f"no end: {line}"] * (not line.endswith((r" \\", r" \tabularnewline")))
                problems += [f"argument: {line}"] * line.startswith(("[", "*"))
    labels = re.findall(r"\\label{([^}]*)}", body)
    problems += ["labels"] * (len(set(labels)) != len(labels) or len(labels) != body.count("\\caption["))
    return problems


@pytest.mark.parametrize("number", range(len(CASES)))
def test_latex_is_whole(number: int) -> None:
    view, record, _ = CASES[number]
    text = FORMATS["latex"].write(view, record)
    assert not latex_problems(text) and "▁" not in text and "█" not in text and "booktabs" in text


def test_hostile_text_in_latex() -> None:
    """In the caption, heads, cells and notes; names again in a second panel. The short caption knows no command."""
    text = FORMATS["latex"].write(hostile_view(), {})
    whole = text.replace("\\allowbreak{}", "")
    assert not latex_problems(text) and whole.count(latex_escape(HOSTILE)) == 1 + 3 + 5 + 3 + 2
    assert latex_escape("a_b%c--d") == r"a\_b\%c-{}-d" and markdown_escape("a_b|c") == r"a\_b\|c"
    assert latex_problems("\\begin{tabular}{@{}lr@{}}\na_b & c \\\\\n\\end{tabular}") == ["raw _"], (
        "the reader finds something"
    )


def test_best_is_bold_where_there_is_bold() -> None:
    record = records.made(records.comparison(("none", "pi:factor=4", "yarn:factor=4")))
    best = by_hand(min(row.perplexity[0].perplexity for row in record.rows))
    assert f"\\textbf{{{best}}}" in FORMATS["latex"].write(compare_methods.VIEW, record)
    assert f"**{best}**" in FORMATS["markdown"].write(compare_methods.VIEW, record)
    seen = "\n".join(line.plain for line in terminal_lines(compare_methods.VIEW.all_parts(record), 80))
    assert f"{best}<" in seen and "< best of its column, told apart from every other in pairs" in seen
