"""Results stay among their own: nothing is written into a model, over a device, through a link, or among strangers' files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ropectl.errors import ConfigError
from ropectl.output_places import CELLS_FOLDER, COMPARISON_FILE, PLAN_FILE, check_folder, check_output, check_run_folder
from tests.test_file_reading import WORDS, special

Run = Callable[..., tuple[int, str, str]]

RECORD = json.dumps({"schema_version": 1})


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    folder.mkdir()
    for name in ("config.json", "model.safetensors"):
        (folder / name).touch()
    return folder


@pytest.mark.parametrize("kind", [kind for kind in WORDS if kind != "absent"])
def test_a_result_replaces_ordinary_files_only(kind: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=WORDS[kind]):
        check_output(special(kind, tmp_path))


@pytest.mark.parametrize("kind", [kind for kind in WORDS if kind not in ("absent", "folder")])
def test_a_folder_of_results_replaces_nothing(kind: str, tmp_path: Path) -> None:
    for check in (check_folder, check_run_folder):
        folder = tmp_path / check.__name__
        folder.mkdir()
        with pytest.raises(ConfigError, match=WORDS[kind]):
            check(special(kind, folder))


@pytest.mark.parametrize("place", ["x.json", "sub/x.json", "sub/deep/x.json"])
def test_nothing_is_written_into_a_model(model: Path, tmp_path: Path, place: str) -> None:
    (tmp_path / "link").symlink_to(model)
    for folder in (model, tmp_path / "link"):
        for check in (check_output, check_folder, check_run_folder):
            with pytest.raises(ConfigError, match="the folder of a model"):
                check(folder / place)
    check_output(tmp_path / place)


def test_a_config_without_weights_is_no_model(tmp_path: Path) -> None:
    """Some programs call their settings config.json, and their folders hold results."""
    (tmp_path / "config.json").touch()
    check_output(tmp_path / "x.json")
    check_run_folder(tmp_path / "run")


@pytest.mark.parametrize("name", ["config.json", "adapter_config.json"])
def test_a_model_is_no_run(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    with pytest.raises(ConfigError, match=f"it holds {name}"):
        check_run_folder(tmp_path)


RUNS: dict[str, dict[str, str | None]] = {
    "empty": {},
    "killed before its first cell": {PLAN_FILE: RECORD},
    "killed later": {PLAN_FILE: RECORD, CELLS_FOLDER: None},
    "with a plan that is damaged": {PLAN_FILE: "{", CELLS_FOLDER: None},
    "finished": {COMPARISON_FILE: RECORD, PLAN_FILE: RECORD, CELLS_FOLDER: None, "report.html": "<html>"},
    "finished, its cells removed": {COMPARISON_FILE: RECORD},
}
STRANGERS: dict[str, dict[str, str | None]] = {
    "notes": {"notes.txt": ""},
    "hidden": {".git": None},
    "another program's plan": {PLAN_FILE: "[]"},
    "another program's record": {COMPARISON_FILE: '{"results": 5}'},
    "cells in a file": {PLAN_FILE: RECORD, CELLS_FOLDER: ""},
}


def fill(folder: Path, content: dict[str, str | None]) -> None:
    for name, text in content.items():
        if text is None:
            (folder / name).mkdir()
        else:
            (folder / name).write_text(text)


@pytest.mark.parametrize("case", RUNS)
def test_a_run_continues_in_its_own_folder(case: str, tmp_path: Path) -> None:
    fill(tmp_path, RUNS[case])
    check_run_folder(tmp_path)


@pytest.mark.parametrize("case", STRANGERS)
def test_a_run_does_not_begin_among_strange_files(case: str, tmp_path: Path) -> None:
    fill(tmp_path, STRANGERS[case])
    with pytest.raises(ConfigError, match=r"holds files that are not of a run|is a file; the cells"):
        check_run_folder(tmp_path)


@pytest.mark.parametrize("name", [PLAN_FILE, COMPARISON_FILE, CELLS_FOLDER])
def test_no_part_of_a_run_is_a_link_or_a_pipe(name: str, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    fill(run, {COMPARISON_FILE: RECORD} if name != COMPARISON_FILE else {PLAN_FILE: RECORD})
    os.mkfifo(run / name)
    with pytest.raises(ConfigError, match="is a pipe"):
        check_run_folder(run)
    (run / name).unlink()
    (run / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match="link"):
        check_run_folder(run)


def commands(folder: Path, model: Path, out: str) -> list[list[str]]:
    return [
        ["eval-perplexity", str(model), "-o", out, "--overwrite"],
        ["eval-passkey", str(model), "-o", out, "--overwrite"],
        ["eval-tasks", str(model), "-o", out, "--overwrite"],
        ["harness", str(model), "-o", out, "--overwrite"],
        ["inspect", str(model), "--plot", out],
        ["report", str(folder / "record.json"), "-o", out, "--overwrite"],
        ["compare-methods", str(model), "-m", "pi:factor=2", "-o", out],
        ["patch", str(model), "-m", "pi:factor=2", "-o", out, "--overwrite"],
        ["finetune", str(model), "-m", "pi:factor=2", "-o", out, "--overwrite"],
    ]


@pytest.mark.parametrize("place", ["pipe.svg", "dangling.html", "model/config.json", "model/sub/x.html"])
def test_every_command_checks_its_place_first(
    ropectl: Run, checkpoint: Callable[..., Path], tmp_path: Path, place: str
) -> None:
    model = checkpoint().rename(tmp_path / "model")
    os.mkfifo(tmp_path / "pipe.svg")
    (tmp_path / "dangling.html").symlink_to(tmp_path / "nowhere")
    (tmp_path / "record.json").write_text(RECORD)
    before = {path: path.lstat().st_mtime_ns for path in tmp_path.rglob("*")}
    for arguments in commands(tmp_path, model, str(tmp_path / place)):
        code, out, err = ropectl(*arguments)
        assert code == 2 and out == "" and err.startswith("Error: "), (arguments, err)
        assert arguments[0] == "report" or place.split("/")[0] in err
    assert {path: path.lstat().st_mtime_ns for path in tmp_path.rglob("*")} == before
