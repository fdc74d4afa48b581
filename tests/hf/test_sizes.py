"""Sizes that no model can have are refused by the file alone, for every kind of model, before anything completes it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ropectl.errors import ConfigError, UnsupportedModelError
from ropectl.hf.config.sizes import check_sizes
from ropectl.hf.config.source import read_config
from ropectl.hf.run_names import check_model_type, model_types

Run = Callable[..., tuple[int, str, str]]

MODEL: dict[str, Any] = {
    "model_type": "llama", "hidden_size": 128, "intermediate_size": 256, "num_attention_heads": 4, "num_key_value_heads": 2,
    "head_dim": 32, "num_hidden_layers": 2, "vocab_size": 64, "max_position_embeddings": 128, "rope_theta": 1e4,
}  # fmt: skip
GEMMA2 = {**MODEL, "model_type": "gemma2"}

#: A key, a value that it cannot have, and words of the message besides both.
IMPOSSIBLE: list[tuple[str, Any, str]] = [
    *((key, value, "too small: it must be at least 1")
      for key in ("hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads", "head_dim",
                  "num_hidden_layers", "vocab_size") for value in (0, -1)),
    *((key, value, "not a whole number")
      for key in ("hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads", "head_dim",
                  "num_hidden_layers", "vocab_size", "sliding_window") for value in (2.5, "2", True, {"a": 1})),
    *((key, 2**31, "at most 2147483647")
      for key in ("hidden_size", "intermediate_size", "vocab_size", "max_position_embeddings", "sliding_window",
                  "original_max_position_embeddings")),
    *((key, 65_537, "at most 65536")
      for key in ("num_attention_heads", "num_key_value_heads", "head_dim", "num_hidden_layers")),
    *((key, value, "at least 2")
      for key in ("max_position_embeddings", "original_max_position_embeddings") for value in (0, 1, -128)),
    ("max_position_embeddings", True, "not a number"),
    ("max_position_embeddings", 10**400, "too large"),
    ("sliding_window", -1, "at least 0"),
    ("attention_chunk_size", -4, "at least 0"),
    ("num_key_value_heads", 3, "num_attention_heads = 4 is not a multiple of num_key_value_heads = 3"),
    ("num_key_value_heads", 8, "num_attention_heads = 4 is not a multiple of num_key_value_heads = 8"),
    ("num_key_value_heads", [2, -1], "num_key_value_heads"),
    ("layer_types", ["full_attention"] * 3, "has 3 entries, but num_hidden_layers = 2"),
    ("layer_types", [], "has 0 entries"),
    ("layer_types", "full_attention", "not a list of names"),
    ("layer_types", [1, 2], "not a list of names"),
    ("per_layer_config", [1], "not an object of objects"),
    ("head_dim", 33, "rotate in pairs"),
    ("use_sliding_window", "false", "not true or false"),
    ("use_sliding_window", 0, "not true or false"),
]  # fmt: skip


def save(folder: Path, config: dict[str, Any]) -> str:
    (folder / "config.json").write_text(json.dumps(config))
    return str(folder)


@pytest.mark.parametrize("kind", ["self-contained", "completed", "text part"])
@pytest.mark.parametrize(("key", "value", "words"), IMPOSSIBLE, ids=lambda value: repr(value)[:40])
def test_impossible_sizes_are_refused(kind: str, key: str, value: Any, words: str, tmp_path: Path) -> None:
    """The message names key, value and what is allowed, never in transformers' words."""
    text = {**(MODEL if kind == "self-contained" else GEMMA2), key: value}
    config = {"model_type": "llava", "text_config": text} if kind == "text part" else text
    with pytest.raises(ConfigError) as caught:
        read_config(save(tmp_path, config))
    message = caught.value.message
    assert key in message and words in message and "transformers" not in message
    assert (repr(value) in message or "..." in message or "too large" in message) or isinstance(value, list)
    assert len(message) < 240


@pytest.mark.parametrize("model_type", ["llama", "gpt_neox", "phi3"])
def test_heads_that_do_not_share_out_the_width_are_refused(model_type: str, tmp_path: Path) -> None:
    """Also where transformers refuses the file first, in its own words."""
    config = {**MODEL, "model_type": model_type, "hidden_size": 130, "pad_token_id": 0, "vocab_size": 64}
    del config["head_dim"]
    with pytest.raises(ConfigError, match="hidden_size = 130 is not a multiple of num_attention_heads = 4"):
        read_config(save(tmp_path, config))


@pytest.mark.parametrize(
    "changes",
    [
        {"num_key_value_heads": None, "head_dim": None, "sliding_window": None, "layer_types": None},
        {"sliding_window": 0},
        {"max_position_embeddings": 2**31 - 1},
        {"max_position_embeddings": 128.0},
        {"num_hidden_layers": 1000, "vocab_size": 10**6},
        {"layer_types": ["full_attention", "full_attention"]},
    ],
)
def test_sizes_that_models_have_are_taken(changes: dict[str, Any], tmp_path: Path) -> None:
    assert read_config(save(tmp_path, {**MODEL, **changes})).rope.geometry.rotary_dim == 32


@pytest.mark.parametrize("key", ["intermediate_size", "num_key_value_heads"])
def test_layers_may_differ_where_their_family_allows_it(key: str) -> None:
    check_sizes({**MODEL, "model_type": "gemma3n_text", key: [2, 0]})
    with pytest.raises(ConfigError, match="at least 0"):
        check_sizes({**MODEL, "model_type": "gemma3n_text", key: [2, -1]})
    with pytest.raises(ConfigError, match="not a whole number"):
        check_sizes({**MODEL, key: [2, 2]})


def test_a_model_whose_heads_rotate_nothing_is_refused_for_that(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedModelError, match="qk_rope_head_dim = 0: this model has no rotary positions"):
        read_config(save(tmp_path, {**MODEL, "model_type": "glm5_next_text", "head_dim": 0, "qk_rope_head_dim": 0}))


def test_an_odd_share_of_a_head_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"partial_rotary_factor = 0\.5 of head_dim = 30 rotates 15"):
        read_config(save(tmp_path, {**MODEL, "model_type": "glm", "head_dim": 30, "partial_rotary_factor": 0.5}))


def test_model_types_are_those_of_transformers() -> None:
    from transformers import CONFIG_MAPPING

    assert model_types() == set(CONFIG_MAPPING)


@pytest.mark.parametrize(("name", "meant"), [("llamma", "llama"), ("Qwen2", "qwen2"), ("gpt-neox", "gpt_neox")])
def test_a_misspelt_model_type_is_refused_with_the_one_that_was_meant(
    ropectl: Run, name: str, meant: str, tmp_path: Path
) -> None:
    code, out, err = ropectl("inspect", save(tmp_path, {**MODEL, "model_type": name}))
    assert (
        (code, out) == (2, "")
        and f"has no class for model type {name!r}" in err
        and meant in err.split("Did you mean")[1]
    )


def test_an_unknown_model_type_is_refused_in_two_lines(ropectl: Run, tmp_path: Path) -> None:
    folder = save(tmp_path, {**MODEL, "model_type": "zorblax" * 100})
    for command in ("inspect", "eval-perplexity", "patch"):
        code, out, err = ropectl(command, folder, *(("-o", str(tmp_path / "out")) if command == "patch" else ()))
        assert (code, out) == (2, "") and "what such a model computes is not known" in err and "Did you mean" not in err
        assert len(err.splitlines()) == 2 and len(err) < 400 and "pip install" not in err


def test_code_that_brings_an_unknown_type_is_pointed_to() -> None:
    config = {"model_type": "zorblax", "auto_map": {"AutoConfig": "configuration_zorblax.ZorblaxConfig"}}
    with pytest.raises(UnsupportedModelError, match="--trust-remote-code"):
        check_model_type(config, trusts_code=False)
    check_model_type(config, trusts_code=True)
    with pytest.raises(UnsupportedModelError):
        check_model_type({"model_type": "zorblax"}, trusts_code=True)


def test_a_registered_type_is_known() -> None:
    from transformers import CONFIG_MAPPING, AutoConfig, LlamaConfig

    class Zorblax(LlamaConfig):
        model_type = "zorblax_test"

    AutoConfig.register("zorblax_test", Zorblax)
    try:
        check_model_type({"model_type": "zorblax_test"}, trusts_code=False)
    finally:
        del CONFIG_MAPPING._extra_content["zorblax_test"]


@pytest.mark.parametrize("model_type", [None, "", 3, ["llama"], True])
def test_a_model_type_that_is_no_name_is_refused(model_type: Any, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="model_type"):
        read_config(save(tmp_path, {**MODEL, "model_type": model_type}))


@pytest.mark.process
@pytest.mark.parametrize(
    ("config", "library"),
    [
        ({**MODEL, "num_hidden_layers": 0}, "transformers"),
        ({**MODEL, "rope_scaling": {"rope_type": ""}}, "transformers"),
        ({**MODEL, "rope_scaling": {"rope_type": "linear", "factor": None}}, "transformers"),
        ({**MODEL, "model_type": "llamma"}, "torch"),
        ({**GEMMA2, "num_attention_heads": 0}, "torch"),
        ({**GEMMA2, "rope_scaling": {"rope_type": "linear", "factor": None}}, "torch"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_refusals_import_no_library(config: dict[str, Any], library: str, tmp_path: Path) -> None:
    code = (
        "import sys; sys.argv = ['ropectl', 'eval-perplexity', sys.argv[1]]\nfrom ropectl.cli.app import main\n"
        f"try: main()\nexcept SystemExit as stop: print(stop.code, {library!r} in sys.modules)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code, save(tmp_path, config)], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "2 False"
