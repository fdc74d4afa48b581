"""Files: byte for byte, nothing touched, nothing half written, clear refusals."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ropectl.checkpoint import files as files_module
from ropectl.checkpoint.patching import patch_checkpoint
from ropectl.checkpoint.settings import PatchSettings
from ropectl.checkpoint.staging import staged
from ropectl.errors import ConfigError, RopectlError
from ropectl.reporter import Reporter
from tests.conftest import make_model
from tests.processes import Running

Checkpoint = Callable[..., Path]


def digest(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def settings(source: Path, out: Path, **changes: Any) -> PatchSettings:
    return PatchSettings(**{"model": str(source), "method": "yarn", "factor": 4, "out": out, **changes})


@pytest.fixture
def rich_checkpoint(checkpoint: Checkpoint) -> Path:
    """A checkpoint with everything that people keep next to weights."""
    folder = checkpoint()
    (folder / "LICENSE").write_text("all rights\n")
    (folder / "chat_template.jinja").write_text("{{ messages }}\n")
    (folder / "added_tokens.json").write_text("{}\n")
    (folder / "README.md").write_text("---\nlicense: mit\n---\n# Model\n\nText.\n")
    (folder / "extra").mkdir()
    (folder / "extra" / "notes.txt").write_text("keep me\n")
    (folder / ".git").mkdir()
    (folder / ".git" / "HEAD").write_text("ref\n")
    return folder


def test_everything_else_survives_byte_for_byte(rich_checkpoint: Path, tmp_path: Path) -> None:
    """No weight changes, no type changes, the source is as it was."""
    before = digest(rich_checkpoint)
    record = patch_checkpoint(settings(rich_checkpoint, tmp_path / "out"))
    after = digest(tmp_path / "out")
    assert digest(rich_checkpoint) == before
    changed = {name for name in after if after[name] != before.get(name)}
    assert changed == {"config.json", "README.md", "ropectl.json"}, "the tokenizer has no limit to raise"
    assert set(before) - set(after) == {".git/HEAD"}
    assert record["files"]["num_files"] == len(after) - 1  # all but ropectl.json


def test_the_card_keeps_its_text_and_one_section(rich_checkpoint: Path, tmp_path: Path) -> None:
    patch_checkpoint(settings(rich_checkpoint, tmp_path / "one"))
    patch_checkpoint(settings(tmp_path / "one", tmp_path / "two", method="pi", replace=True))
    text = (tmp_path / "two" / "README.md").read_text()
    assert text.startswith("---\nlicense: mit\n---\n# Model\n\nText.\n")
    assert text.count("ropectl:begin") == text.count("ropectl:end") == 1
    assert "pi:factor=4" in text and "yarn" not in text


@pytest.mark.parametrize(("limit", "expected"), [(128, 512), (1024, 1024), (int(1e30), int(1e30)), (None, None)])
def test_the_tokenizer_limit_is_raised(checkpoint: Checkpoint, tmp_path: Path, limit: Any, expected: Any) -> None:
    """vLLM serves no more than it says; the number 1e30 means no limit and stays."""
    folder = checkpoint()
    path = folder / "tokenizer_config.json"
    content = {**json.loads(path.read_text()), "model_max_length": limit}
    if limit is None:
        del content["model_max_length"]
    path.write_text(json.dumps(content))
    patch_checkpoint(settings(folder, tmp_path / "out"))
    written = json.loads((tmp_path / "out" / "tokenizer_config.json").read_text())
    assert written.get("model_max_length") == expected
    assert isinstance(written.get("model_max_length"), int | None)
    assert {k: v for k, v in written.items() if k != "model_max_length"} == {
        k: v for k, v in content.items() if k != "model_max_length"
    }


@pytest.mark.process
@pytest.mark.usefixtures("warm_probe")
def test_shards(tmp_path: Path) -> None:
    make_model().save_pretrained(tmp_path / "source", max_shard_size="100KB")
    shards = sorted((tmp_path / "source").glob("*.safetensors"))
    assert len(shards) > 2
    record = patch_checkpoint(settings(tmp_path / "source", tmp_path / "out", verify_logits=True))
    assert record["verified"]["logits"]["max_relative_difference"] == 0
    shards[1].unlink()
    with pytest.raises(ConfigError, match=f"incomplete.*{shards[1].name}"):
        patch_checkpoint(settings(tmp_path / "source", tmp_path / "other"))
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("damage", ["short", "garbage", "empty"])
def test_damaged_weights_are_found_by_their_header(checkpoint: Checkpoint, tmp_path: Path, damage: str) -> None:
    folder = checkpoint()
    path = folder / "model.safetensors"
    content = path.read_bytes()
    path.write_bytes({"short": content[:-10], "garbage": b"x" * 100, "empty": b""}[damage])
    with pytest.raises(ConfigError, match=r"incomplete|damaged"):
        patch_checkpoint(settings(folder, tmp_path / "out"))


def test_no_weights(checkpoint: Checkpoint, tmp_path: Path) -> None:
    folder = checkpoint()
    (folder / "model.safetensors").unlink()
    with pytest.raises(ConfigError, match="no weights"):
        patch_checkpoint(settings(folder, tmp_path / "out"))
    reporter = Reporter()
    record = patch_checkpoint(settings(folder, tmp_path / "out", dry_run=True), reporter)
    assert record["method"] == "yarn:factor=4" and "no weights" in " ".join(reporter.notes)


def test_pickles_need_leave(checkpoint: Checkpoint, tmp_path: Path) -> None:
    folder = checkpoint()
    (folder / "training_args.bin").write_bytes(b"pickle")
    reporter = Reporter()
    record = patch_checkpoint(settings(folder, tmp_path / "one"), reporter)
    assert (
        record["files"]["left_out"] == ["training_args.bin"] and not (tmp_path / "one" / "training_args.bin").exists()
    )
    assert "training_args.bin" in " ".join(reporter.notes)
    patch_checkpoint(settings(folder, tmp_path / "two", allow_pickle=True))
    assert (tmp_path / "two" / "training_args.bin").read_bytes() == b"pickle"


@pytest.mark.process
@pytest.mark.usefixtures("warm_probe")
def test_only_pickled_weights(checkpoint: Checkpoint, tmp_path: Path) -> None:
    import torch

    folder = checkpoint()
    torch.save(make_model().state_dict(), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    with pytest.raises(ConfigError, match=r"only pickled weights \(pytorch_model.bin\)") as caught:
        patch_checkpoint(settings(folder, tmp_path / "out"))
    assert "--allow-pickle" in caught.value.hint
    record = patch_checkpoint(settings(folder, tmp_path / "out", allow_pickle=True, verify_logits=True))
    assert record["verified"]["logits"]["max_relative_difference"] == 0


def test_hard_links(rich_checkpoint: Path, tmp_path: Path) -> None:
    """Weights share their bytes; what people edit does not."""
    patch_checkpoint(settings(rich_checkpoint, tmp_path / "out", link=True))

    def same(name: str) -> bool:
        return (rich_checkpoint / name).stat().st_ino == (tmp_path / "out" / name).stat().st_ino

    assert same("model.safetensors") and not any(map(same, ("LICENSE", "README.md", "config.json", "tokenizer.json")))


def test_links_across_file_systems_are_refused(
    checkpoint: Checkpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def elsewhere(*_: object) -> None:
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", elsewhere)
    with pytest.raises(ConfigError, match="different file systems") as caught:
        patch_checkpoint(settings(checkpoint(), tmp_path / "out", link=True))
    assert "Leave out --link" in caught.value.hint and not (tmp_path / "out").exists()


def test_links_in_the_source_are_followed(checkpoint: Checkpoint, tmp_path: Path) -> None:
    """The hub's cache is a folder of links; the result must not be."""
    folder, cache = checkpoint(), tmp_path / "snapshot"
    cache.mkdir()
    for path in folder.iterdir():
        (cache / path.name).symlink_to(path)
    patch_checkpoint(settings(cache, tmp_path / "out"))
    assert not any(path.is_symlink() for path in (tmp_path / "out").iterdir())
    (cache / "gone.txt").symlink_to(tmp_path / "nowhere")
    with pytest.raises(ConfigError, match=r"gone.txt is a broken link"):
        patch_checkpoint(settings(cache, tmp_path / "other"))


def test_a_full_disk_is_said_before_and_during(
    checkpoint: Checkpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = checkpoint()
    with monkeypatch.context() as patch:
        usage = files_module.shutil._ntuple_diskusage(10, 9, 1)
        patch.setattr(files_module.shutil, "disk_usage", lambda _: usage)
        with pytest.raises(ConfigError, match="GB are free"):
            patch_checkpoint(settings(folder, tmp_path / "out"))

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files_module.shutil, "copymode", full)
    with pytest.raises(RopectlError, match="No space left"):
        patch_checkpoint(settings(folder, tmp_path / "out"))
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint"]


def test_existing_results(checkpoint: Checkpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, out = checkpoint(), tmp_path / "out"
    out.mkdir()
    patch_checkpoint(settings(folder, out))  # an empty folder is no result
    with pytest.raises(ConfigError, match="exists already"):
        patch_checkpoint(settings(folder, out, method="pi"))
    before = digest(out)
    with monkeypatch.context() as patch, pytest.raises(RuntimeError):
        patch.setattr("ropectl.checkpoint.proof.prove_checkpoint", lambda *_: (_ for _ in ()).throw(RuntimeError()))
        patch_checkpoint(settings(folder, out, method="pi", overwrite=True))
    assert digest(out) == before, "a failure keeps what was there"
    patch_checkpoint(settings(folder, out, method="pi", overwrite=True))
    assert json.loads((out / "ropectl.json").read_text())["method"] == "pi:factor=4"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint", "out"]


@pytest.mark.parametrize("place", ["checkpoint", "checkpoint/inside", "."])
def test_the_source_is_never_written_to(checkpoint: Checkpoint, tmp_path: Path, place: str) -> None:
    folder = checkpoint()
    before = digest(folder)
    with pytest.raises(ConfigError, match="the source itself"):
        patch_checkpoint(settings(folder, tmp_path / place, overwrite=True))
    assert digest(folder) == before


def test_other_folders_are_not_replaced(checkpoint: Checkpoint, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "thesis.tex").write_text("years")
    with pytest.raises(ConfigError, match="not a checkpoint, so it is not replaced"):
        patch_checkpoint(settings(checkpoint(), home, overwrite=True))
    assert (home / "thesis.tex").read_text() == "years"


_SLOW_COPY = """
import sys, time
from pathlib import Path
from ropectl.checkpoint import files
original, copied = files._copy, Path(sys.argv[3])
def slow(source, target, advance):
    original(source, target, advance)
    copied.touch()
    time.sleep(0.2)
files._copy = slow
sys.argv = ["ropectl", "patch", sys.argv[1], "-m", "yarn", "--factor", "4", "-o", sys.argv[2], "--overwrite"]
from ropectl.cli.app import main
main()
"""


@pytest.mark.process
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_killed_while_copying(checkpoint: Checkpoint, tmp_path: Path, number: signal.Signals) -> None:
    """What stood at the place stays whole; nothing visible is half written; the next run cleans up."""
    folder, out = checkpoint(), tmp_path / "out"
    patch_checkpoint(settings(folder, out, method="pi"))
    before, source = digest(out), digest(folder)
    copied = tmp_path / "a-file-is-copied"
    process = Running(["-c", _SLOW_COPY, folder, out, copied])
    while not copied.exists():
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(number)
    _, err = process.communicate()
    assert process.returncode == (-9 if number == signal.SIGKILL else 128 + number)
    assert digest(out) == before and digest(folder) == source
    left = [path.name for path in tmp_path.iterdir() if path.name.startswith(".")]
    assert bool(left) is (number == signal.SIGKILL)
    if number != signal.SIGKILL:
        assert b"Traceback" not in err and b"Interrupted" in err
    patch_checkpoint(settings(folder, out, overwrite=True))
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_killed_between_two_renames(checkpoint: Checkpoint, tmp_path: Path) -> None:
    """The one moment when nothing stands at the place: the old result is put back by the next run."""
    folder, out = checkpoint(), tmp_path / "out"
    patch_checkpoint(settings(folder, out))
    before = digest(out)
    out.rename(tmp_path / ".out.999999999.old")
    with pytest.raises(ConfigError, match="exists already"):
        patch_checkpoint(settings(folder, out, method="pi"))
    assert digest(out) == before


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"{bad", "not valid JSON"), (b"[1]", "not a JSON object"), (b"\xff\xfe", "not valid JSON")],
)
def test_a_damaged_tokenizer_config_is_found_before_the_copy(
    checkpoint: Checkpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, words: str
) -> None:
    """Weights may be 140 GB: what stops the patch is said before they are copied."""
    folder = checkpoint()
    (folder / "tokenizer_config.json").write_bytes(content)
    monkeypatch.setattr("ropectl.checkpoint.patching.copy_files", lambda *_: pytest.fail("copied first"))
    with pytest.raises(ConfigError, match=words):
        patch_checkpoint(settings(folder, tmp_path / "out"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint"]


def test_numbers_that_are_no_json_are_kept(checkpoint: Checkpoint, tmp_path: Path) -> None:
    """Configs of Mamba hybrids say Infinity; a patch is not the place to refuse what it does not touch."""
    folder = checkpoint(time_step_limit=[0.0, float("inf")])
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "model_max_length": float("inf")}))
    patch_checkpoint(settings(folder, tmp_path / "out"))
    assert json.loads((tmp_path / "out" / "config.json").read_text())["time_step_limit"] == [0.0, float("inf")]
    assert json.loads((tmp_path / "out" / path.name).read_text())["model_max_length"] == float("inf")


@pytest.mark.parametrize("card", [b"# caf\xe9 \xff\n", b"---\r\nlicense: mit\r\n---\r\ntext\r\n", b"no newline"])
def test_the_bytes_of_a_card_are_kept(checkpoint: Checkpoint, tmp_path: Path, card: bytes) -> None:
    folder = checkpoint()
    (folder / "README.md").write_bytes(card)
    patch_checkpoint(settings(folder, tmp_path / "out"))
    written = (tmp_path / "out" / "README.md").read_bytes()
    assert written.startswith(card.rstrip())
    assert written.count(b"\r\n") == (written.count(b"\n") if b"\r\n" in card else 0), "one kind of line ends"


def test_a_marker_left_alone_in_a_card_takes_no_text_with_it(checkpoint: Checkpoint, tmp_path: Path) -> None:
    folder = checkpoint()
    (folder / "README.md").write_text("<!-- ropectl:begin -->\nkeep me\n")
    patch_checkpoint(settings(folder, tmp_path / "one"))
    patch_checkpoint(settings(tmp_path / "one", tmp_path / "two", method="pi", replace=True))
    text = (tmp_path / "two" / "README.md").read_text()
    assert "keep me" in text and text.count("## Context extension") == 1 and "yarn" not in text


def test_names_that_a_file_system_refuses(checkpoint: Checkpoint, tmp_path: Path) -> None:
    """The folder is written beside under a longer name, which counts too."""
    folder = checkpoint()
    for name in ("x" * 300, "x" * 250):
        with pytest.raises(ConfigError, match="longer than the system allows"):
            patch_checkpoint(settings(folder, tmp_path / name))


def test_left_overs_of_names_with_brackets_are_removed(checkpoint: Checkpoint, tmp_path: Path) -> None:
    left = tmp_path / ".m[1].4194304.tmp"  # above the largest pid
    left.mkdir()
    patch_checkpoint(settings(checkpoint(), tmp_path / "m[1]"))
    assert not left.exists() and (tmp_path / "m[1]" / "config.json").is_file()


def test_home_is_meant_by_a_tilde(checkpoint: Checkpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shells leave it alone in --out=~/x, YAML everywhere."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    patch_checkpoint(settings(checkpoint(), Path("~/out")))
    assert (tmp_path / "home" / "out" / "config.json").is_file() and not (tmp_path / "~").exists()


def test_a_result_that_came_to_exist_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    """Two runs at once to one place: the second to end says so."""
    out = tmp_path / "out"
    with pytest.raises(ConfigError, match="been created in the meantime"), staged(out, overwrite=False) as aside:
        aside.mkdir()
        out.mkdir()
        (out / "config.json").write_text("the other's")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert (out / "config.json").read_text() == "the other's"


@pytest.mark.process
def test_copying_by_hand_where_the_system_cannot(
    checkpoint: Checkpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Across file systems, and where there is no such call at all."""
    folder = checkpoint()

    def cannot(*_: object) -> int:
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    monkeypatch.setattr(os, "copy_file_range", cannot, raising=False)
    patch_checkpoint(settings(folder, tmp_path / "one"))
    monkeypatch.delattr(os, "copy_file_range")
    patch_checkpoint(settings(folder, tmp_path / "two"))
    wanted = digest(folder)["model.safetensors"]
    assert digest(tmp_path / "one")["model.safetensors"] == digest(tmp_path / "two")["model.safetensors"] == wanted
