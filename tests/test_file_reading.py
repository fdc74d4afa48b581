"""What stands at a path may be anything; reading it ends soon, in bounded memory, with the content or one message."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import threading
import time
from pathlib import Path

import pytest

from ropectl import file_reading
from ropectl.errors import ConfigError
from ropectl.file_reading import home_path, read_bytes, read_text
from ropectl.json_reading import MAX_DEPTH, parse_json, read_object


def special(kind: str, folder: Path) -> Path:
    """A thing in a folder that is no ordinary file."""
    path = folder / kind
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "socket":
            with socket.socket(socket.AF_UNIX) as server:
                server.bind(str(path))
        case "loop":
            path.symlink_to(path)
        case "dangling":
            path.symlink_to(folder / "nowhere")
        case "folder":
            path.mkdir()
        case "zero" | "null":
            return Path("/dev") / kind
    return path


WORDS = {
    "pipe": "is a pipe",
    "socket": "is a socket",
    "loop": "is a link that leads to itself",
    "dangling": "is a link to nothing",
    "folder": "is a folder",
    "zero": "is a device",
    "null": "is a device",
    "absent": "there is no such file",
}


@pytest.mark.parametrize("kind", WORDS)
def test_what_is_no_file_is_named(kind: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=WORDS[kind]):
        read_bytes(special(kind, tmp_path))


def test_a_file_is_not_read_past_its_bound(tmp_path: Path) -> None:
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(100 * 2**30)
    with pytest.raises(ConfigError, match="has 102400 MiB; what belongs there has at most 1000 bytes"):
        read_bytes(tmp_path / "sparse", 1000)


@pytest.mark.process
def test_a_pipe_is_read_to_its_end_where_that_is_allowed(tmp_path: Path) -> None:
    """Written late and in pieces, as a command does that a shell has started beside this one."""
    path = special("pipe", tmp_path)
    writer = subprocess.Popen(["bash", "-c", f"sleep 0.1; exec >{path}; printf one; sleep 0.1; printf two"])
    assert read_bytes(path, pipes=True) == b"onetwo"
    assert writer.wait() == 0


@pytest.mark.parametrize("is_open", [False, True])
def test_a_silent_pipe_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_open: bool) -> None:
    monkeypatch.setattr(file_reading, "PATIENCE", 0.1)
    path = special("pipe", tmp_path)
    descriptor = os.open(path, os.O_RDWR) if is_open else None
    start = time.monotonic()
    with pytest.raises(ConfigError, match=r"Nothing has arrived from the pipe .* for 0.1 s"):
        read_bytes(path, pipes=True)
    assert time.monotonic() - start < 2
    if descriptor is not None:
        os.close(descriptor)


@pytest.mark.process
def test_a_pipe_without_end_is_cut_off(tmp_path: Path) -> None:
    path = special("pipe", tmp_path)
    writer = threading.Thread(target=lambda: subprocess.run(["bash", "-c", f"yes 2>/dev/null >{path}"], check=False))
    writer.start()
    with pytest.raises(ConfigError, match="delivers more than 1000 bytes"):
        read_bytes(path, 1000, pipes=True)
    writer.join()


def test_line_breaks_are_read_as_python_does(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_bytes("ä\r\nb\rc\n".encode())
    assert read_text(path, 100) == path.read_text(encoding="utf-8") == "ä\nb\nc\n"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("~no-such-user/x", "There is no home directory of ~no-such-user"),
        ("n" * 300, "the name is longer than the system allows"),
        ("a/" * 3000, "the name is longer than the system allows"),
        ("a\0b", "null byte"),
    ],
)
def test_an_impossible_path_is_refused_in_one_line(name: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        home_path(name)
    assert len(caught.value.message) < 160


def test_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert home_path("~/x") == tmp_path / "x"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is not valid JSON"),
        ("{", "is not valid JSON"),
        ('{"a": 1, "b": 2, "a": 1}', "says 'a' twice"),
        ('{"x": [{"a": 1, "a": 2}]}', "says 'a' twice"),
        ("[" * 100_000, "levels deep"),
        ("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1), "levels deep"),
        ("1" * 5000, "thousands of digits"),
    ],
    ids=lambda text: text[:20],
)
def test_json_is_read_strictly(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        parse_json(text, "it")


@pytest.mark.parametrize("value", [1, None, "x", [[{}]], {"a": [1, {"b": None}]}, [1e-5, 2**64]])
def test_json_that_is_right_is_read_as_it_is(value: object) -> None:
    assert parse_json(json.dumps(value), "it") == value


def test_deepest_json() -> None:
    text = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    assert parse_json(text, "it") == json.loads(text)


def test_not_a_number_is_refused_where_ropectl_wrote_the_file(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"a": [Infinity, NaN]}')
    assert read_object(path)["a"][0] == float("inf")
    with pytest.raises(ConfigError, match="holds Infinity"):
        read_object(path, allow_nan=False)
