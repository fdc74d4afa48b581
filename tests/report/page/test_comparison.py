"""The page of a comparison: sound HTML, every number of the record, and commands that give the same numbers."""

from __future__ import annotations

import base64
import csv
import io
import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ropectl.compare.run import compare_methods
from ropectl.evaluate.config import CompareConfig
from ropectl.report.page.commands import comparison_command, row_commands
from ropectl.report.runs_read import read_runs
from ropectl.report.tables.words import change_text, perplexity_text, row_names
from ropectl.report.views.methods import GUIDE_TITLES, guide_texts
from ropectl.rope.registry import find_method
from tests.report.page.reader import problems, read

pytestmark = pytest.mark.process

Run = Callable[..., tuple[int, str, str]]
PageOf = Callable[..., str]


def test_it_is_sound(comparison: Path, page_of: PageOf) -> None:
    html = page_of(comparison)
    assert problems(html) == []
    page = read(html)
    titles = [tag.text.strip() for tag in page.all("h2")]
    assert titles == [
        "Verdict", "Comparison", "Figures", "Methods, one by one", "Protocol", "Environment", "Commands", "Records",
    ]  # fmt: skip
    assert len(page.all("figure")) >= 4
    assert all(tag.attributes.get("role") == "img" for tag in page.all("svg"))


def test_the_same_records_give_the_same_bytes(comparison: Path, page_of: PageOf) -> None:
    assert page_of(comparison) == page_of(comparison)


def test_every_number_is_there(comparison: Path, record: Any, page_of: PageOf) -> None:
    text = read(page_of(comparison)).body_text
    for row, name in zip(record["rows"], row_names(read_runs([comparison])[0].record.rows), strict=True):
        assert name in text
        for point in (*row["perplexity"], *row["tail"]):
            assert perplexity_text(point["perplexity"]) in text
            assert f"{perplexity_text(point['ci_low'])} to {perplexity_text(point['ci_high'])}" in text
            assert f"{point['nll_sum'] / point['num_tokens']:.4f}" in text and str(point["num_tokens"]) in text
        for entry in row["passkey"]:
            assert f"of {entry['trials']} a length" in text and f"{entry['answer_logprob']:.3f}" in text
            interval = f"{100 * entry['ci_low']:.0f}% to {100 * entry['ci_high']:.0f}%"
            assert re.search(rf"\b{entry['correct']}\*?\s*{interval}", text)
        if row["short_delta"]:
            assert change_text(row["short_delta"]) in text
        assert str(row["reach"]["computes"] or "unlimited") in text.replace(",", "")
    for reason in record["pick"]["reasons"]:
        assert reason in text
    for name, version in record["manifest"]["versions"].items():
        assert name in text and version in text
    assert all(name in text for name in record["manifest"]["documents"])


def environment(html: str) -> dict[str, str]:
    """The first list of facts of the section on the environment, by name."""
    section = html.partition('id="environment"')[2].partition("</dl>")[0]
    return {name: re.sub("<.*?>", "", text) for name, text in re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", section)}


def test_the_environment_is_the_one_that_was_there(
    comparison: Path, record: Any, page_of: PageOf, tmp_path: Path
) -> None:
    """Resolved, not as it was asked for; a record that does not say that shows what was asked for."""
    told = environment(page_of(comparison))
    manifest = record["manifest"]
    assert (told["device"], told["dtype"], told["attention"]) == ("cpu", "float32", manifest["attention"])
    assert manifest["config"]["device"] == manifest["config"]["dtype"] == "auto" and manifest["attention"]
    for name in ("device", "dtype", "attention"):
        del manifest[name]
    (tmp_path / "old.json").write_text(json.dumps(record))
    told = environment(page_of(tmp_path / "old.json"))
    assert told["device"] == told["dtype"] == "auto" and "attention" not in told


def test_the_tail_is_compared_too(comparison: Path, page_of: PageOf) -> None:
    html = page_of(comparison)
    captions = re.findall(r"<caption>(.*?)</caption>", html)
    assert "Perplexity of the same last tokens, by context (L: trained)" in captions
    assert not [caption for caption in captions if "bars" in caption or "curve" in caption]


def test_methods_are_explained(comparison: Path, page_of: PageOf) -> None:
    page = read(page_of(comparison))
    links = {tag.attributes["href"] for tag in page.all("a") if tag.attributes["href"].startswith("https:")}
    assert "https://arxiv.org/abs/2309.00071" in links and all(link.startswith("https://arxiv.org/") for link in links)
    assert re.search(r"beta_fast\s*16\s*\(best\)?|beta_fast\s*16", page.body_text), "as used, not the default"
    assert "A = 0.1 ln s + 1" in page.body_text
    folded = [re.sub(r"\s+", " ", tag.text).strip() for tag in page.all("details")]
    for name in ("none", "yarn", "dynamic-ntk"):
        texts = guide_texts(find_method(name))
        assert len(texts) == len(GUIDE_TITLES)
        (own,) = [text for text in folded if texts["Slow pairs"] in text and texts["Measured"] in text]
        assert own.startswith("What it does to each pair") and "``" not in own
        assert all(re.search(rf"{title}\s*{re.escape(text)}", own) for title, text in texts.items())
    (script,) = [tag.text for tag in page.all("script") if "beforeprint" in tag.text]
    assert 'querySelectorAll("details")' in script, "printing opens all that is folded, whatever it is"


def test_records_can_be_taken_out(comparison: Path, record: Any, page_of: PageOf) -> None:
    files = {
        tag.attributes["download"]: tag.attributes["href"]
        for tag in read(page_of(comparison)).all("a")
        if "download" in tag.attributes
    }
    content = base64.b64decode(files["comparison.json"].partition(",")[2])
    assert content == (comparison / "comparison.json").read_bytes()
    lines = list(csv.DictReader(io.StringIO(base64.b64decode(files["numbers.csv"].partition(",")[2]).decode())))
    found = {
        (line["method"], int(line["length"])): float(line["value"])
        for line in lines
        if (line["measure"], line["protocol"]) == ("perplexity", "prefix")
    }
    expected = {
        (row["method"], point["context_length"]): point["perplexity"]
        for row in record["rows"]
        for point in row["perplexity"]
    }
    assert found == expected


def test_the_commands_give_the_numbers(comparison: Path, record: Any, page_of: PageOf, ropectl: Run) -> None:
    text = read(page_of(comparison)).body_text
    typed = read_runs([comparison])[0].record
    for row, measured in zip(record["rows"], typed.rows, strict=True):
        commands = row_commands(typed, measured)
        assert [command.line.split()[1] for command in commands] == [
            "eval-perplexity",
            "eval-perplexity",
            "eval-passkey",
        ]
        for command, key in zip(commands, ("perplexity", "tail", "passkey"), strict=True):
            assert command.line in text
            code, out, err = ropectl(*shlex.split(command.line)[1:], "--format", "json")
            assert code == 0, err
            single = json.loads(out)
            assert single["method"] == row["method"]
            assert single["lengths" if key == "passkey" else "points"] == row[key]


def test_the_whole_command_measures_nothing_new(comparison: Path, record: Any, ropectl: Run) -> None:
    command = comparison_command(read_runs([comparison])[0].record, comparison)
    assert command is not None
    before = {path: path.read_bytes() for path in (comparison / "cells").iterdir()}
    code, out, err = ropectl(*shlex.split(command.line)[1:], "--format", "json")
    assert code == 0, err
    again = json.loads(out)
    assert again["rows"] == record["rows"] and again["manifest"]["config"] == record["manifest"]["config"]
    assert {path: path.read_bytes() for path in (comparison / "cells").iterdir()} == before


def test_another_scaling_is_put_aside_by_its_command(
    model_folder: Path, tmp_path: Path, config: CompareConfig, ropectl: Run
) -> None:
    """A checkpoint that is scaled already: the rows of other methods need --replace to be measured alone."""
    code, _, err = ropectl("patch", str(model_folder), "-m", "pi:factor=2", "-o", str(tmp_path / "scaled"))
    assert code == 0, err
    asked = config.model_copy(
        update={
            "model": str(tmp_path / "scaled"),
            "replace": True,
            "methods": ("yarn",),
            "lengths": (128,),
            "passkey": False,
        }
    )
    record = compare_methods(asked, tmp_path / "run").record
    assert [row["method"] for row in record["rows"]] == ["none", "pi:factor=2", "yarn:factor=4"]
    typed = read_runs([tmp_path / "run"])[0].record
    for row, measured in zip(record["rows"], typed.rows, strict=True):
        line = row_commands(typed, measured)[0].line
        code, out, err = ropectl(*shlex.split(line)[1:], "--format", "json")
        assert code == 0, err
        assert json.loads(out)["points"] == row["perplexity"], line


@pytest.mark.usefixtures("no_figures")
def test_several_runs_stand_side_by_side(
    comparison: Path, config: CompareConfig, tmp_path: Path, page_of: PageOf
) -> None:
    second = tmp_path / "second"
    compare_methods(config.model_copy(update={"seed": 4, "methods": ("yarn:beta_fast=16",)}), second)
    html = page_of(comparison, second, comparison)  # one that is named twice is shown once
    assert problems(html) == []
    page = read(html)
    titles = [re.sub(r"\s+", " ", tag.text).strip() for tag in page.all("h2")]
    assert titles == ["Side by side", "first comparison", "second comparison"]
    joint = next(tag for tag in page.all("section") if tag.attributes["id"] == "joint").text
    assert "2 runs side by side" in page.body_text
    assert re.search(r"seed\s*3\s*4", joint), "what differs is said"
    for row in json.loads((second / "comparison.json").read_text())["rows"]:
        assert all(perplexity_text(point["perplexity"]) in joint for point in row["perplexity"])


def test_the_folder_and_its_file_are_one_comparison(comparison: Path) -> None:
    folder, file = read_runs([comparison])[0], read_runs([comparison / "comparison.json"])[0]
    assert folder.record == file.record and (folder.name, file.name) == ("first", "comparison.json")
