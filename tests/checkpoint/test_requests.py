"""What is asked for, what is refused, and what people read."""

from __future__ import annotations

import ast
import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ropectl.checkpoint.patching import patch_checkpoint
from ropectl.checkpoint.settings import PatchSettings
from ropectl.errors import ConfigError, MethodError
from ropectl.hf.config.source import read_config
from ropectl.reporter import Reporter

Checkpoint = Callable[..., Path]
Run = Callable[..., tuple[int, str, str]]

LINEAR = {
    "rope_parameters": {"rope_type": "linear", "factor": 4.0, "rope_theta": 10_000.0},
    "max_position_embeddings": 512,
}


def patch(source: Path, **changes: Any) -> dict[str, Any]:
    return patch_checkpoint(PatchSettings(**{"model": str(source), "dry_run": True, **changes}))


def test_scaling_that_is_there_is_not_lost(checkpoint: Checkpoint, ropectl: Run, tmp_path: Path) -> None:
    """Refused with what each policy would give, counted from the trained length and not the declared one."""
    folder = checkpoint(**LINEAR)
    code, out, err = ropectl("patch", str(folder), "-m", "pi", "--factor", "2", "-o", str(tmp_path / "out"))
    assert code == 2 and out == "" and not (tmp_path / "out").exists()
    assert "already scaled: pi:factor=4 over a trained length of 128 tokens" in err
    assert "--replace (pi:factor=2 over 128: 256 tokens)" in err
    assert "--compose (pi:factor=8 over 128: 1024 tokens)" in err


def test_policies(checkpoint: Checkpoint) -> None:
    folder = checkpoint(**LINEAR)
    composed = patch(folder, method="pi", factor=2, compose=True)
    assert composed["method"] == "pi:factor=8" and composed["geometry"]["original_max_position_embeddings"] == 128
    assert patch(folder, method="yarn", factor=2, compose=True)["method"] == "yarn:factor=8"
    assert patch(folder, method="pi", factor=2, replace=True)["method"] == "pi:factor=2"
    assert patch(folder, method="none", replace=True)["rope_parameters"]["rope_type"] == "default"
    assert patch(folder)["method"] == "pi:factor=4", "no option keeps what is there"
    with pytest.raises(MethodError, match="has no extension factor"):
        patch(folder, method="dynamic-ntk", compose=True)
    with pytest.raises(MethodError, match="attention_factor for its own factor"):
        patch(folder, method="yarn:factor=2,attention_factor=1", compose=True)
    with pytest.raises(ConfigError, match="contradict"):
        patch(folder, method="pi", factor=2, compose=True, replace=True)
    with pytest.raises(MethodError, match="none adds nothing"):
        patch(folder, method="none", compose=True)


def test_composing_keeps_other_parameters(checkpoint: Checkpoint) -> None:
    assert patch(checkpoint(**LINEAR), method="yarn:factor=2,beta_fast=16", compose=True)["method"] == (
        "yarn:factor=8,beta_fast=16"
    )


@pytest.mark.parametrize("scaling", [None, {}])
def test_null_scaling_is_plain_rope(checkpoint: Checkpoint, scaling: Any) -> None:
    """An empty value is no instruction."""
    folder = checkpoint(rope_parameters="REMOVE", rope_scaling=scaling, rope_theta=10_000.0)
    record = patch(folder, method="pi", factor=2)
    assert record["before"]["method"] == "none" and record["method"] == "pi:factor=2"


def test_rewriting_adds_the_other_dialect(checkpoint: Checkpoint, tmp_path: Path) -> None:
    """A file of either generation becomes one that both read, without naming a method."""
    scaling = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 128}
    folder = checkpoint(rope_parameters={**scaling, "rope_theta": 50_000.0}, max_position_embeddings=512)
    assert "rope_theta" not in json.loads((folder / "config.json").read_text())
    patch(folder, out=tmp_path / "out", dry_run=False)
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert config["rope_theta"] == 50_000.0 and config["rope_scaling"] == scaling
    assert config["rope_parameters"] == {**scaling, "rope_theta": 50_000.0}


def test_length_dependent_methods(checkpoint: Checkpoint, tmp_path: Path) -> None:
    folder = checkpoint()
    with pytest.raises(MethodError, match="no stock config") as caught:
        patch(folder, method="dynamic-yarn", factor=4)
    assert "--freeze-at 512" in caught.value.hint
    record = patch(folder, method="dynamic-yarn", freeze_at=512)
    assert record["rope_parameters"]["rope_type"] == "longrope" and record["target_length"] == 512
    record = patch(folder, method="dynamic-ntk", freeze_at=512)
    assert record["rope_parameters"]["rope_type"] == "default" and record["seq_len"] == 512
    with pytest.raises(ConfigError, match="nothing to freeze"):
        patch(folder, method="yarn", factor=4, freeze_at=512)
    reporter = Reporter()
    settings = PatchSettings(model=str(folder), method="dynamic-ntk", target_length=512, out=tmp_path / "out")
    record = patch_checkpoint(settings, reporter)
    assert record["max_position_embeddings"] == 128 and record["target_length"] == 512
    assert "cache mixes keys" in " ".join(reporter.notes)


def test_code_is_never_run_without_leave(checkpoint: Checkpoint, tmp_path: Path) -> None:
    """No auto_map, no .py in the result unless that was asked for; nothing is executed."""
    folder = checkpoint(auto_map={"AutoModelForCausalLM": "modeling_x.Y"})
    (folder / "modeling_x.py").write_text("raise SystemExit('executed')\n")
    with pytest.raises(ConfigError, match="its own model code") as caught:
        patch(folder, method="yarn", factor=4)
    assert "--drop-code" in caught.value.hint and "--trust-remote-code" in caught.value.hint
    patch(folder, method="yarn", factor=4, drop_code=True, out=tmp_path / "out", dry_run=False)
    assert not list((tmp_path / "out").glob("*.py"))
    assert "auto_map" not in json.loads((tmp_path / "out" / "config.json").read_text())


def test_original_yarn_checkpoints_become_stock_ones(checkpoint: Checkpoint, tmp_path: Path) -> None:
    scaling = {"type": "yarn", "factor": 32.0, "original_max_position_embeddings": 128, "finetuned": True}
    folder = checkpoint(
        auto_map={"AutoModelForCausalLM": "modeling_x.Y"},
        rope_parameters="REMOVE",
        rope_scaling=scaling,
        rope_theta=10_000.0,
        max_position_embeddings=4096,
    )
    record = patch(folder, drop_code=True, out=tmp_path / "out", dry_run=False)
    assert record["method"] == "yarn:factor=32" and record["verified"]["dialects"] == "equal"
    assert read_config(str(tmp_path / "out")).rope.warnings == ()


def test_quantised_weights_are_copied(checkpoint: Checkpoint) -> None:
    """Only positions change; nobody dequantises."""
    folder = checkpoint(quantization_config={"quant_method": "bitsandbytes", "load_in_4bit": True})
    reporter = Reporter()
    record = patch_checkpoint(PatchSettings(model=str(folder), method="yarn", factor=4, dry_run=True), reporter)
    assert record["files"]["num_bytes"] > 0 and "quantised" in " ".join(reporter.notes)


def test_strict(checkpoint: Checkpoint) -> None:
    folder = checkpoint(**LINEAR)  # does not say its trained length
    with pytest.raises(ConfigError, match="without the trained length"):
        patch(folder, method="pi", factor=2, replace=True, strict=True)


def test_stderr_of_a_plain_patch_is_the_next_step(checkpoint: Checkpoint, ropectl: Run, tmp_path: Path) -> None:
    """What libraries say about keys that we wrote on purpose is not for the user."""
    folder = checkpoint()
    for number, spec in enumerate(("yarn:factor=4", "yarn:factor=4,attention_factor=1.3", "pi:factor=4")):
        arguments = ("patch", str(folder), "-m", spec, "--overwrite", "-o", str(tmp_path / str(number)))
        code, _, err = ropectl(*arguments)
        assert code == 0 and err.count("\n") == 1 and ": ropectl verify-runtime " in err
        code, _, err = ropectl(*arguments, "--format", "json")
        assert (code, err) == (0, "")


def test_json_contract_and_sidecar(checkpoint: Checkpoint, ropectl: Run, tmp_path: Path) -> None:
    folder, out = checkpoint(), tmp_path / "out"
    code, text, _ = ropectl("patch", str(folder), "-m", "yarn", "--factor", "4", "-o", str(out), "--format", "json")
    record = json.loads(text)
    assert code == 0 and record == json.loads((out / "ropectl.json").read_text())
    keys = {"output", "method", "geometry", "rope_parameters", "max_position_embeddings", "verified", "runtimes"}
    assert keys <= set(record) and record["output"] == str(out)
    assert record["source"] == {"name": str(folder), "revision": None, "commit": None}
    assert {"ropectl", "transformers", "torch"} <= set(record["versions"])
    assert record["verified"]["max_frequency_deviation"] < 2e-6


def test_people_see_a_table(checkpoint: Checkpoint, ropectl: Run, tmp_path: Path) -> None:
    code, out, _ = ropectl(
        "patch", str(checkpoint()), "-m", "yarn", "--factor", "4", "-o", str(tmp_path / "out"), "--dry-run"
    )
    assert code == 0 and "none -> yarn:factor=4" in out and "128 -> 512" in out
    assert not (tmp_path / "out").exists()


def test_a_sidecar_that_disagrees_is_left_out_of_account(checkpoint: Checkpoint, tmp_path: Path) -> None:
    out = tmp_path / "out"
    patch(checkpoint(), method="ntk", factor=4, out=out, dry_run=False)
    config = json.loads((out / "config.json").read_text())
    config["rope_theta"] = config["rope_parameters"]["rope_theta"] = 77_777.0
    (out / "config.json").write_text(json.dumps(config))
    rope = read_config(str(out)).rope
    assert rope.method.name == "none" and rope.geometry.rope_theta == 77_777.0
    assert "another scaling than config.json" in " ".join(rope.warnings)
    (out / "ropectl.json").write_text("[1, 2")
    with pytest.raises(ConfigError, match="not a description that ropectl wrote"):
        read_config(str(out))
    (out / "ropectl.json").write_text(json.dumps({"method": "yarn:factor=4", "geometry": {"rotary_dim": 3}}))
    with pytest.raises(ConfigError, match="not a description that ropectl wrote"):
        read_config(str(out))


def test_a_sidecar_that_contradicts_itself(checkpoint: Checkpoint, tmp_path: Path) -> None:
    out = tmp_path / "out"
    patch(checkpoint(), method="ntk", factor=4, out=out, dry_run=False)
    path = out / "ropectl.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "method": "ntk:factor=5"}))
    with pytest.raises(ConfigError, match=r"do not compute ntk:factor=5"):
        read_config(str(out))


def test_the_users_word_comes_before_the_sidecar(checkpoint: Checkpoint, tmp_path: Path) -> None:
    out = tmp_path / "out"
    patch(checkpoint(), method="pi", factor=4, out=out, dry_run=False)
    assert read_config(str(out)).rope.geometry.original_max_position_embeddings == 128
    assert read_config(str(out), original_length=64).rope.geometry.original_max_position_embeddings == 64


def test_hub_repositories(checkpoint: Checkpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hub's cache is a folder named after the commit; the clients are asked for exactly that commit."""
    import huggingface_hub

    folder, asked = checkpoint(), []
    (folder / "pytorch_model.bin").write_bytes(b"pickle")

    def file(name: str, file: str, revision: str | None = None) -> str:
        if not (folder / file).is_file():
            raise FileNotFoundError(file)
        return str(folder / file)

    def snapshot(name: str, revision: str, ignore_patterns: list[str] | None) -> str:
        asked.append((name, revision, ignore_patterns))
        return str(folder)

    class Api:
        def model_info(self, name: str, revision: str, files_metadata: bool) -> Any:
            from types import SimpleNamespace

            siblings = [SimpleNamespace(rfilename=path.name, size=path.stat().st_size) for path in folder.iterdir()]
            return SimpleNamespace(siblings=siblings)

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", file)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot)
    monkeypatch.setattr(huggingface_hub, "HfApi", Api)
    plan = patch_checkpoint(PatchSettings(model="org/model", method="yarn", factor=4, dry_run=True))
    assert plan["files"]["num_files"] == len(list(folder.iterdir())) and asked == []
    record = patch_checkpoint(
        PatchSettings(model="org/model", revision="main", method="yarn", factor=4, out=tmp_path / "out")
    )
    assert record["source"] == {"name": "org/model", "revision": "main", "commit": folder.name}
    assert asked[0][:2] == ("org/model", folder.name) and "*.bin" in (asked[0][2] or [])
    assert not (tmp_path / "out" / "pytorch_model.bin").exists()


def test_commands_for_a_place_with_a_space_can_be_copied(checkpoint: Checkpoint, tmp_path: Path) -> None:
    """A shell needs other quotes than Python."""
    place = str(tmp_path / "my model's")
    steps = {
        step["runtime"]: step["command"]
        for step in patch(checkpoint(), method="yarn", factor=4, out=place)["next_steps"]
    }
    assert ast.literal_eval(steps["transformers"].partition("from_pretrained(")[2].removesuffix(")")) == place
    for runtime in ("vllm", "sglang", "llama.cpp"):
        assert place in shlex.split(steps[runtime]), steps[runtime]


@pytest.mark.parametrize(
    "damage",
    [
        {"method": 5}, {"method": None}, {"rope_parameters": []}, {"geometry": {"rotary_dim": 31}}, {"target_length": "x"},
    ],
)  # fmt: skip
def test_a_damaged_sidecar_is_named(checkpoint: Checkpoint, tmp_path: Path, damage: dict[str, Any]) -> None:
    patch(checkpoint(), method="pi", factor=4, out=tmp_path / "out", dry_run=False)
    path = tmp_path / "out" / "ropectl.json"
    content = json.loads(path.read_text())
    geometry = {**content["geometry"], **(damage.get("geometry") or {})}
    path.write_text(json.dumps({**content, **damage, "geometry": geometry}))
    with pytest.raises(ConfigError, match="is not a description that ropectl wrote"):
        read_config(str(tmp_path / "out"))


def test_a_sidecar_of_another_model_is_left_out_of_account(checkpoint: Checkpoint, tmp_path: Path) -> None:
    patch(checkpoint(), method="pi", factor=4, out=tmp_path / "out", dry_run=False)
    path = tmp_path / "out" / "ropectl.json"
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, "geometry": {**content["geometry"], "rotary_dim": 64}}))
    rope = read_config(str(tmp_path / "out")).rope
    assert rope.geometry.rotary_dim == 16 and "describes another scaling" in rope.warnings[-1]


def test_a_factor_for_no_scaling_is_refused(checkpoint: Checkpoint) -> None:
    with pytest.raises(ConfigError, match="none takes no extension factor"):
        patch(checkpoint(), method="none", factor=4)


def test_what_is_kept_keeps_its_declared_length(checkpoint: Checkpoint) -> None:
    """Llama 3.1 declares twice what its factor makes of the trained length; no formula reads that."""
    block = {"rope_type": "llama3", "rope_theta": 5e5, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
    block["original_max_position_embeddings"] = 8192
    record = patch(checkpoint(rope_parameters=block, max_position_embeddings=131_072))
    assert record["max_position_embeddings"] == record["target_length"] == 131_072
    assert record["rope_parameters"]["factor"] == 8.0


def test_a_window_that_ends_before_the_target_is_said(checkpoint: Checkpoint) -> None:
    """With both numbers; an inactive window is none."""
    sizes = {"model_type": "qwen2", "max_window_layers": 0, "sliding_window": 96}
    notes = {}
    for is_active in (True, False):
        reporter = Reporter()
        folder = checkpoint(**sizes, use_sliding_window=is_active)
        patch_checkpoint(PatchSettings(model=str(folder), method="yarn", factor=4, dry_run=True), reporter)
        notes[is_active] = " ".join(reporter.notes)
    assert "96" in notes[True] and "512" in notes[True] and notes[False] == ""
