"""Whole runs on a tiny random model: what is written, what is refused, what is kept."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from ropectl.checkpoint.patching import patch_checkpoint
from ropectl.checkpoint.settings import PatchSettings
from ropectl.errors import ConfigError, DataError, TrainingError
from ropectl.evaluate.config import PerplexityConfig
from ropectl.evaluate.perplexity.evaluation import evaluate_perplexity
from ropectl.hf.config.source import read_config
from ropectl.hf.model.loading import LoadOptions, load_model
from ropectl.reporter import Reporter
from ropectl.train.engine.engine import Engine
from ropectl.train.finetuning import finetune
from tests.train.runs import losses, small_settings, weights, write_text

pytestmark = [pytest.mark.usefixtures("one_thread"), pytest.mark.process]

ROPE_KEYS = ("rope_parameters", "rope_scaling", "rope_theta", "max_position_embeddings")


def test_loss_falls_and_the_result_is_a_checkpoint(checkpoint: Callable[..., Path], tmp_path: Path) -> None:
    source, out = checkpoint(), tmp_path / "out"
    finished = finetune(small_settings(source, out, steps=30, learning_rate=3e-3))
    values = losses(out)
    assert len(values) == 30 and sum(values[-5:]) < sum(values[:5]) - 1.0
    record = finished.record
    assert record is not None and record == json.loads((out / "ropectl.json").read_text())
    assert record["training"]["steps"] == 30 and record["method"] == "yarn:factor=2"
    assert record["verified"]["max_frequency_deviation"] < 1e-5
    again = load_model(read_config(str(out)), LoadOptions(device="cpu"))
    assert torch.isfinite(again(torch.arange(1, 200).unsqueeze(0)).logits).all()
    assert "fine-tuned" in (out / "README.md").read_text()


@pytest.mark.parametrize(
    "changes",
    [
        {"method": "pi"},
        {"method": "ntk"},
        {"method": "llama3"},
        {"method": "dynamic-ntk"},
        {"method": "dynamic-yarn", "freeze_at": 256},
        {"method": "none", "factor": None},
        {"strategy": "lora", "train_norms": True, "train_embeddings": True},
        {"positions": "pose"},
        {"packing": "isolated"},
        {"packing": "none", "short_fraction": 0.0},
        {"seq_len": 160, "short_fraction": 0.3, "passkey_fraction": 0.3},
        {"activation_checkpointing": "on"},
        {"precision": "bf16"},
    ],
    ids=str,
)
def test_rope_fields_are_those_of_patch(
    checkpoint: Callable[..., Path], tmp_path: Path, changes: dict[str, Any]
) -> None:
    source = checkpoint()
    settings = small_settings(source, tmp_path / "out", steps=2, **changes)
    finetune(settings)
    shared = {name: getattr(settings, name) for name in ("model", "method", "factor", "freeze_at")}
    patch_checkpoint(PatchSettings(**shared, out=tmp_path / "patched"))
    tuned, patched = (json.loads((tmp_path / name / "config.json").read_text()) for name in ("out", "patched"))
    assert {key: tuned.get(key) for key in ROPE_KEYS} == {key: patched.get(key) for key in ROPE_KEYS}
    assert tuned["dtype"] == patched["dtype"]
    before, after = weights(source), weights(tmp_path / "out")
    assert before.keys() == after.keys()
    assert any(not torch.equal(before[name], after[name]) for name in before)


def test_adapter_with_its_method_beside_it(checkpoint: Callable[..., Path], tmp_path: Path) -> None:
    source, merged, kept = checkpoint(), tmp_path / "merged", tmp_path / "kept"
    options: dict[str, Any] = {"strategy": "lora", "train_norms": True, "steps": 3}
    finetune(small_settings(source, merged, **options))
    finetune(small_settings(source, kept, merge=False, **options))
    assert (kept / "adapter_model.safetensors").is_file() and not (kept / "config.json").exists()
    text = str(write_text(tmp_path))

    def measured(model: Path) -> float:
        config = PerplexityConfig(model=str(model), text=text, lengths=(200,), documents=2)
        return float(evaluate_perplexity(config)["points"][0]["nll_sum"])

    assert measured(kept) == pytest.approx(measured(merged), rel=1e-5)
    (kept / "ropectl.json").unlink()
    with pytest.raises(ConfigError, match="does not say the scaling"):
        measured(kept)


def test_finished_is_recognised_and_other_settings_are_refused(checkpoint: Callable[..., Path], tmp_path: Path) -> None:
    source, out = checkpoint(), tmp_path / "out"
    first = finetune(small_settings(source, out))
    stamp = (out / "model.safetensors").stat().st_mtime_ns
    reporter = Reporter()
    assert finetune(small_settings(source, out, micro_batch=2, save_every=5), reporter).record == first.record
    assert any("finished result" in note for note in reporter.notes)
    with pytest.raises(ConfigError, match="exists already, and is not the result"):
        finetune(small_settings(source, out, learning_rate=1e-4))
    assert (out / "model.safetensors").stat().st_mtime_ns == stamp
    finetune(small_settings(source, out, learning_rate=1e-4, overwrite=True))
    assert (out / "model.safetensors").stat().st_mtime_ns != stamp


def test_other_settings_need_force(checkpoint: Callable[..., Path], tmp_path: Path) -> None:
    source, out = checkpoint(), tmp_path / "out"
    finetune(small_settings(source, out, steps=2))
    import shutil

    shutil.rmtree(out)  # the run is there, its result is not
    with pytest.raises(ConfigError, match="steps was 2, is 4"):
        finetune(small_settings(source, out, steps=4))
    reporter = Reporter()
    finetune(small_settings(source, out, steps=4, force=True), reporter)
    assert any("Continuing after step 2" in note for note in reporter.notes)
    assert len(losses(out)) == 4


def test_states_that_are_kept(checkpoint: Callable[..., Path], tmp_path: Path) -> None:
    source, out = checkpoint(), tmp_path / "out"
    finetune(small_settings(source, out, steps=7, save_every=2, keep=3))
    names = sorted(path.name for path in (tmp_path / "out.run").glob("state-*"))
    assert names == ["state-00000004", "state-00000006", "state-00000007"]


def test_best_is_written(checkpoint: Callable[..., Path], tmp_path: Path) -> None:
    """Training that destroys the model: the state of the best validation is written, not the last."""
    source, out = checkpoint(), tmp_path / "out"
    held_out = write_text(tmp_path, ("heapq.py",)).rename(tmp_path / "held-out")
    reporter = Reporter()
    settings = small_settings(
        source, out, steps=12, eval_every=3, eval_text=str(held_out), eval_lengths=(64, 128), eval_trials=0,
        learning_rate=0.3, warmup_steps=100, schedule="constant", early_stop=2,
    )  # fmt: skip
    record = finetune(settings, reporter).record
    assert record is not None
    lines = [json.loads(line) for line in (tmp_path / "out.run" / "metrics.jsonl").read_text().splitlines()]
    measured = {line["step"]: line["validation"]["perplexity"]["128"] for line in lines if "validation" in line}
    trained = {step: value for step, value in measured.items() if step}
    best = min(trained, key=lambda step: trained[step])
    assert record["training"]["step"] == best
    config = PerplexityConfig(model=str(out), text=str(held_out), lengths=(64, 128), documents=8)
    actual = evaluate_perplexity(config)["points"][1]["perplexity"]
    assert actual == pytest.approx(trained[best], rel=1e-4)
    if best < max(trained):
        assert any("best validation" in note for note in reporter.notes)


def test_divergence_is_told_and_the_states_stay(checkpoint: Callable[..., Path], tmp_path: Path) -> None:
    source, out = checkpoint(), tmp_path / "out"
    with pytest.raises(TrainingError, match="Training has diverged"):
        finetune(small_settings(source, out, steps=40, learning_rate=1e30, save_every=1))
    assert not out.exists() and list((tmp_path / "out.run").glob("state-*"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schedule": "wsd"}, "allowed are constant, linear, cosine"),
        ({"positions": "pose", "seq_len": 256}, "there are none"),
        ({"positions": "pose", "packing": "isolated"}, "need one sequence"),
        ({"short_fraction": 0.2}, "all have only 64 tokens"),
        ({"seq_len": 64, "passkey_fraction": 0.2}, "too short for the task passkey"),
        ({"eval_every": 2}, "needs text that the model is not trained on"),
        ({"early_stop": 2}, "needs validations"),
        ({"eval_text": "held-out.txt"}, "validations"),
        ({"eval_lengths": (64,)}, "validations"),
        ({"dtype": "float16"}, "cannot hold weights"),
        ({"method": "dynamic-yarn"}, "freeze-at"),
        ({"tracker": "no-such-tracker"}, "tracker|accelerate refuses"),
        ({"text": "/no/such/text"}, "There is no text"),
        ({"out": None}, "needs a place"),
        ({"activation_checkpointing": "offload"}, "here they are already there"),
        ({"freeze_at": 256}, "nothing to freeze"),
    ],
    ids=str,
)
def test_bad_input_before_weights(
    checkpoint: Callable[..., Path], tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    source = checkpoint()
    (source / "model.safetensors").unlink()  # nothing may try to read them
    before = {path for path in tmp_path.rglob("*") if "text" not in str(path)}
    with pytest.raises(ConfigError, match=message):
        finetune(small_settings(source, **{"out": tmp_path / "out", **changes}))
    assert {path for path in tmp_path.rglob("*") if "text" not in str(path)} == before


def test_text_that_gives_no_block(checkpoint: Callable[..., Path], tmp_path: Path) -> None:
    source = checkpoint()
    (tmp_path / "short.txt").write_text("import os\n")
    with pytest.raises(DataError, match="1 document"):
        finetune(small_settings(source, tmp_path / "out", text=str(tmp_path / "short.txt")))


@pytest.mark.parametrize("extras", [{}, {"train_norms": True, "train_embeddings": True}], ids=["plain", "longlora"])
def test_lora_on_half_precision_weights(
    checkpoint: Callable[..., Path], tmp_path: Path, extras: dict[str, Any]
) -> None:
    """The default on an accelerator: frozen bfloat16, float32 where anything is trained."""
    source, out = checkpoint(), tmp_path / "out"
    options: dict[str, Any] = {"strategy": "lora", "dtype": "bfloat16", "precision": "bf16", "steps": 20, **extras}
    options["text"] = str(write_text(tmp_path, ("bisect.py",)))
    reporter = Reporter()
    finetune(small_settings(source, out, learning_rate=1e-2, **options), reporter)
    assert sum(losses(out)[-3:]) < sum(losses(out)[:3]) - 1.0
    assert not any("arithmetic differs" in note for note in reporter.notes)
    if extras:
        with pytest.raises(ConfigError, match="--precision bf16"):
            finetune(small_settings(source, tmp_path / "other", **{**options, "precision": "fp32"}))


@pytest.mark.parametrize("changes", [{"merge": False}, {"save_dtype": "bfloat16"}], ids=str)
def test_another_form_of_a_result_is_not_that_result(
    checkpoint: Callable[..., Path], tmp_path: Path, changes: dict[str, Any]
) -> None:
    source, out = checkpoint(), tmp_path / "out"
    first = finetune(small_settings(source, out, strategy="lora", steps=2))
    settings = small_settings(source, out, strategy="lora", steps=2, **changes)
    with pytest.raises(ConfigError, match="not the result of these settings"):
        finetune(settings)
    out.rename(tmp_path / "moved")
    reporter = Reporter()
    second = finetune(settings, reporter)  # nothing is trained again
    assert any("Continuing after step 2" in note for note in reporter.notes)
    assert first.record is not None and second.record is not None
    assert second.record["training"]["last_loss"] == first.record["training"]["last_loss"]
    assert (out / "adapter_config.json").exists() == (changes == {"merge": False})


def test_a_launcher_that_accumulates_changes_nothing(
    checkpoint: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``accelerate launch`` hands the number of its own config on in the environment."""
    source = checkpoint()
    finetune(small_settings(source, tmp_path / "one", steps=2))
    monkeypatch.setenv("ACCELERATE_GRADIENT_ACCUMULATION_STEPS", "4")
    finetune(small_settings(source, tmp_path / "two", steps=2))
    norms = [
        [
            json.loads(line)["grad_norm"]
            for line in (tmp_path / f"{name}.run" / "metrics.jsonl").read_text().splitlines()
        ]
        for name in ("one", "two")
    ]
    assert norms[0] == norms[1]


def test_pickles_are_not_carried_beside_new_weights(checkpoint: Callable[..., Path], tmp_path: Path) -> None:
    source, out = checkpoint(), tmp_path / "out"
    torch.save({}, source / "pytorch_model.bin")
    finetune(small_settings(source, out, steps=1, allow_pickle=True))
    assert not (out / "pytorch_model.bin").exists() and (out / "tokenizer.json").exists()


def test_held_out_text_is_not_the_training_text_in_other_words(checkpoint: Callable[..., Path], tmp_path: Path) -> None:
    text = write_text(tmp_path)
    settings = small_settings(checkpoint(), tmp_path / "out", eval_every=1, eval_text=f"{text}/../{text.name}/")
    with pytest.raises(ConfigError, match="is the training text"):
        finetune(settings)


def test_held_out_tokens_that_the_model_does_not_know(checkpoint: Callable[..., Path], tmp_path: Path) -> None:
    held_out = tmp_path / "held-out.jsonl"
    held_out.write_text(json.dumps({"input_ids": [5000] * 300}))
    settings = small_settings(checkpoint(), tmp_path / "out", eval_every=1, eval_text=str(held_out))
    with pytest.raises(DataError, match="the model knows 1024 tokens"):
        finetune(settings)
    assert not (tmp_path / "out.run").exists()


def test_the_price_is_that_over_the_model_as_it_is_given(checkpoint: Callable[..., Path], tmp_path: Path) -> None:
    """A model that is scaled already is given with its scaling: training it on costs nothing before the first step."""
    source = checkpoint(rope_parameters={"rope_type": "yarn", "rope_theta": 10_000.0, "factor": 2.0,
                                         "original_max_position_embeddings": 128}, max_position_embeddings=256)  # fmt: skip
    held_out = write_text(tmp_path, ("heapq.py",))
    finetune(
        small_settings(
            source, tmp_path / "out", method=None, factor=None, steps=1, eval_every=1, eval_text=str(held_out),
            eval_lengths=(64, 128), eval_trials=0,
        )
    )  # fmt: skip
    lines = [json.loads(line) for line in (tmp_path / "out.run" / "metrics.jsonl").read_text().splitlines()]
    assert lines[0]["step"] == 0 and lines[0]["validation"]["short_delta"] == 0.0


def test_the_first_state_is_as_large_as_any(checkpoint: Callable[..., Path], tmp_path: Path) -> None:
    """It proves that states can be written: a disk that has no room for the optimizer shows before the first step."""
    finetune(small_settings(checkpoint(), tmp_path / "out", steps=2, save_every=1, keep=5))
    states = sorted((tmp_path / "out.run").glob("state-*"))
    sizes = [(path / "optimizer.bin").stat().st_size for path in states]
    assert len(sizes) == 3 and len(set(sizes)) == 1


def test_a_full_disk_is_told_and_the_states_stay(
    checkpoint: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import errno

    source, out = checkpoint(), tmp_path / "out"

    def full(self: Engine, folder: Path) -> None:
        if folder.name == ".state-00000002.tmp":
            raise OSError(errno.ENOSPC, "No space left on device")
        save(self, folder)

    save = Engine.save
    with (
        monkeypatch.context() as patch,
        pytest.raises(TrainingError, match=r"the disk is full.*after step 0 is complete"),
    ):
        patch.setattr(Engine, "save", full)
        finetune(small_settings(source, out))
    finetune(small_settings(source, out))
    finetune(small_settings(source, tmp_path / "whole"))
    assert losses(out) == losses(tmp_path / "whole")
