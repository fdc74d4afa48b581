"""The contents of GGUF files are read like the package ``gguf`` and transformers do, scaling as llama.cpp applies it."""

from __future__ import annotations

import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import gguf
import pytest
import torch
from transformers import AutoConfig, LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from ropectl.errors import ConfigError, UnsupportedModelError
from ropectl.gguf.header import SkippedList, read_header
from ropectl.gguf.scaling_keys import plan_gguf
from ropectl.hf.config.source import read_config
from ropectl.rope.frequencies import divisors, trained_inv_freq
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.registry import parse_method
from tests.gguf.gguf_files import HEAD_DIM, LENGTH, THETA, VOCABULARY, write_tiny
from tests.tolerances import GGUF_FLOAT32

GEOMETRY = RopeGeometry(HEAD_DIM, THETA, LENGTH)
ORIGINAL = {"rope.scaling.original_context_length": LENGTH, "context_length": 4 * LENGTH}
YARN = {"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, **ORIGINAL}


def test_header_says_what_the_gguf_package_reads(tmp_path: Path) -> None:
    path = write_tiny(tmp_path / "tiny.gguf", vectors={"rope_freqs.weight": [1.0] * 8})
    ours, theirs = read_header(path), gguf.GGUFReader(path)
    fields = {name: field for name, field in theirs.fields.items() if not name.startswith("GGUF.")}
    assert list(ours.keys) == list(fields)
    for name, field in fields.items():
        value = field.contents()
        if isinstance(value, list):
            assert ours.keys[name] == (
                value if not isinstance(ours.keys[name], SkippedList) else SkippedList(len(value))
            )
        elif isinstance(value, float):
            assert struct.pack("<f", ours.keys[name]) == struct.pack("<f", value)
        else:
            assert ours.keys[name] == value and type(ours.keys[name]) is type(value)
    assert [(t.name, t.shape, t.kind, ours.data_start + t.offset) for t in ours.tensors] == [
        (t.name, tuple(t.shape), int(t.tensor_type), t.data_offset) for t in theirs.tensors
    ]
    assert (ours.alignment, ours.data_start) == (theirs.alignment, theirs.data_offset)


def test_numbers_are_the_shortest_that_are_the_same_float32(tmp_path: Path) -> None:
    header = read_header(write_tiny(tmp_path / "tiny.gguf", keys={"attention.layer_norm_rms_epsilon": 1e-5}))
    assert header.own("attention.layer_norm_rms_epsilon") == 1e-5


@pytest.mark.parametrize("architecture", ["llama", "qwen2", "gemma3", "phi3"])
def test_geometry_is_that_of_transformers(tmp_path: Path, architecture: str) -> None:
    keys: dict[str, Any] = {"rope.freq_base": 31_415.0, "context_length": 777}
    if architecture == "gemma3":
        keys |= {"attention.key_length": HEAD_DIM, "attention.value_length": HEAD_DIM, "attention.sliding_window": 64}
        keys["block_count"] = 6  # five windowed layers, and one that sees everything
    path = write_tiny(tmp_path / "tiny.gguf", architecture, keys)
    theirs = AutoConfig.from_pretrained(tmp_path, gguf_file=path.name)
    ours = read_config(str(path))
    parameters = theirs.rope_parameters.get("full_attention", theirs.rope_parameters)
    assert ours.rope.geometry.rope_theta == parameters["rope_theta"] == 31_415.0
    assert ours.rope.max_position_embeddings == theirs.max_position_embeddings == 777
    head_dim = getattr(theirs, "head_dim", None) or theirs.hidden_size // theirs.num_attention_heads
    assert ours.rope.geometry.rotary_dim == head_dim == HEAD_DIM
    assert ours.config["model_type"] == theirs.model_type
    assert ours.config["vocab_size"] == theirs.vocab_size == VOCABULARY


def test_a_file_without_a_base_has_that_of_llama_cpp(tmp_path: Path) -> None:
    path = write_tiny(tmp_path / "tiny.gguf", remove=["rope.freq_base"])
    assert read_config(str(path)).rope.geometry == RopeGeometry(HEAD_DIM, 10_000.0, LENGTH)


@pytest.mark.parametrize("keys", [{}, {"attention.head_count": 0, "attention.head_count_kv": 0}], ids=["", "no heads"])
def test_a_file_without_rotary_keys_is_refused_for_that(tmp_path: Path, keys: dict[str, Any]) -> None:
    path = write_tiny(tmp_path / "tiny.gguf", "llama", keys, remove=["rope.freq_base", "rope.dimension_count"])
    with pytest.raises(UnsupportedModelError, match="no rope_theta"):
        read_config(str(path))


@pytest.mark.parametrize("rotary", [2, 6, 12])
def test_partial_rotary(tmp_path: Path, rotary: int) -> None:
    path = write_tiny(tmp_path / "tiny.gguf", "stablelm", {"rope.dimension_count": rotary})
    assert read_config(str(path)).rope.geometry.rotary_dim == rotary


@pytest.mark.parametrize(
    ("architecture", "keys", "spec"),
    [
        ("llama", {}, "none"),
        ("llama", {"rope.scaling.type": "linear", "rope.scaling.factor": 4.0, **ORIGINAL}, "pi:factor=4"),
        ("llama", {"rope.scaling.factor": 4.0, **ORIGINAL}, "pi:factor=4"),
        ("llama", {"rope.scale_linear": 4.0, **ORIGINAL}, "pi:factor=4"),
        ("llama", {"rope.scaling.type": "none", "rope.scaling.factor": 4.0}, "none"),
        ("llama", YARN, "yarn:factor=4"),
        ("llama", {"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0}, "yarn:factor=4"),
        # what the converter writes and the loader overwrites or never reads
        ("llama", {**YARN, "rope.scaling.yarn_attn_factor": 2.0, "rope.scaling.yarn_beta_fast": 8.0}, "yarn:factor=4"),
        ("mistral3", {**YARN, "rope.scaling.yarn_beta_fast": 8.0}, "yarn:factor=4,beta_fast=8"),
        # 1 / (1 + 0.1 ln 4): the multiplier that leaves an attention factor of 1
        ("llama", {**YARN, "rope.scaling.attn_factor": 0.8782488562869419}, "yarn:factor=4,attention_factor=1"),
    ],
)
def test_scaling_keys(tmp_path: Path, architecture: str, keys: dict[str, Any], spec: str) -> None:
    rope = read_config(str(write_tiny(tmp_path / "tiny.gguf", architecture, keys))).rope
    assert str(rope.method) == spec
    assert rope.geometry == GEOMETRY


@pytest.mark.parametrize(("factor", "low", "high"), [(8.0, 1.0, 4.0), (32.0, 1.0, 4.0), (4.0, 1.0, 32.0)])
def test_the_divisors_of_llama3_are_recognised_with_their_length(
    tmp_path: Path, factor: float, low: float, high: float
) -> None:
    """Llama 3.1 files carry no key that says 8192; the divisors are computed here by transformers."""
    block = {"rope_type": "llama3", "factor": factor, "low_freq_factor": low, "high_freq_factor": high}
    config = LlamaConfig(
        hidden_size=128,
        num_attention_heads=1,
        max_position_embeddings=131_072,
        rope_parameters={**block, "rope_theta": 500_000.0, "original_max_position_embeddings": 8192},
    )
    scaled, _ = ROPE_INIT_FUNCTIONS["llama3"](config, "cpu")
    trained = torch.tensor(trained_inv_freq(RopeGeometry(128, 500_000.0, 8192)), dtype=torch.float64)
    keys = {"rope.freq_base": 500_000.0, "rope.dimension_count": 128, "context_length": 131_072}
    path = write_tiny(
        tmp_path / "tiny.gguf",
        keys={**keys, "embedding_length": 512},
        vectors={"rope_freqs.weight": (trained / scaled).tolist()},
    )
    rope = read_config(str(path)).rope
    assert rope.geometry == RopeGeometry(128, 500_000.0, 8192)
    assert rope.method == parse_method(f"llama3:factor={factor},high_freq_factor={high}")
    assert rope.method.frequencies(rope.geometry).inv_freq == pytest.approx(scaled.tolist(), rel=GGUF_FLOAT32)


def test_other_divisors_need_the_trained_length(tmp_path: Path) -> None:
    values = [1.0 + i / 3 for i in range(HEAD_DIM // 2)]
    path = write_tiny(
        tmp_path / "tiny.gguf", keys={"rope.scaling.attn_factor": 1.25}, vectors={"rope_freqs.weight": values}
    )
    with pytest.raises(ConfigError, match="--original-length"):
        read_config(str(path))
    rope = read_config(str(path), original_length=128).rope
    found = rope.method.frequencies(rope.geometry)
    assert divisors(rope.geometry, found) == pytest.approx(values, rel=GGUF_FLOAT32)
    assert found.attention_factor == 1.25


def test_linear_scaling_divides_the_divisors_too(tmp_path: Path) -> None:
    """llama.cpp divides the angle by both."""
    values = [1.0 + i / 3 for i in range(HEAD_DIM // 2)]
    path = write_tiny(
        tmp_path / "tiny.gguf", keys={"rope.scaling.factor": 2.0, **ORIGINAL}, vectors={"rope_freqs.weight": values}
    )
    rope = read_config(str(path)).rope
    assert divisors(rope.geometry, rope.method.frequencies(rope.geometry)) == pytest.approx(
        [2 * value for value in values], rel=GGUF_FLOAT32
    )


def test_two_lists_are_chosen_by_length(tmp_path: Path) -> None:
    short, long = [1.0] * 8, [2.0] * 8
    vectors = {"rope_factors_short.weight": short, "rope_factors_long.weight": long}
    path = write_tiny(tmp_path / "tiny.gguf", "phi3", {"rope.scaling.attn_factor": 1.19, **ORIGINAL}, vectors)
    rope = read_config(str(path)).rope
    for seq_len, expected in ((LENGTH, short), (LENGTH + 1, long)):
        found = rope.method.frequencies(rope.geometry, seq_len)
        assert divisors(rope.geometry, found) == pytest.approx(expected) and found.attention_factor == 1.19


def test_yarn_on_top_of_divisors_is_refused(tmp_path: Path) -> None:
    keys = {"rope.scaling.type": "yarn", "rope.scaling.factor": 2.0}
    path = write_tiny(tmp_path / "tiny.gguf", keys=keys, vectors={"rope_freqs.weight": [1.0] * 8})
    with pytest.raises(UnsupportedModelError, match="on top of divisors"):
        read_config(str(path))


def test_latent_attention_is_told_apart(tmp_path: Path) -> None:
    keys = {"attention.kv_lora_rank": 32, "rope.dimension_count": 8}
    path = write_tiny(tmp_path / "tiny.gguf", "deepseek2", keys)
    geometry = read_config(str(path)).rope.geometry
    assert geometry.rotary_dim == 8, "only the rotated part of a head counts"
    with pytest.raises(UnsupportedModelError, match="softmax scale"):
        plan_gguf(path, parse_method("yarn:factor=4"), geometry)


def test_a_damaged_file_is_refused_wherever_it_ends(tmp_path: Path) -> None:
    data = write_tiny(tmp_path / "tiny.gguf").read_bytes()
    start = read_header(tmp_path / "tiny.gguf").data_start
    cut = tmp_path / "cut.gguf"
    for size in [*range(0, 400), *range(400, start + 1, 397), start]:
        cut.write_bytes(data[:size])
        with pytest.raises(ConfigError, match=r"empty|damaged|cut short|not a GGUF"):
            read_header(cut)


@pytest.mark.parametrize(
    ("start", "complaint"),
    [
        (b"GGML" + bytes(40), "not a GGUF file"),
        (b"GGUF" + struct.pack("<I", 1) + bytes(40), "version 1"),
        (b"GGUF" + struct.pack(">I", 3) + bytes(40), "big-endian"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 0), "general.architecture"),
        (b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 1) + b"k" + struct.pack("<I", 99), "type 99"),
        (b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 1) + b"k" + struct.pack("<IIQ", 9, 99, 3), "type 99"),
        (
            b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 1) + b"k" + struct.pack("<I", 9) + struct.pack("<IQ", 9, 1) * 5000,
            "damaged",
        ),
        (b"GGUF" + struct.pack("<IQQQ", 3, 0, 2**60, 1) + b"k" + struct.pack("<IQ", 8, 2**62), "damaged"),
    ],
)
def test_files_of_another_kind_are_refused(tmp_path: Path, start: bytes, complaint: str) -> None:
    path = tmp_path / "odd.gguf"
    path.write_bytes(start)
    with pytest.raises(ConfigError, match=complaint):
        read_header(path)


@pytest.mark.process
def test_inspect_imports_nothing_heavy(tmp_path: Path) -> None:
    path = write_tiny(tmp_path / "tiny.gguf")
    code = (
        "import sys; from ropectl.cli.app import main; sys.argv = ['ropectl', 'inspect', sys.argv[1]]\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code\n"
        "assert not {'torch', 'transformers', 'numpy', 'gguf'} & set(sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True)
    assert result.returncode == 0 and "trained length 512" in result.stdout, result.stderr
