"""The length that a patched config declares is the one that was asked for, or the file's own; a change is said, and no key
contradicts another."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ropectl.advise.api import choose_methods, inspect_model
from ropectl.advise.requests import ChoiceSettings, InspectSettings
from ropectl.checkpoint.patching import patch_checkpoint
from ropectl.checkpoint.plan import plan_patch
from ropectl.checkpoint.settings import PatchSettings
from ropectl.errors import ConfigError, UnsupportedModelError
from ropectl.hf.config.source import read_config
from ropectl.hf.refused_types import WITHOUT_ROTATION
from scripts.model_types import census
from tests.hf.released_lengths import TRUE_OF

LLAMA2 = {
    "model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32, "num_hidden_layers": 2,
    "max_position_embeddings": 4096, "rope_theta": 1e4,
}  # fmt: skip


def stored(folder: Path, file: dict[str, Any]) -> str:
    (folder / "config.json").write_text(json.dumps(file))
    return str(folder)


def planned(model: str, **changes: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The record of a dry run, and the config that would be written."""
    settings = PatchSettings(model=model, dry_run=True, **changes)
    source = read_config(model)
    return patch_checkpoint(settings), plan_patch(settings, source).config(source.writable_config)


def of_lengths(notes: list[str]) -> list[str]:
    return [note for note in notes if "declare" in note]


def test_no_length_contradicts_another(tmp_path: Path) -> None:
    """Command-R: 131072 by model_max_length. vLLM goes by that key before any other."""
    model = stored(tmp_path, TRUE_OF["Command-R"].file)
    record, written = planned(model, method="yarn", factor=2)
    assert written["max_position_embeddings"] == written["model_max_length"] == record["target_length"] == 262_144
    assert record["rope_parameters"]["original_max_position_embeddings"] == 131_072
    _, short = planned(stored(tmp_path, {**LLAMA2, "max_sequence_length": 2048}), method="yarn", factor=2)
    assert short["max_position_embeddings"] == short["max_sequence_length"] == 8192


@pytest.mark.parametrize(
    ("keys", "trained", "remark"),
    [
        ({"model_max_length": 32_768}, 32_768, "is taken for the trained length"),
        ({"max_sequence_length": 32_768}, 32_768, "is taken for the trained length"),
        ({"seq_length": 2048}, 4096, "offer 2048 tokens only"),
        ({"model_max_length": 4096}, 4096, ""),
        ({"model_max_length": 10**30}, 4096, ""),
        ({"model_max_length": None, "n_ctx": 0}, 4096, ""),
    ],
)
def test_further_lengths(tmp_path: Path, keys: dict[str, Any], trained: int, remark: str) -> None:
    rope = read_config(stored(tmp_path, {**LLAMA2, **keys})).rope
    assert rope.geometry.original_max_position_embeddings == rope.max_position_embeddings == trained
    assert len(rope.warnings) == bool(remark) and all(remark in warning for warning in rope.warnings)
    asked = read_config(str(tmp_path), original_length=4096).rope
    assert asked.geometry.original_max_position_embeddings == 4096 and asked.warnings == ()


def test_under_a_scaling_the_block_says_the_trained_length(tmp_path: Path) -> None:
    scaled = {**TRUE_OF["Qwen2.5 with YaRN"].file, "model_max_length": 32_768}
    rope = read_config(stored(tmp_path, scaled)).rope
    assert (rope.geometry.original_max_position_embeddings, rope.max_position_embeddings) == (32_768, 131_072)
    assert len(rope.warnings) == 1 and "offer 32768 tokens only" in rope.warnings[0]


def test_a_length_that_is_a_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="model_max_length is '4096', not a number"):
        read_config(stored(tmp_path, {**LLAMA2, "model_max_length": "4096"}))


def test_what_is_long_enough_needs_no_scaling(tmp_path: Path) -> None:
    model = stored(tmp_path, TRUE_OF["Command-R"].file)
    record = choose_methods(ChoiceSettings(model=model, target_length=65_536))
    assert record["picks"] == [] and "within the trained length of 131072" in record["notes"][0]


def test_chunked_positions_are_left_out(tmp_path: Path) -> None:
    """Qwen2.5-1M: 1010000 by chunks of 262144, which a patch takes the place of."""
    model = stored(tmp_path, TRUE_OF["Qwen2.5-1M"].file)
    record, written = planned(model, method="yarn", factor=4)
    assert record["rope_parameters"]["original_max_position_embeddings"] == 262_144
    assert written["max_position_embeddings"] == 1_048_576 and "dual_chunk_attention_config" not in written
    assert "leaves it out" in record["notes"][0]
    asked = read_config(model, original_length=131_072).rope
    assert asked.geometry.original_max_position_embeddings == 131_072 and "leaves it out" in asked.warnings[0]
    back, unscaled = planned(model)
    assert unscaled["max_position_embeddings"] == 262_144
    assert [note for note in of_lengths(back["notes"]) if "falls from 1010000 to 262144" in note]


@pytest.mark.parametrize("name", ["Llama 3.2", "Llama 4 Scout"])
def test_the_factor_of_llama3_promises_no_length(name: str, tmp_path: Path) -> None:
    """32 * 8192 is twice what Llama 3.2 declares, 16 * 8192 far less than Llama 4 Scout does: both are meant as declared."""
    true = TRUE_OF[name]
    model = stored(tmp_path, true.file)
    (inspected,) = inspect_model(InspectSettings(model=model))
    record, written = planned(model)
    assert inspected["target_length"] == inspected["derived"]["target_length"]["value"] == true.declared
    assert record["target_length"] == written["max_position_embeddings"] == true.declared
    assert not of_lengths(record["notes"])
    asked, _ = planned(model, method="llama3", factor=4, replace=True)
    assert asked["target_length"] == 4 * true.trained


def test_a_base_declares_what_was_asked_for(tmp_path: Path) -> None:
    """Base 500000 reaches 68154 tokens of a model trained on 4096; 32768 were asked for."""
    model = stored(tmp_path, LLAMA2)
    record, written = planned(model, method="abf:rope_theta=500000", target_length=32_768)
    assert record["target_length"] == written["max_position_embeddings"] == 32_768
    assert of_lengths(record["notes"]) == [
        "abf:rope_theta=500000 computes up to 68154 tokens with rotations seen in training; the config declares the 32768 that "
        "were asked for."
    ]
    short, _ = planned(model, method="abf:rope_theta=20000", target_length=32_768)
    assert [note for note in short["notes"] if "short of the 32768 that were asked for" in note]
    alone, _ = planned(model, method="abf:rope_theta=500000")
    assert alone["target_length"] == 68_154


def test_a_declared_length_that_shrinks_is_said(tmp_path: Path) -> None:
    model = stored(tmp_path, TRUE_OF["Qwen2.5 with YaRN"].file)
    falls, written = planned(model, method="pi", factor=2, replace=True)
    assert written["max_position_embeddings"] == 32_768
    assert of_lengths(falls["notes"]) == [
        "The declared length falls from 131072 to 32768 tokens: vLLM and sglang multiply it by the factor themselves."
    ]
    grows, _ = planned(model, method="yarn", factor=8, replace=True)
    assert not of_lengths(grows["notes"]), "as it was asked for"


def test_a_declared_length_that_grows_unasked_is_said(tmp_path: Path) -> None:
    record, written = planned(stored(tmp_path, TRUE_OF["Qwen3-8B with YaRN"].file))
    assert written["max_position_embeddings"] == 131_072
    assert [note for note in of_lengths(record["notes"]) if "rises from 40960 to 131072" in note]


def test_models_without_rotation_are_known_by_name() -> None:
    """All that the installed transformers has, so that none of them is planned for whatever its file says."""
    assert set(census().without) <= set(WITHOUT_ROTATION)


@pytest.mark.parametrize("model_type", ["nemotron_h", "jamba", "kimi_linear", "mamba2"])
def test_models_without_rotation_are_refused_everywhere(model_type: str, tmp_path: Path) -> None:
    """The files of Nemotron-H name a base that its class does not read."""
    model = stored(tmp_path, {**LLAMA2, "model_type": model_type, "qk_rope_head_dim": None})
    for ask in (
        lambda: inspect_model(InspectSettings(model=model)),
        lambda: choose_methods(ChoiceSettings(model=model, target_length=65_536)),
        lambda: patch_checkpoint(PatchSettings(model=model, method="yarn", factor=4, dry_run=True)),
    ):
        with pytest.raises(UnsupportedModelError, match="have no rotary positions"):
            ask()


def test_a_kept_gemma_3_declares_what_it_declared(tmp_path: Path) -> None:
    """Its servers take that length as it is, whatever the factor; those of others with blocks per layer type multiply it."""
    text = {
        "model_type": "gemma3_text", "hidden_size": 2560, "num_hidden_layers": 6, "sliding_window": 1024,
        "rope_scaling": {"rope_type": "linear", "factor": 8.0}, "max_position_embeddings": 131_072,
    }  # fmt: skip
    record, written = planned(stored(tmp_path, text))
    assert written["max_position_embeddings"] == 131_072 and of_lengths(record["notes"]) == []
