"""Model types that transformers lacks are named for what they are; old names of scaling types are read as what they mean."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ropectl.errors import ConfigError, UnsupportedModelError
from ropectl.hf.config.families import ROPE_TYPE_ALIASES
from ropectl.hf.config.geometry import describe_rope
from ropectl.hf.config.source import read_config
from ropectl.hf.config.writer import patched_config
from ropectl.hf.foreign_types import RELATIVES, RENAMED
from ropectl.hf.run_names import model_types
from ropectl.rope.registry import parse_method
from tests.hf.released import RELEASED
from tests.hf.released_lengths import TRUE_OF

OWN_CODE = {"AutoConfig": "configuration_own.OwnConfig", "AutoModelForCausalLM": "modeling_own.OwnForCausalLM"}
RELEASED_WITH_CODE = (
    *("kimi_k2", "internlm2", "chatglm", "baichuan", "bailing_moe_v2", "minimax_text_01", "qwen", "telechat3"),
)


def stored(folder: Path, **file: Any) -> str:
    (folder / "config.json").write_text(json.dumps(file))
    return str(folder)


def refusal(model: str, **options: Any) -> str:
    with pytest.raises((ConfigError, UnsupportedModelError)) as caught:
        read_config(model, **options)
    return f"{caught.value.message}\n{caught.value.hint}"


@pytest.mark.parametrize("model_type", RELEASED_WITH_CODE)
def test_own_sentences_about_models_with_code(model_type: str, tmp_path: Path) -> None:
    """Two lines, no address that was made of the path; without the flag and with it."""
    model = stored(tmp_path, **{**TRUE_OF["LLaMA"].file, "model_type": model_type, "auto_map": OWN_CODE})
    said = refusal(model)
    assert model_type in said and "--trust-remote-code" in said
    assert RENAMED.get(model_type, RELATIVES.get(model_type, "?")) in said
    assert len(said.splitlines()) == 2 and "http" not in said
    with_code = refusal(model, trust_remote_code=True)
    assert (
        "configuration_own.py, modeling_own.py (auto_map) is not in the folder" in with_code and "http" not in with_code
    )


def test_no_type_that_transformers_has_is_foreign() -> None:
    assert not {*RENAMED, *RELATIVES} & model_types() and set(RENAMED.values()) <= model_types()


def test_kimi_k2_is_read_as_what_it_is(tmp_path: Path) -> None:
    """The hint of the refusal is enough."""
    file = {**TRUE_OF["Kimi K2"].file, "model_type": "kimi_k2"}
    assert 'write "model_type": "deepseek_v3"' in refusal(stored(tmp_path, **file))
    rope = read_config(stored(tmp_path, **{**file, "model_type": RENAMED["kimi_k2"]})).rope
    assert rope.method.name == "yarn" and rope.geometry.original_max_position_embeddings == 4096


def test_su_that_transformers_does_not_read(tmp_path: Path) -> None:
    """The first revision of Phi-3-mini-128k has the trained length beside the block only."""
    file = RELEASED["Phi-3 mini 128k"]
    block = {**file["rope_scaling"], "type": "su"}
    said = refusal(stored(tmp_path, **{**file, "rope_scaling": block}))
    assert 'Write "longrope" for "su"' in said and "Missing required keys" not in said
    assert read_config(stored(tmp_path, **file)).rope.geometry.original_max_position_embeddings == 4096


@pytest.mark.parametrize("block", [{"type": "yarn", "factor": 4.0}, {"type": "dynamic", "factor": 2.0}])
def test_types_that_a_family_does_not_take(block: dict[str, Any], tmp_path: Path) -> None:
    file = {**RELEASED["Phi-3 mini 128k"], "rope_scaling": {**block, "original_max_position_embeddings": 4096}}
    said = refusal(stored(tmp_path, **file))
    assert f"type '{block['type']}', but models of type 'phi3' take default or longrope only" in said
    assert "rope_parameters" not in said and "validator" not in said


@pytest.mark.parametrize("key", ["type", "rope_type"])
@pytest.mark.parametrize("old", ROPE_TYPE_ALIASES)
def test_old_names_mean_the_new_ones(old: str, key: str) -> None:
    """In what is described, in messages, and in what is written."""
    new = ROPE_TYPE_ALIASES[old]
    lists = {"short_factor": [1.0] * 64, "long_factor": [2.0] * 64, "original_max_position_embeddings": 1024}
    block = lists if new == "longrope" else {}
    files = [{**TRUE_OF["LLaMA"].file, "rope_scaling": {key: name, **block}} for name in (old, new)]
    assert describe_rope(files[0]) == describe_rope(files[1])
    written = patched_config(files[0], parse_method("yarn:factor=2").config_patch(describe_rope(files[0]).geometry))
    assert old not in json.dumps(written)
    if block:
        for file in files:
            del file["rope_scaling"]["original_max_position_embeddings"]
            with pytest.raises(ConfigError, match="scales with 'longrope' but does not say the trained length"):
                describe_rope(file)
