"""A GGUF file and the folder that it was converted from, or that ``patch`` writes from it, are described alike.

The headers are those that llama.cpp's converter wrote (``scripts/runtimes/collect_family_headers.py``).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoConfig
from transformers.integrations.ggml import GGUF_CONFIG_MAPPING

from ropectl.advise.api import inspect_model
from ropectl.advise.requests import InspectSettings
from ropectl.checkpoint.patching import patch_checkpoint
from ropectl.checkpoint.settings import PatchSettings
from ropectl.errors import UnsupportedModelError
from ropectl.gguf.layer_patterns import PATTERNS
from ropectl.hf.config.geometry import RopeDescription, describe_rope
from ropectl.hf.config.source import read_config
from ropectl.hf.run_names import check_gguf_weights
from tests.gguf.gguf_files import write_header
from tests.tolerances import GGUF_FLOAT32

COLLECTED = json.loads(Path(__file__).with_name("headers.json").read_text())
MODELS: dict[str, dict[str, Any]] = COLLECTED["models"]

#: Architectures of whose files transformers makes a folder: what ``patch`` writes has its config. Not among them is Qwen3,
#: whose head it takes for 128 channels wide whatever the file says.
LOADED_BY_TRANSFORMERS = ("gemma2", "gemma3", "llama", "phi3", "qwen2", "qwen3moe", "starcoder2")


def file_of(name: str, folder: Path, **keys: Any) -> Path:
    """The header of a collected file, as a file of its own."""
    found = MODELS[name]
    return write_header(
        folder / f"{name}.gguf", found["architecture"], {**found["keys"], **keys}, found.get("tensors", {})
    )


def folder_of(name: str, folder: Path) -> Path:
    (folder / name).mkdir()
    (folder / name / "config.json").write_text(json.dumps(MODELS[name]["config"]))
    return folder / name


def said(rope: RopeDescription) -> dict[str, Any]:
    """All of a description but its method, which two files may spell differently."""
    return {**vars(rope), "layer_types": sorted(rope.layer_types), "method": None}


def numbers(rope: RopeDescription) -> tuple[float, ...]:
    """Frequencies and attention factor; a ramp rounded to whole pairs, as llama.cpp does whatever the config said."""
    method = rope.method
    if hasattr(method, "truncate"):
        method = method.model_copy(update={"truncate": True})
    found = method.frequencies(rope.geometry)
    return *found.inv_freq, found.attention_factor


@pytest.mark.parametrize("name", MODELS)
def test_a_file_and_the_folder_it_was_converted_from_are_described_alike(name: str, tmp_path: Path) -> None:
    """Geometry, frequencies, window, pairing, warnings and ``--layers``, for every layer type."""
    file, folder = file_of(name, tmp_path), folder_of(name, tmp_path)
    for layers in (None, *read_config(str(folder)).rope.layer_types):
        ours, theirs = (read_config(str(place), layers=layers).rope for place in (file, folder))
        assert said(ours) == said(theirs)
        assert numbers(ours) == pytest.approx(numbers(theirs), rel=GGUF_FLOAT32)


@pytest.mark.parametrize("name", [name for name in MODELS if MODELS[name]["architecture"] in LOADED_BY_TRANSFORMERS])
def test_the_config_that_transformers_makes_of_a_file_is_described_alike(name: str, tmp_path: Path) -> None:
    file = file_of(name, tmp_path)
    made = AutoConfig.from_pretrained(tmp_path, gguf_file=file.name).to_dict()
    ours, theirs = read_config(str(file)).rope, describe_rope(made)
    assert (ours.geometry, ours.layer_type, set(ours.layer_types), ours.window) == (
        theirs.geometry, theirs.layer_type, set(theirs.layer_types), theirs.window,
    )  # fmt: skip


def test_every_pattern_was_collected() -> None:
    assert set(PATTERNS) <= {found["architecture"] for found in MODELS.values()}


def gemma_270m(folder: Path) -> Path:
    """The rotary keys of Gemma-3-270m as it is published in GGUF: nothing of a pattern, nothing of a second base."""
    keys = {
        "context_length": 32_768, "block_count": 18, "embedding_length": 640, "feed_forward_length": 2048,
        "attention.head_count": 4, "attention.head_count_kv": 1, "attention.key_length": 256,
        "attention.value_length": 256, "attention.sliding_window": 512, "rope.freq_base": 1e6,
    }  # fmt: skip
    return write_header(folder / "gemma.gguf", "gemma3", keys, {})


def test_gemma_3_sees_everything_in_every_sixth_layer(tmp_path: Path) -> None:
    source = read_config(str(gemma_270m(tmp_path)))
    kinds = source.config["layer_types"]
    assert [layer for layer, kind in enumerate(kinds) if kind == "full_attention"] == [5, 11, 17]
    assert kinds.count("sliding_attention") == 15
    rope = source.rope
    assert (rope.layer_type, rope.window, rope.geometry.rotary_dim, rope.geometry.rope_theta) == (
        "full_attention", None, 256, 1e6,
    )  # fmt: skip
    assert rope.warnings == ()
    windowed = read_config(str(gemma_270m(tmp_path)), layers="sliding_attention").rope
    assert (windowed.window, windowed.geometry.rope_theta) == (512, 10_000.0)


def test_inspect_says_so(tmp_path: Path) -> None:
    (record,) = inspect_model(InspectSettings(model=str(gemma_270m(tmp_path))))
    assert (record["layer_type"], record["window"]) == ("full_attention", None)
    assert not [warning for warning in record["warnings"] if "512" in warning]


@pytest.mark.parametrize(
    ("pattern", "whole"),
    [(3, [2, 5, 8]), (1, list(range(9))), (0, []), ([True, False], [1, 3, 5, 7]), ([True] * 8 + [False], [8])],
)
def test_the_pattern_that_a_file_says_comes_first(tmp_path: Path, pattern: Any, whole: list[int]) -> None:
    """A period, or a list that repeats; a period of 0 gives every layer a window, one of 1 none."""
    file = file_of("cohere2", tmp_path, **{"block_count": 9, "attention.sliding_window_pattern": pattern})
    kinds = read_config(str(file)).config["layer_types"]
    assert [layer for layer, kind in enumerate(kinds) if kind == "full_attention"] == whole


@pytest.mark.parametrize(("depth", "window"), [(64, 4096), (30, None)])
def test_exaone_4_has_windows_in_its_large_model_only(tmp_path: Path, depth: int, window: int | None) -> None:
    keys = {**MODELS["exaone4"]["keys"], "block_count": depth}
    keys = {key: value for key, value in keys.items() if not key.startswith("attention.sliding_window")}
    config = read_config(str(write_header(tmp_path / "exaone.gguf", "exaone4", keys, {}))).config
    assert config.get("sliding_window") == window
    assert ("layer_types" in config) == (window is not None)


@pytest.mark.parametrize("architecture", ["granite", "granitehybrid", "granitemoe"])
def test_granite_says_by_a_switch_whether_it_rotates(architecture: str, tmp_path: Path) -> None:
    """Granite 4.0-H has no positions, and its file names base and dimensions all the same."""
    keys = {**MODELS["granite"]["keys"], "rope.scaling.finetuned": True}
    assert read_config(str(write_header(tmp_path / "on.gguf", architecture, keys, {}))).rope.geometry.rotary_dim == 64
    keys = {**keys, "rope.scaling.finetuned": False}
    with pytest.raises(UnsupportedModelError):
        read_config(str(write_header(tmp_path / "off.gguf", architecture, keys, {})))


def test_the_windowed_layers_of_olmo_3_rotate_by_the_base_of_the_others(tmp_path: Path) -> None:
    """llama.cpp's graph takes one base for all layers; the key for windowed ones is written and not read."""
    file = file_of("olmo3", tmp_path, **{"rope.freq_base": 2e6, "rope.freq_base_swa": 5e5})
    bases = [
        read_config(str(file), layers=f"{kind}_attention").rope.geometry.rope_theta for kind in ("full", "sliding")
    ]
    assert bases == [2e6, 2e6]


def test_no_window_where_the_file_says_so(tmp_path: Path) -> None:
    """llama.cpp reads a width of 0 as no windows: every layer of such a Llama 4 rotates."""
    file = file_of("llama4_text", tmp_path, **{"attention.sliding_window": 0})
    assert read_config(str(file)).rope.window is None
    assert not [note for note in read_config(str(file)).rope.warnings if "window" in note]


def test_a_file_whose_weights_transformers_does_not_read_is_refused_in_the_dry_run_too(tmp_path: Path) -> None:
    plan = {"method": "yarn", "factor": 2, "dry_run": True}
    with pytest.raises(UnsupportedModelError, match="does not read the weights of GGUF files of cohere2"):
        patch_checkpoint(PatchSettings(model=str(file_of("cohere2", tmp_path)), **plan))
    file = str(file_of("gemma3_text", tmp_path))
    record = patch_checkpoint(PatchSettings(model=file, layers="sliding_attention", **plan))
    assert record["layer_type"] == "sliding_attention"
    for config in ({"model_type": name} for name in GGUF_CONFIG_MAPPING):
        check_gguf_weights("file.gguf", config)
