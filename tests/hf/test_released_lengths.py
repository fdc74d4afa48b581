"""Released files are read as their makers mean them: lengths, rotated dimensions, bases and scaling."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ropectl.checkpoint.plan import plan_patch
from ropectl.checkpoint.settings import PatchSettings
from ropectl.errors import MethodError
from ropectl.hf.config.source import read_config
from tests.hf.released_lengths import TRUE_OF


@pytest.mark.parametrize("name", TRUE_OF)
def test_what_is_true_of_a_released_file(name: str, tmp_path: Path) -> None:
    true = TRUE_OF[name]
    (tmp_path / "config.json").write_text(json.dumps(true.file))
    rope = read_config(str(tmp_path)).rope
    geometry = rope.geometry
    assert (geometry.original_max_position_embeddings, geometry.rotary_dim, geometry.rope_theta) == (
        true.trained, true.dims, true.theta,
    )  # fmt: skip
    assert rope.max_position_embeddings == (true.declared or true.trained)
    assert rope.layer_type == true.layers
    assert len(rope.warnings) == bool(true.remark) and all(true.remark in warning for warning in rope.warnings)
    spec: Any = str(rope.method)
    assert spec == true.method or (true.method == "longrope" and spec.startswith("longrope:"))


def test_the_order_of_betas_and_bounds_is_checked(tmp_path: Path) -> None:
    """Equal ones are a step, and the wrong way round they are nothing."""
    for name, low, high in (
        ("Kimi K2", "beta_slow", "beta_fast"),
        ("Llama 4 Scout", "low_freq_factor", "high_freq_factor"),
    ):
        file = TRUE_OF[name].file
        wrong = {**file, "rope_scaling": {**file["rope_scaling"], low: 32.0, high: 1.0}}
        (tmp_path / "config.json").write_text(json.dumps(wrong))
        with pytest.raises(MethodError, match=f"{high} = 1 must not be less than {low} = 32"):
            read_config(str(tmp_path))


def test_qwen_for_131072_is_written_as_its_card_says(tmp_path: Path) -> None:
    file = {key: value for key, value in TRUE_OF["Qwen2.5 with YaRN"].file.items() if key != "rope_scaling"}
    (tmp_path / "config.json").write_text(json.dumps({**file, "max_position_embeddings": 32_768}))
    settings = PatchSettings(model=str(tmp_path), method="yarn", target_length=131_072, dry_run=True)
    written = plan_patch(settings, read_config(str(tmp_path))).config(file)
    card = {"factor": 4.0, "original_max_position_embeddings": 32_768, "rope_type": "yarn"}
    assert written["rope_scaling"] == card and written["max_position_embeddings"] == 131_072


def test_a_nested_part_is_written_where_it_is(tmp_path: Path) -> None:
    """Qwen3.5: 64 of 256 dimensions rotate, in the text part, laid out on three axes."""
    file = {"model_type": "qwen3_5", "text_config": TRUE_OF["Qwen3.5 with YaRN"].file["text_config"]}
    default = {**file["text_config"]["rope_parameters"], "rope_type": "default"}
    default = {
        key: value for key, value in default.items() if key not in ("factor", "original_max_position_embeddings")
    }
    file["text_config"] = {**file["text_config"], "max_position_embeddings": 262_144, "rope_parameters": default}
    (tmp_path / "config.json").write_text(json.dumps(file))
    settings = PatchSettings(model=str(tmp_path), method="yarn", factor=4, dry_run=True)
    written = plan_patch(settings, read_config(str(tmp_path))).config(file)
    text = written["text_config"]
    assert set(written) == set(file) and text["max_position_embeddings"] == 1_048_576
    assert text["rope_parameters"] == {
        **default, "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 262_144,
    }  # fmt: skip
