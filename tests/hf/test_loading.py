"""Models from folders, hub ids and the package; what would run foreign code is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from ropectl.errors import ConfigError, PatchError
from ropectl.hf.config.source import read_config
from ropectl.hf.model.loading import LoadOptions, load_model, load_tokenizer, resolve_device
from ropectl.hf.model.patch import apply_rope
from ropectl.hf.model.rotary import rotary_module
from tests.conftest import make_model

SCALED = {"rope_type": "yarn", "factor": 4.0, "rope_theta": 10_000.0, "original_max_position_embeddings": 128}

#: What a small config says besides its type.
SIZES = {"hidden_size": 64, "num_attention_heads": 4, "max_position_embeddings": 128}


def write_config(folder: Path, model_type: str, **changes: object) -> str:
    (folder / "config.json").write_text(json.dumps({"model_type": model_type, **SIZES, **changes}))
    return str(folder)


def test_folder(checkpoint: Callable[..., Path]) -> None:
    source = read_config(str(checkpoint()))
    model = load_model(source, LoadOptions(device="cpu"))
    assert model.dtype == torch.float32 and not model.training
    ids = torch.tensor([[1, 2, 3]])
    assert torch.equal(model(ids).logits, make_model()(ids).logits)
    assert load_tokenizer(source, LoadOptions()).bos_token_id == 0


@pytest.mark.parametrize("dialect", ["v4", "v5"])
def test_scaled_checkpoints_are_verified_after_loading(checkpoint: Callable[..., Path], dialect: str) -> None:
    changes = {"rope_parameters": SCALED}
    if dialect == "v4":
        v4 = {key: value for key, value in SCALED.items() if key != "rope_theta"}
        changes = {"rope_parameters": "REMOVE", "rope_theta": 10_000.0, "rope_scaling": v4}
    source = read_config(str(checkpoint(**changes, max_position_embeddings=512)))
    assert str(source.rope.method) == "yarn:factor=4"
    module = rotary_module(load_model(source, LoadOptions(device="cpu")))
    assert module.attention_scaling == pytest.approx(1.138629, abs=1e-6)


def test_half_precision_keeps_the_table(checkpoint: Callable[..., Path]) -> None:
    """Loading with dtype= leaves the rotary buffer in float32."""
    model = load_model(read_config(str(checkpoint())), LoadOptions(dtype="bfloat16", device="cpu"))
    assert model.dtype == torch.bfloat16 and rotary_module(model).inv_freq.dtype == torch.float32


def test_garbage_after_loading_stops_everything(
    checkpoint: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the load path leaves in the buffer is compared with the config."""
    from transformers import AutoModelForCausalLM

    def spoilt(*args: object, **kwargs: object) -> tuple[torch.nn.Module, dict[str, object]]:
        model = make_model()
        rotary_module(model).inv_freq[3] = 6.9e-18
        return model, {}

    monkeypatch.setattr(AutoModelForCausalLM, "from_pretrained", spoilt)
    with pytest.raises(PatchError, match="Rotary pair 3"):
        load_model(read_config(str(checkpoint())), LoadOptions(device="cpu"))


def test_an_old_config_takes_the_base_of_its_class(tmp_path: Path) -> None:
    """Where the file names no base, it is the model class's default, not a constant of ours."""
    assert read_config(write_config(tmp_path, "llama")).rope.geometry.rope_theta == 10_000.0
    assert read_config(write_config(tmp_path, "mixtral")).rope.geometry.rope_theta == 1_000_000.0


def test_shares_that_only_the_class_knows(tmp_path: Path) -> None:
    """GLM rotates half of a head by its class's default; the file does not say so."""
    folder = write_config(tmp_path, "glm", rope_theta=1e4, head_dim=16)
    assert read_config(folder).rope.geometry.rotary_dim == 8


@pytest.mark.parametrize("kind", ["llama", "glm"])
def test_what_transformers_would_complete_is_checked_before(tmp_path: Path, kind: str) -> None:
    """transformers fills a missing trained length with the declared one, and lets one of two types win."""
    folder = write_config(tmp_path, kind, rope_theta=1e4, rope_scaling={"rope_type": "yarn", "factor": 4.0})
    with pytest.raises(ConfigError, match="--original-length"):
        read_config(folder)
    folder = write_config(tmp_path, kind, rope_theta=1e4, rope_scaling={"type": "yarn", "rope_type": "linear"})
    for length in (None, 64):  # giving the length excuses no contradiction
        with pytest.raises(ConfigError, match="contradicts"):
            read_config(folder, original_length=length)


def test_pickled_weights_need_permission(checkpoint: Callable[..., Path]) -> None:
    folder = checkpoint()
    model = make_model()
    (folder / "model.safetensors").unlink()
    torch.save(model.state_dict(), folder / "pytorch_model.bin")
    source = read_config(str(folder))
    with pytest.raises(ConfigError, match="cannot be loaded") as caught:
        load_model(source, LoadOptions(device="cpu"))
    assert "--allow-pickle" in caught.value.hint
    loaded = load_model(source, LoadOptions(device="cpu", allow_pickle=True))
    assert torch.equal(loaded.lm_head.weight, model.lm_head.weight)


def test_remote_code_is_never_run_without_permission(checkpoint: Callable[..., Path], tmp_path: Path) -> None:
    mark = tmp_path / "was-run"
    folder = checkpoint(model_type="evil", auto_map={"AutoConfig": "evil.Config", "AutoModelForCausalLM": "evil.Model"})
    (folder / "evil.py").write_text(f"open({str(mark)!r}, 'w').close()\n")
    with pytest.raises(ConfigError) as caught:
        source = read_config(str(folder))
        load_model(source, LoadOptions(device="cpu"))
    assert "--trust-remote-code" in caught.value.hint
    assert not mark.exists()


def test_missing_weights_are_reported(checkpoint: Callable[..., Path]) -> None:
    folder = checkpoint()
    (folder / "model.safetensors").unlink()
    with pytest.raises(ConfigError, match="cannot be loaded"):
        load_model(read_config(str(folder)), LoadOptions(device="cpu"))


def test_hub_ids_are_resolved_by_the_hub_client(
    checkpoint: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cache of the hub is a local folder: a file in it is what an online download leaves there."""
    import huggingface_hub

    asked = []
    folder = checkpoint()

    def download(name: str, file: str, revision: str | None = None) -> str:
        asked.append((name, file, revision))
        return str(folder / file)

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
    source = read_config("org/model", revision="v1")
    assert asked == [("org/model", "config.json", "v1"), ("org/model", "ropectl.json", folder.name)]
    assert source.location == "org/model" and source.revision == "v1"
    assert source.commit == folder.name, "the cache keeps each commit in a folder of its name"
    assert source.rope.geometry.original_max_position_embeddings == 128


@pytest.mark.parametrize("kind", ["absent", "shape"])
def test_incomplete_weights_are_refused(checkpoint: Callable[..., Path], kind: str) -> None:
    """transformers fills them with random numbers and only logs it."""
    from safetensors.torch import load_file, save_file

    folder = checkpoint()
    weights = load_file(folder / "model.safetensors")
    if kind == "absent":
        del weights["lm_head.weight"]
    else:
        weights["model.norm.weight"] = torch.ones(7)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ConfigError, match=r"lm_head\.weight|model\.norm\.weight|norm"):
        load_model(read_config(str(folder)), LoadOptions(device="cpu"))


def test_the_trained_length_can_be_given(checkpoint: Callable[..., Path]) -> None:
    """What the hint asks for works: the model loads, and the method is applied with that length."""
    block = {"rope_type": "yarn", "factor": 4.0, "rope_theta": 10_000.0}
    folder = checkpoint(rope_parameters=block, max_position_embeddings=512)
    with pytest.raises(ConfigError, match="--original-length"):
        read_config(str(folder))
    source = read_config(str(folder), original_length=128)
    model = load_model(source, LoadOptions(device="cpu"))
    with apply_rope(model, source.rope.method, geometry=source.rope.geometry) as report:
        assert report.patch.rope_parameters["original_max_position_embeddings"] == 128


def test_devices() -> None:
    assert resolve_device("cpu").type == "cpu"
    assert resolve_device("auto").type in ("cpu", "cuda", "mps", "xpu")
    with pytest.raises(ConfigError, match="nonsense"):
        resolve_device("nonsense")
