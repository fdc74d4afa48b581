"""A checkpoint's weights have to be those of its config; that is seen in their headers, before any is read."""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
from transformers import AutoModelForCausalLM

from ropectl.checkpoint.patching import patch_checkpoint
from ropectl.checkpoint.settings import PatchSettings
from ropectl.errors import ConfigError
from ropectl.hf.config.families import SELF_CONTAINED_CONFIGS
from ropectl.hf.config.source import read_config
from ropectl.hf.model.loading import LoadOptions, check_loadable, load_model
from ropectl.hf.tensors.fit import check_tensors
from ropectl.hf.tensors.safetensors_file import stored_tensors
from ropectl.hf.tensors.shards import INDEX, WEIGHTS, tensors_of
from scripts.tiny_models import tiny_model

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def folder(checkpoint: Callable[..., Path]) -> Path:
    return checkpoint()


def shard(folder: Path, number: int = 2) -> dict[str, str]:
    """Divides the weights over several files; returns the index's map."""
    tensors = sorted(load_file(folder / WEIGHTS).items())
    names = {name: f"model-{position % number + 1:05d}.safetensors" for position, (name, _) in enumerate(tensors)}
    for file in set(names.values()):
        save_file({name: tensor for name, tensor in tensors if names[name] == file}, folder / file)
    (folder / WEIGHTS).unlink()
    write_index(folder, {"metadata": {}, "weight_map": names})
    return names


def write_index(folder: Path, content: Any) -> None:
    (folder / INDEX).write_text(json.dumps(content))


def change_config(folder: Path, **changes: Any) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_headers_are_read_as_the_library_reads_them(folder: Path) -> None:
    found = stored_tensors(folder / WEIGHTS)
    with safe_open(folder / WEIGHTS, framework="np") as file:
        assert found.keys() == set(file.keys())
        for name, tensor in found.items():
            part = file.get_slice(name)
            assert (list(tensor.shape), tensor.dtype) == (part.get_shape(), part.get_dtype())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
def test_numbers_of_every_float_type(tmp_path: Path, dtype: torch.dtype) -> None:
    from safetensors.torch import save_file as save_torch

    values = torch.tensor([1.0, 0.5, 1e-3, -3.25], dtype=dtype)
    save_torch({"a": torch.zeros(3), "x": values}, tmp_path / "x.safetensors")
    assert stored_tensors(tmp_path / "x.safetensors")["x"].numbers() == tuple(values.double().tolist())


@pytest.mark.parametrize("model_type", SELF_CONTAINED_CONFIGS)
def test_whole_checkpoints_of_every_family_pass(model_type: str, tmp_path: Path) -> None:
    model = tiny_model(model_type)
    model.save_pretrained(tmp_path)
    assert check_tensors(read_config(str(tmp_path))) == []
    change_config(tmp_path, num_hidden_layers=model.config.num_hidden_layers + 1)
    with pytest.raises(ConfigError, match="num_hidden_layers"):
        check_tensors(read_config(str(tmp_path)))


MISFITS = {
    "vocab_size": 2048,
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 1,
    "num_key_value_heads": 1,
    "head_dim": 32,
}


@pytest.mark.parametrize("is_sharded", [False, True])
@pytest.mark.parametrize("key", MISFITS)
def test_a_config_of_other_sizes_is_refused(folder: Path, tmp_path: Path, key: str, is_sharded: bool) -> None:
    """transformers agrees: its class does not find its weights in such a folder."""
    if is_sharded:
        shard(folder)
    change_config(folder, **{key: MISFITS[key]})
    source = read_config(str(folder))
    with pytest.raises(ConfigError, match=r"The weights do not fit config\.json") as caught:
        check_tensors(source)
    assert key in caught.value.message
    with pytest.raises(ConfigError, match=r"lacks|layers"):
        load_model(source, LoadOptions())
    with pytest.raises(ConfigError, match="do not fit"):
        patch_checkpoint(PatchSettings(model=str(folder), method="pi:factor=2", out=tmp_path / "out"))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "name", ["lm_head.weight", "model.embed_tokens.weight", "model.layers.1.self_attn.k_proj.weight"]
)
def test_a_tensor_that_is_not_there(folder: Path, name: str) -> None:
    change_config(folder, tie_word_embeddings=False)
    tensors = load_file(folder / WEIGHTS)
    save_file({key: value for key, value in tensors.items() if key != name}, folder / WEIGHTS)
    with pytest.raises(ConfigError, match=name.removeprefix("model.")):
        check_tensors(read_config(str(folder)))


BAD_INDEXES: dict[str, tuple[Any, str]] = {
    "above": (
        {"weight_map": {"a": "../x.safetensors"}},
        r"'../x.safetensors', which is not a .safetensors file of this folder",
    ),
    "absolute": ({"weight_map": {"a": "/x.safetensors"}}, "not a .safetensors file of this folder"),
    "hidden above": ({"weight_map": {"a": "sub/../../x.safetensors"}}, "not a .safetensors file of this folder"),
    "pickle": ({"weight_map": {"a": "x.bin"}}, "not a .safetensors file of this folder"),
    "number": ({"weight_map": {"a": 5}}, "not a .safetensors file of this folder"),
    "empty map": ({"weight_map": {}}, "its weight_map is empty"),
    "no map": ({}, "its weight_map is not an object"),
    "list": ({"weight_map": ["x.safetensors"]}, "its weight_map is not an object"),
    "no object": ([], "is not a JSON object"),
}


@pytest.mark.parametrize("case", BAD_INDEXES)
def test_an_index_that_names_what_cannot_be(folder: Path, case: str) -> None:
    shard(folder)
    content, words = BAD_INDEXES[case]
    write_index(folder, {"metadata": {}, **content} if isinstance(content, dict) else content)
    shutil.copy(folder / "model-00001.safetensors", folder.parent / "x.safetensors")
    with pytest.raises(ConfigError, match=words):
        check_tensors(read_config(str(folder)))


def test_an_index_without_metadata(folder: Path) -> None:
    """transformers fails over it, and loads it once it has what the message says."""
    names = shard(folder)
    source = read_config(str(folder))
    assert check_tensors(source) == []
    load_model(source, LoadOptions())
    write_index(folder, {"weight_map": names})
    with pytest.raises(ConfigError, match="has no metadata"):
        check_tensors(source)
    with pytest.raises(KeyError, match="metadata"):
        AutoModelForCausalLM.from_pretrained(folder)


def test_a_shard_that_is_not_there(folder: Path) -> None:
    shard(folder)
    (folder / "model-00002.safetensors").unlink()
    source = read_config(str(folder))
    with pytest.raises(ConfigError, match=r"names model-00002\.safetensors, which is not there"):
        check_tensors(source)
    assert tensors_of(folder).missing == ("model-00002.safetensors",)
    assert ["names model-00002.safetensors" in note for note in check_tensors(source, complete=False)] == [True]


def test_a_tensor_that_is_in_another_shard(folder: Path) -> None:
    names = shard(folder)
    files = sorted(set(names.values()))
    moved = next(name for name, file in names.items() if file == files[0])
    write_index(folder, {"metadata": {}, "weight_map": {**names, moved: files[1]}})
    with pytest.raises(ConfigError, match="contradicts itself") as caught:
        check_tensors(read_config(str(folder)))
    assert moved in caught.value.message


def damaged(path: Path, how: str) -> None:
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    name = next(key for key in header if key != "__metadata__")
    match how:
        case "cut":
            content = content[:-1]
        case "header cut":
            content = content[:20]
        case "longer":
            content += b"x"
        case "endless header":
            content = struct.pack("<Q", 2**62) + content[8:]
        case "no JSON":
            content = content[:8] + b"x" * length + content[8 + length :]
        case "deep JSON":
            content = struct.pack("<Q", 200_000) + b"[" * 100_000 + b"]" * 100_000
        case "empty":
            content = b""
        case _:
            header[name] |= {"shape": {"shape": [1, 2, 3], "negative": [-1, -64], "text": ["64"]}[how]}
            text = json.dumps(header).encode()
            content = struct.pack("<Q", len(text)) + text + content[8 + length :]
    path.write_bytes(content)


@pytest.mark.parametrize(
    "how",
    ["cut", "header cut", "longer", "endless header", "no JSON", "deep JSON", "empty", "shape", "negative", "text"],
)
def test_damaged_files(folder: Path, how: str) -> None:
    damaged(folder / WEIGHTS, how)
    with pytest.raises(ConfigError, match=r"incomplete|damaged"):
        check_tensors(read_config(str(folder)))


def with_table(folder: Path, base: float, dtype: str = "float32", pairs: int = 8) -> None:
    """Adds the rotary tables that transformers stored until version 4.32, in float64 by their own formula."""
    table = (1.0 / base ** (np.arange(pairs, dtype=np.float64) / pairs)).astype(dtype)
    tables = {f"model.layers.{layer}.self_attn.rotary_emb.inv_freq": table for layer in range(2)}
    save_file({**load_file(folder / WEIGHTS), **tables}, folder / WEIGHTS, metadata={"format": "pt"})


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("scaling", [None, {"type": "linear", "factor": 4.0}])
def test_stored_tables_of_the_config_are_kept_with_a_word(
    folder: Path, tmp_path: Path, dtype: str, scaling: dict[str, Any] | None
) -> None:
    change_config(folder, rope_theta=10_000.0, rope_parameters=None, rope_scaling=scaling)
    with_table(folder, 10_000.0, dtype)
    settings = PatchSettings(model=str(folder), method="yarn:factor=4", replace=True, out=tmp_path / "out")
    record = patch_checkpoint(settings)
    assert sum("rotary_emb.inv_freq" in note for note in record["notes"]) == 1
    names = stored_tensors(tmp_path / "out" / WEIGHTS)
    assert "model.layers.0.self_attn.rotary_emb.inv_freq" in names


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_stored_tables_of_another_base_are_refused_with_both(folder: Path, dtype: str) -> None:
    change_config(folder, rope_theta=500_000.0, rope_parameters=None, rope_scaling=None)
    with_table(folder, 10_000.0, dtype)
    with pytest.raises(ConfigError, match="rope_theta = 500000") as caught:
        check_tensors(read_config(str(folder)))
    base = float(caught.value.message.split(" of base ")[1].split()[0])
    assert base == pytest.approx(10_000, rel=0.02 if dtype == "float16" else 1e-4)


def test_stored_tables_of_another_width_are_refused(folder: Path) -> None:
    with_table(folder, 10_000.0, pairs=16)
    with pytest.raises(ConfigError, match=r"of shape \[16\].*\(8 pairs\)"):
        check_tensors(read_config(str(folder)))


def test_a_family_that_only_its_class_knows(tmp_path: Path) -> None:
    """Fused projections, as phi3 has them, are compared by transformers itself, without reading a weight."""
    tiny_model("phi3").save_pretrained(tmp_path)
    check_loadable(read_config(str(tmp_path)), LoadOptions())
    change_config(tmp_path, intermediate_size=128)
    with pytest.raises(ConfigError, match="gate_up_proj"):
        check_loadable(read_config(str(tmp_path)), LoadOptions())
    change_config(tmp_path, intermediate_size=64, num_hidden_layers=1)
    with pytest.raises(ConfigError, match="num_hidden_layers = 1, and they have 2 layers"):
        check_loadable(read_config(str(tmp_path)), LoadOptions())


def test_inspect_names_weights_of_another_config(ropectl: Run, folder: Path) -> None:
    change_config(folder, intermediate_size=256)
    code, out, err = ropectl("inspect", str(folder))
    assert code == 0 and "intermediate_size = 256" in out + err


@pytest.mark.parametrize(
    "command",
    [
        ["eval-perplexity"],
        ["eval-passkey"],
        ["eval-tasks", "--task", "passkey"],
        ["compare-methods", "-m", "pi:factor=2"],
    ],
    ids=lambda command: command[0],
)
def test_every_measurement_refuses_them(ropectl: Run, folder: Path, command: list[str]) -> None:
    change_config(folder, intermediate_size=256)
    code, out, err = ropectl(command[0], str(folder), *command[1:])
    assert code == 2 and out == "" and "intermediate_size = 256" in err
