"""Whatever stands where a file belongs, and whatever is in it, is answered by one message, soon, and nothing is written."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ropectl import file_reading
from tests.conftest import make_model
from tests.test_file_reading import WORDS, special

Run = Callable[..., tuple[int, str, str]]

SMALL = ["--length", "64", "--documents", "1"]

#: A place that a command reads -> the command, with PLACE for it, and its suffix.
READ: dict[str, tuple[list[str], str]] = {
    "model": (["inspect", "PLACE"], ""),
    "GGUF file": (["inspect", "PLACE"], ".gguf"),
    "GGUF file to patch": (["patch", "--gguf-patch", "PLACE", "-m", "pi", "--factor", "2", "--dry-run"], ".gguf"),
    "text": (["eval-perplexity", "MODEL", *SMALL, "--text", "PLACE"], ".txt"),
    "lines of JSON": (["eval-perplexity", "MODEL", *SMALL, "--text", "PLACE"], ".jsonl"),
    "Parquet": (["eval-perplexity", "MODEL", *SMALL, "--text", "PLACE"], ".parquet"),
    "training text": (["finetune", "MODEL", "-m", "pi", "--factor", "2", "--text", "PLACE", "-o", "OUT"], ".txt"),
    "settings": (["inspect", "MODEL", "-m", "longrope:factor=2,long_factor=@PLACE"], ".json"),
    "settings file": (["eval-perplexity", "MODEL", "--config", "PLACE"], ".yaml"),
    "recipe": (["compare-methods", "MODEL", "-m", "pi:factor=2", "--finetune", "PLACE", "-o", "OUT"], ".yaml"),
    "record": (["report", "PLACE", "-o", "OUT.html"], ".json"),
}

#: Files of a checkpoint that are read, and by which command.
PARTS: dict[str, list[str]] = {
    "config.json": ["inspect", "MODEL"],
    "ropectl.json": ["inspect", "MODEL"],
    "tokenizer.json": ["eval-perplexity", "MODEL", *SMALL],
    "tokenizer_config.json": ["eval-perplexity", "MODEL", *SMALL],
    "model.safetensors": ["eval-perplexity", "MODEL", *SMALL],
    "model.safetensors.index.json": ["patch", "MODEL", "-m", "pi", "--factor", "2", "-o", "OUT"],
}


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(file_reading, "PATIENCE", 0.05)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def model(checkpoint: Callable[..., Path], tmp_path: Path) -> Path:
    return checkpoint().rename(tmp_path / "model")


def refusal(ropectl: Run, folder: Path, arguments: list[str], place: Path, model: Path) -> str:
    """The one message about a command, which has written nothing."""
    words = {"PLACE": str(place), "MODEL": str(model), "OUT": str(folder / "out")}
    for word, value in words.items():
        arguments = [argument.replace(word, value) for argument in arguments]
    before = sorted(folder.rglob("*"))
    code, out, err = ropectl(*arguments)
    *notes, error = err.split("Error: ")
    assert code == 2 and out == "" and len(notes) == 1, err
    assert len(error.strip().splitlines()) <= 2 and len(error) < 700, err
    assert "Errno" not in error and "Error" not in error, err
    assert sorted(folder.rglob("*")) == before
    return error


def put(kind: str, folder: Path, path: Path) -> Path:
    """Puts a special file at a path; devices stay where they are."""
    made = special(kind, folder)
    return made if made.parent == Path("/dev") else made.rename(path) if kind != "loop" else _loop(made, path)


def _loop(made: Path, path: Path) -> Path:
    made.unlink()
    path.symlink_to(path)
    return path


@pytest.mark.parametrize("kind", [kind for kind in WORDS if kind != "folder"])
@pytest.mark.parametrize("role", READ)
def test_a_place_that_was_typed(ropectl: Run, model: Path, tmp_path: Path, role: str, kind: str) -> None:
    arguments, suffix = READ[role]
    place = tmp_path / f"place{suffix}"
    if kind != "absent":
        place = put(kind, tmp_path, place)
    refusal(ropectl, tmp_path, arguments, place, model)


@pytest.mark.parametrize("kind", ["pipe", "socket", "loop", "dangling", "folder", "zero"])
@pytest.mark.parametrize("part", PARTS)
def test_a_part_of_a_checkpoint(ropectl: Run, model: Path, tmp_path: Path, part: str, kind: str) -> None:
    (model / part).unlink(missing_ok=True)
    if kind == "zero":
        (model / part).symlink_to("/dev/zero")
    else:
        put(kind, tmp_path, model / part)
    refusal(ropectl, tmp_path, PARTS[part], model / part, model)


@pytest.mark.parametrize(
    "role", [role for role in READ if role not in ("model", "GGUF file", "GGUF file to patch", "Parquet")]
)
def test_a_file_without_end(ropectl: Run, model: Path, tmp_path: Path, role: str) -> None:
    """100 GiB that take no room on the disk."""
    arguments, suffix = READ[role]
    place = tmp_path / f"place{suffix}"
    with place.open("wb") as file:
        file.truncate(100 * 2**30)
    assert "MiB" in refusal(ropectl, tmp_path, arguments, place, model)


@pytest.mark.parametrize("part", [part for part in PARTS if part != "model.safetensors"])
def test_a_part_without_end(ropectl: Run, model: Path, tmp_path: Path, part: str) -> None:
    with (model / part).open("wb") as file:
        file.truncate(100 * 2**30)
    assert "MiB" in refusal(ropectl, tmp_path, PARTS[part], model / part, model)


DAMAGE: dict[str, bytes] = {
    "nothing": b"",
    "a bracket": b"{",
    "a list": b"[]",
    "a number": b"5",
    "null": b"null",
    "deep lists": b"[" * 100_000,
    "deep objects": b'{"a":' * 100_000,
    "not UTF-8": b'{"a": "\xff\xfe"}',
    "null bytes": bytes(100),
    "a key twice": b'{"a": 1, "a": 2}',
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize(
    "part", ["config.json", "ropectl.json", "tokenizer_config.json", "tokenizer.json", "model.safetensors.index.json"]
)
def test_a_part_of_another_shape(ropectl: Run, model: Path, tmp_path: Path, part: str, damage: str) -> None:
    (model / part).write_bytes(DAMAGE[damage])
    refusal(ropectl, tmp_path, PARTS[part], model / part, model)


@pytest.mark.parametrize("damage", DAMAGE)
def test_an_adapter_of_another_shape(ropectl: Run, model: Path, tmp_path: Path, damage: str) -> None:
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    (adapter / "adapter_config.json").write_bytes(DAMAGE[damage])
    refusal(ropectl, tmp_path, ["inspect", "PLACE"], adapter, model)


@pytest.mark.parametrize("base", ["adapter", "~no-such-user/x", "n" * 300, "", None, 5, ["x"]])
def test_an_adapter_whose_base_cannot_be(ropectl: Run, model: Path, tmp_path: Path, base: Any) -> None:
    """Its own folder among them: that would be read for ever."""
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    (adapter / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": base}))
    refusal(ropectl, tmp_path, ["inspect", "PLACE"], adapter, model)


@pytest.mark.parametrize("kind", ["WordLevel", "Unigram", "WordPiece", "Nonsense", None, 5])
def test_a_tokenizer_of_another_kind(ropectl: Run, model: Path, tmp_path: Path, kind: Any) -> None:
    path = model / "tokenizer.json"
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, "model": {"type": kind} if isinstance(kind, str) else kind}))
    assert "tokenizer" in refusal(ropectl, tmp_path, PARTS["tokenizer.json"], path, model)


def test_a_tokenizer_with_more_words_than_the_model(ropectl: Run, model: Path, tmp_path: Path) -> None:
    make_model(vocab_size=512).save_pretrained(model)
    error = refusal(ropectl, tmp_path, PARTS["tokenizer.json"], model, model)
    assert "1024 words" in error and "512 (vocab_size)" in error


SETTINGS: dict[str, bytes] = {
    "a list as a key": b"[a, b]: 1",
    "a null byte": b"length: 64\x00",
    "5000 digits": b"trials: " + b"9" * 5000,
    "deep lists": b"length: " + b"[" * 40_000,
    "laughter": b"a: &a [x, x]\n" + b"".join(b"%c: &%c [*%c, *%c]\n" % (n, n, n - 1, n - 1) for n in range(98, 123)),
    "a list of itself": b"length: &x [*x]",
    "not UTF-8": b"text: \xff",
    "larger than settings": b"# " * 100_000,
}


@pytest.mark.parametrize("case", SETTINGS)
def test_settings_of_another_shape(ropectl: Run, model: Path, tmp_path: Path, case: str) -> None:
    (tmp_path / "x.yaml").write_bytes(SETTINGS[case])
    refusal(ropectl, tmp_path, ["eval-perplexity", "MODEL", "--config", "PLACE"], tmp_path / "x.yaml", model)


def test_a_list_of_large_numbers_is_quoted_in_one_line(ropectl: Run, model: Path, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(json.dumps([10**400] * 8))
    assert "long_factor" in refusal(ropectl, tmp_path, READ["settings"][0], tmp_path / "x.json", model)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("x.parquet", b"PAR", "begins with b'PAR'"),
        ("x.parquet", b"PAR1" * 5, "Cannot read"),
        ("x.arrow", b"text" * 50, "begins with b'textte'"),
        ("x.arrow", b"\xff" * 400, "Cannot read"),
        ("x.txt#field", b"text" * 50, "names a field"),
        ("x.jsonl", b"x" * 200, "not a JSON object"),
        ("x.jsonl", b'{"text": 5}', "not a JSON object with text"),
    ],
)
def test_texts_of_another_format(
    ropectl: Run, model: Path, tmp_path: Path, name: str, content: bytes, words: str
) -> None:
    (tmp_path / name.partition("#")[0]).write_bytes(content)
    assert words in refusal(ropectl, tmp_path, READ["text"][0], tmp_path / name, model)


def test_what_is_read_is_not_replaced(ropectl: Run, model: Path, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("words " * 500)
    arguments = ["eval-perplexity", "MODEL", *SMALL, "--text", "PLACE", "-o", "PLACE", "--overwrite"]
    assert "is what the result is made from" in refusal(ropectl, tmp_path, arguments, text, model)


@pytest.mark.process
def test_settings_and_records_may_come_through_a_pipe(tmp_path: Path) -> None:
    import subprocess
    import sys

    command = f"{sys.executable} -m ropectl eval-perplexity --print-config --config <(echo 'documents: 3')"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert json.loads(done.stdout)["documents"] == 3
