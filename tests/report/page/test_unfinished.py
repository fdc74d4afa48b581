"""A comparison that was killed: what is there is shown, what is missing counted, and how to go on said."""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ropectl.compare import factory
from ropectl.compare.run import compare_methods
from ropectl.compare.unfinished import unfinished_comparison
from ropectl.evaluate.config import CompareConfig
from ropectl.records import to_json
from ropectl.report.runs_read import read_plan
from tests.report.page.reader import problems, read

Run = Callable[..., tuple[int, str, str]]
PageOf = Callable[..., str]


@pytest.mark.process
@pytest.mark.usefixtures("no_figures")
def test_a_killed_run(
    config: CompareConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page_of: PageOf, ropectl: Run
) -> None:
    original, calls = factory.measure_perplexity, []

    def killed(*args: Any, **kwargs: Any) -> Any:
        calls.append(1)
        if len(calls) == 3:  # after the cells of the unscaled model
            raise KeyboardInterrupt
        return original(*args, **kwargs)

    monkeypatch.setattr(factory, "measure_perplexity", killed)
    with pytest.raises(KeyboardInterrupt):
        compare_methods(config, tmp_path / "run")
    monkeypatch.setattr(factory, "measure_perplexity", original)
    plan = json.loads((tmp_path / "run" / "plan.json").read_text())
    total, done = len(plan["manifest"]["cells"]), len(list((tmp_path / "run" / "cells").glob("*.json")))
    assert 0 < done < total and not (tmp_path / "run" / "comparison.json").exists()
    html = page_of(tmp_path / "run")
    assert problems(html) == []
    page = read(html)
    assert f"Unfinished: {total - done} of {total} cells are missing" in page.body_text
    assert "Nothing was measured yet" in page.body_text and not any(
        "pick" in tag.attributes.get("class", "") for tag in page.all("tr")
    )
    line = page.all("code")[0].text
    code, out, err = ropectl(*shlex.split(line)[1:], "--format", "json")
    assert code == 0 and f"{done} of {total} cells are already" in err, err
    assert "Unfinished" not in read(page_of(tmp_path / "run")).body_text
    assert json.loads(out)["pick"] is not None or json.loads(out)["verdict"]


def test_with_all_cells_it_says_what_the_comparison_says(comparison: Path, record: Any) -> None:
    """The rows are put together by the very rules of a run that ends."""
    plan = read_plan(comparison)
    assert plan is not None
    unfinished = to_json(unfinished_comparison(comparison, plan))
    assert unfinished["rows"] == record["rows"] and unfinished["unfinished"]["missing"] == 0
    assert unfinished["manifest"]["config"] == record["manifest"]["config"]


@pytest.mark.process
@pytest.mark.usefixtures("no_figures")
def test_tuned_rows(config: CompareConfig, tmp_path: Path, page_of: PageOf) -> None:
    """Rows, in their order, are those of the run that ends; what a training lacks is counted."""
    recipe, text = tmp_path / "recipe.yaml", tmp_path / "text.txt"
    text.write_text("\n".join(f"def function_{i}(argument):\n    return argument * {i * i}\n" for i in range(400)))
    recipe.write_text(f"text: {text}\nsteps: 2\nbatch_size: 1\nseq_len: 160\nwarmup_steps: 0\n")
    record = compare_methods(config.model_copy(update={"finetune": recipe}), tmp_path / "run").record
    html = page_of(tmp_path / "run")
    assert problems(html) == [] and "Measured after its own training" in read(html).body_text
    plan = read_plan(tmp_path / "run")
    assert plan is not None
    unfinished = to_json(unfinished_comparison(tmp_path / "run", plan))
    assert unfinished["unfinished"]["missing"] == 0 and any(row["training"] for row in unfinished["rows"])
    for ours, theirs in zip(unfinished["rows"], record["rows"], strict=True):
        assert {**ours, "training": None} == {**theirs, "training": None}
        assert (ours["training"] or {}).get("id") == (theirs["training"] or {}).get("id")
    last = [cell["id"] for cell in record["manifest"]["cells"] if cell["training"]][-1]
    (tmp_path / "run" / "cells" / f"{last}.json").unlink()
    (tmp_path / "run" / "comparison.json").unlink()
    text_of_page = read(page_of(tmp_path / "run")).body_text
    assert "Unfinished: 1 of" in text_of_page and "1 cell missing" in text_of_page


@pytest.mark.process
@pytest.mark.usefixtures("no_figures")
def test_damaged_and_foreign_cells_count_as_missing(comparison: Path, tmp_path: Path, page_of: PageOf) -> None:
    folder = tmp_path / "run"
    shutil.copytree(comparison, folder)
    (folder / "comparison.json").unlink()
    cells = sorted((folder / "cells").glob("*.json"))
    cells[0].write_text("{")
    cells[1].write_text(cells[2].read_text())
    cells[3].unlink()
    html = page_of(folder)
    assert problems(html) == [] and f"Unfinished: 3 of {len(cells)} cells" in read(html).body_text


@pytest.mark.process
@pytest.mark.usefixtures("no_figures")
def test_another_request_in_the_same_folder(comparison: Path, tmp_path: Path, page_of: PageOf) -> None:
    """The page is of what was asked for last."""
    folder = tmp_path / "run"
    shutil.copytree(comparison, folder)
    plan = json.loads((folder / "plan.json").read_text())
    plan["manifest"]["cells"].append({**plan["manifest"]["cells"][-1], "id": "0123456789abcdef"})
    (folder / "plan.json").write_text(json.dumps(plan))
    assert "Unfinished: 1 of" in read(page_of(folder)).body_text


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        ("{", "is not valid JSON"),
        ('{"a": 1' + "0" * 5000 + "}", "a number of thousands of digits"),
        ("[]", "is not a plan"),
        ("{}", "model is wrong: Field required"),
        ('{"schema_version": 9}', "schema_version"),
    ],
)
def test_a_damaged_plan(tmp_path: Path, ropectl: Run, damage: str, words: str) -> None:
    (tmp_path / "plan.json").write_text(damage)
    code, _, err = ropectl("report", str(tmp_path))
    assert words in " ".join(err.split()) and "Cannot read" not in err, err
    assert code == 2 and "plan.json" in err and "Traceback" not in err
    assert not (tmp_path / "report.html").exists()
