"""A GGUF file and the folder that it was converted from."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.checkpoint.fake_servers import FakeLlama, serving, stock_rows
from tests.gguf.loadable_gguf import write_loadable

pytestmark = pytest.mark.process

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def file_and_folder(ropectl: Run, tmp_path: Path) -> tuple[Path, Path]:
    """A scaled file, and the folder that holds the same weights and scaling."""
    plain = write_loadable(tmp_path / "plain.gguf", "llama", {}, {})
    scale = ("-m", "yarn", "--factor", "4")
    file, base, folder = tmp_path / "model.gguf", tmp_path / "base", tmp_path / "folder"
    for arguments in (("--gguf-patch", plain, *scale, "-o", file), (plain, "-m", "none", "-o", base)):
        code, _, err = ropectl("patch", *arguments)
        assert code == 0, err
    code, _, err = ropectl("patch", base, *scale, "-o", folder)
    assert code == 0, err
    return file, folder


def test_the_folder_is_computed_in_place_of_the_file(
    ropectl: Run, file_and_folder: tuple[Path, Path], tmp_path: Path
) -> None:
    file, folder = file_and_folder
    arguments = ("verify-runtime", file, "--length", "900", "--positions", "40", "--format", "json", "--endpoint")
    with serving(FakeLlama(stock_rows(folder))) as url:
        code, out, err = ropectl(*arguments, url, "--reference", folder)
    assert code == 0, err
    record = json.loads(out)
    assert record["reference"] == str(folder) and record["model"] == str(file) and record["agrees"]
    assert record["server"]["details"] == {"weights": "Q8_0"}
    # A file whose own keys are wrong: what the server computes is what they say, and not what the folder means.
    code, _, err = ropectl("patch", "--gguf-patch", file, "--replace", "-m", "pi:factor=2", "-o", tmp_path / "2.gguf")
    assert code == 0, err
    with serving(FakeLlama(stock_rows(folder, rope_type="linear", factor=2.0))) as url:
        arguments = ("verify-runtime", tmp_path / "2.gguf", *arguments[2:])
        code, out, err = ropectl(*arguments, url, "--reference", folder)
    assert (code, json.loads(out)["verdict"]) == (1, "gguf-keys"), err


def test_another_folder_is_refused(
    ropectl: Run, file_and_folder: tuple[Path, Path], checkpoint: Callable[..., Path]
) -> None:
    file, folder = file_and_folder
    for wrong, words in ((checkpoint(), "was not converted from"), (file, "is a GGUF file")):
        code, _, err = ropectl("verify-runtime", file, "--reference", wrong, "--endpoint", "http://localhost:9")
        assert code == 2 and words in err
    code, _, err = ropectl("verify-runtime", folder, "--reference", folder, "--endpoint", "http://localhost:9")
    assert code == 2 and "leave it out" in err
