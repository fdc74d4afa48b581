"""A patched copy: what it computes, what stayed as it was, and what is refused."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

from ropectl.checkpoint import gguf_patch
from ropectl.checkpoint.gguf_patch import patch_gguf
from ropectl.errors import ConfigError, PatchError, UnsupportedModelError
from ropectl.gguf.architectures import DIVISOR_TENSORS_READ
from ropectl.gguf.scaling_keys import plan_gguf
from ropectl.hf.config.source import read_config
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.registry import all_methods, parse_method
from tests.gguf.gguf_files import HEAD_DIM, LENGTH, THETA, write_tiny
from tests.rope.test_contract import example
from tests.tolerances import GGUF_FLOAT32

GEOMETRY = RopeGeometry(HEAD_DIM, THETA, LENGTH)
FREQS = "rope_freqs.weight"


def fields(path: Path) -> dict[str, Any]:
    """Every key as the package ``gguf`` reads it."""
    found = gguf.GGUFReader(path).fields
    return {name: field.contents() for name, field in found.items() if not name.startswith("GGUF.")}


def tensors(path: Path) -> dict[str, tuple[Any, ...]]:
    """Type, shape and bytes of every tensor as the package ``gguf`` reads them."""
    found = gguf.GGUFReader(path).tensors
    return {t.name: (t.tensor_type, t.shape.tolist(), np.asarray(t.data).tobytes()) for t in found}


@pytest.mark.parametrize("architecture", ["llama", "phi3"])
@pytest.mark.parametrize("name", list(all_methods()))
def test_every_method_reads_back_with_its_frequencies(tmp_path: Path, name: str, architecture: str) -> None:
    source = write_tiny(tmp_path / "tiny.gguf", architecture)
    method = example(name, 4.0)
    seq_len = 3 * LENGTH if method.depends_on_seq_len else None
    patch_gguf(source, tmp_path / "out.gguf", method, GEOMETRY, seq_len=seq_len)
    rope = read_config(str(tmp_path / "out.gguf")).rope
    actual, expected = rope.method.frequencies(rope.geometry), method.frequencies(GEOMETRY, seq_len)
    assert not rope.method.depends_on_seq_len
    assert actual.inv_freq == pytest.approx(expected.inv_freq, rel=GGUF_FLOAT32)
    assert actual.attention_factor == pytest.approx(expected.attention_factor, rel=GGUF_FLOAT32)
    assert rope.geometry.original_max_position_embeddings == LENGTH
    assert rope.max_position_embeddings == (seq_len or method.target_length(GEOMETRY))


@pytest.mark.parametrize(
    "spec", ["pi:factor=4", "yarn:factor=4", "yarn:factor=4,attention_factor=1", "llama3:factor=4"]
)
def test_methods_with_a_type_of_their_own_read_back_as_themselves(tmp_path: Path, spec: str) -> None:
    source = write_tiny(tmp_path / "tiny.gguf")
    patch_gguf(source, tmp_path / "out.gguf", parse_method(spec), GEOMETRY)
    rope = read_config(str(tmp_path / "out.gguf")).rope
    assert (str(rope.method), rope.geometry) == (spec, GEOMETRY)


@pytest.mark.parametrize(
    ("spec", "expected", "has_divisors"),
    [
        ("none", {}, False),
        ("ntk:factor=4", {"rope.freq_base": THETA * 4 ** (16 / 14)}, False),
        ("abf:rope_theta=500000", {"rope.freq_base": 500_000.0, "context_length": None}, False),
        ("pi:factor=4", {"rope.scaling.type": "linear", "rope.scaling.factor": 4.0}, False),
        ("yarn:factor=4", {"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0}, False),
        (
            "yarn:factor=4,attention_factor=1",
            {
                "rope.scaling.type": "yarn",
                "rope.scaling.factor": 4.0,
                "rope.scaling.attn_factor": 1 / (1 + 0.1 * math.log(4)),
            },
            False,
        ),
        (
            "yarn:factor=4,truncate=false",
            {"rope.scaling.type": "none", "rope.scaling.attn_factor": 1 + 0.1 * math.log(4)},
            True,
        ),
        ("ntk-by-parts:factor=4", {"rope.scaling.type": "none"}, True),
        ("llama3:factor=4", {"rope.scaling.type": "none"}, True),
    ],
)
def test_keys_are_those_that_llama_cpp_honours(
    tmp_path: Path, spec: str, expected: dict[str, Any], has_divisors: bool
) -> None:
    source = write_tiny(tmp_path / "tiny.gguf")
    patch_gguf(source, tmp_path / "out.gguf", parse_method(spec), GEOMETRY, target_length=2048)
    old, new = fields(source), fields(tmp_path / "out.gguf")
    changed = {key.removeprefix("llama."): value for key, value in new.items() if old.get(key) != value}
    always = {"rope.scaling.original_context_length": LENGTH, "context_length": 2048}
    wanted = {**always, **{key: value for key, value in expected.items() if value is not None}}
    assert changed.keys() == wanted.keys()
    for key, value in wanted.items():
        assert changed[key] == (value if isinstance(value, str) else pytest.approx(value, rel=GGUF_FLOAT32))
    assert (FREQS in tensors(tmp_path / "out.gguf")) is has_divisors
    assert set(old) <= set(new)


@pytest.mark.process
@pytest.mark.parametrize("spec", ["pi:factor=4", "llama3:factor=4"])
def test_all_else_is_copied_byte_for_byte(tmp_path: Path, spec: str) -> None:
    source = write_tiny(tmp_path / "tiny.gguf")
    before = source.read_bytes()
    patch_gguf(source, tmp_path / "out.gguf", parse_method(spec), GEOMETRY)
    old, new = fields(source), fields(tmp_path / "out.gguf")
    assert {k: v for k, v in new.items() if "rope" not in k and "context" not in k} == {
        k: v for k, v in old.items() if "rope" not in k and "context" not in k
    }
    assert [key for key in new if key in old] == list(old)
    copied = tensors(tmp_path / "out.gguf")
    freqs = copied.pop(FREQS, None)
    assert copied == tensors(source)
    assert (freqs is not None) is (spec != "pi:factor=4")
    assert source.read_bytes() == before


def test_data_lies_where_the_loader_wants_it(tmp_path: Path) -> None:
    """llama.cpp refuses a file whose tensors do not follow each other, each padded to the alignment."""
    patch_gguf(write_tiny(tmp_path / "a.gguf"), tmp_path / "b.gguf", parse_method("llama3:factor=4"), GEOMETRY)
    reader = gguf.GGUFReader(tmp_path / "b.gguf")
    expected = reader.data_offset
    for tensor in reader.tensors:
        assert tensor.data_offset == expected
        expected += -(-int(tensor.n_bytes) // reader.alignment) * reader.alignment
    assert (tmp_path / "b.gguf").stat().st_size == expected


def test_divisors_of_a_pair_that_stands_still(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ropectl.rope.frequencies import RopeFrequencies, trained_inv_freq
    from ropectl.rope.methods.llama3 import Llama3

    table = (*trained_inv_freq(GEOMETRY)[:4], 0.0, 0.0, 0.0, 0.0)
    monkeypatch.setattr(Llama3, "frequencies", lambda *_: RopeFrequencies(table))
    plan = plan_gguf(write_tiny(tmp_path / "tiny.gguf"), parse_method("llama3:factor=4"), GEOMETRY)
    assert plan.tensors[FREQS] == (1.0,) * 4 + (1e30,) * 4


@pytest.mark.process
@pytest.mark.parametrize(
    "first", ["pi:factor=2", "yarn:factor=2,attention_factor=1.5", "llama3:factor=2", "ntk:factor=2"]
)
@pytest.mark.parametrize("second", ["none", "pi:factor=4", "yarn:factor=4", "llama3:factor=4"])
def test_scaling_is_replaced_never_stacked(tmp_path: Path, first: str, second: str) -> None:
    source = write_tiny(tmp_path / "tiny.gguf")
    patch_gguf(source, tmp_path / "first.gguf", parse_method(first), GEOMETRY)
    patch_gguf(tmp_path / "first.gguf", tmp_path / "second.gguf", parse_method(second), GEOMETRY)
    patch_gguf(source, tmp_path / "direct.gguf", parse_method(second), GEOMETRY)
    assert fields(tmp_path / "second.gguf") == fields(tmp_path / "direct.gguf")
    assert tensors(tmp_path / "second.gguf") == tensors(tmp_path / "direct.gguf")
    assert str(read_config(str(tmp_path / "second.gguf")).rope.method) == second


def test_the_converters_dead_keys_go_too(tmp_path: Path) -> None:
    dead = {"rope.scaling.yarn_attn_factor": 3.0, "rope.scaling.finetuned": 1, "rope.scale_linear": 2.0}
    keys = {"rope.scaling.type": "yarn", "rope.scaling.factor": 2.0, **dead}
    plan = plan_gguf(write_tiny(tmp_path / "tiny.gguf", keys=keys), parse_method("pi:factor=4"), GEOMETRY)
    assert set(plan.removed) == {f"llama.{key}" for key in dead}


def test_a_plan_writes_nothing_and_is_what_is_written(tmp_path: Path) -> None:
    source = write_tiny(tmp_path / "tiny.gguf")
    method = parse_method("llama3:factor=4")
    plan = plan_gguf(source, method, GEOMETRY)
    assert list(tmp_path.iterdir()) == [source]
    assert patch_gguf(source, tmp_path / "out.gguf", method, GEOMETRY) == plan
    written = fields(tmp_path / "out.gguf")
    assert all(written[key] == value for key, value in plan.keys.items())


@pytest.mark.parametrize("architecture", ["qwen2", "qwen3", "gemma2", "gemma3", "starcoder2", "gpt-oss"])
def test_where_no_graph_reads_divisors(tmp_path: Path, architecture: str) -> None:
    source = write_tiny(tmp_path / "tiny.gguf", architecture)
    assert architecture not in DIVISOR_TENSORS_READ
    for spec in ("none", "ntk:factor=4", "abf:rope_theta=1e6", "pi:factor=4", "yarn:factor=4"):
        assert not plan_gguf(source, parse_method(spec), GEOMETRY).tensors
    for spec in ("llama3:factor=4", "ntk-by-parts:factor=4", "yarn:factor=4,beta_fast=16"):
        with pytest.raises(UnsupportedModelError, match=architecture) as error:
            plan_gguf(source, parse_method(spec), GEOMETRY)
        assert "pi" in error.value.hint


def test_a_ramp_in_keys_where_they_are_read(tmp_path: Path) -> None:
    source = write_tiny(tmp_path / "tiny.gguf", "mistral3")
    plan = patch_gguf(source, tmp_path / "out.gguf", parse_method("yarn:factor=4,beta_fast=16"), GEOMETRY)
    assert plan.keys["mistral3.rope.scaling.yarn_beta_fast"] == 16.0 and not plan.tensors
    assert str(read_config(str(tmp_path / "out.gguf")).rope.method) == "yarn:factor=4,beta_fast=16"


@pytest.mark.parametrize("spec", ["dynamic-ntk", "dynamic-yarn"])
def test_a_method_that_follows_the_length_needs_one(tmp_path: Path, spec: str) -> None:
    source = write_tiny(tmp_path / "tiny.gguf")
    with pytest.raises(ConfigError, match="follows the length") as error:
        plan_gguf(source, parse_method(spec), GEOMETRY)
    assert "--freeze-at" in error.value.hint
    assert plan_gguf(source, parse_method(spec), GEOMETRY, seq_len=2000).context_length == 2000


@pytest.mark.parametrize("length", [None, 2**31])
def test_numbers_that_do_not_fit_are_refused(tmp_path: Path, length: int | None) -> None:
    source, base = write_tiny(tmp_path / "tiny.gguf"), "1e300" if length is None else "1e6"
    with pytest.raises(ConfigError, match="can hold"):
        patch_gguf(
            source, tmp_path / "out.gguf", parse_method(f"abf:rope_theta={base}"), GEOMETRY, target_length=length
        )


def test_files_that_are_not_patched(tmp_path: Path) -> None:
    split = write_tiny(tmp_path / "split.gguf", keys={"split.count": 2})
    with pytest.raises(ConfigError, match="one of 2 parts"):
        plan_gguf(split, parse_method("none"), GEOMETRY)
    gemma4 = write_tiny(tmp_path / "gemma4.gguf", "gemma4")
    with pytest.raises(UnsupportedModelError, match="which pairs"):
        plan_gguf(gemma4, parse_method("pi:factor=2"), GEOMETRY)


def test_nothing_is_overwritten_unasked(tmp_path: Path) -> None:
    source, out = write_tiny(tmp_path / "tiny.gguf"), tmp_path / "out.gguf"
    before = source.read_bytes()
    out.write_text("mine")
    method = parse_method("pi:factor=4")
    with pytest.raises(ConfigError, match="exists"):
        patch_gguf(source, out, method, GEOMETRY)
    assert out.read_text() == "mine"
    with pytest.raises(ConfigError, match="never changed"):
        patch_gguf(source, source, method, GEOMETRY, overwrite=True)
    with pytest.raises(ConfigError, match="is a folder"):
        patch_gguf(source, tmp_path, method, GEOMETRY, overwrite=True)
    with pytest.raises(ConfigError, match="Cannot write"):
        patch_gguf(source, out / "folder.gguf", method, GEOMETRY)
    patch_gguf(source, out, method, GEOMETRY, overwrite=True)
    assert str(read_config(str(out)).rope.method) == "pi:factor=4"
    assert source.read_bytes() == before and sorted(tmp_path.iterdir()) == [out, source]


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError("no space left")])
def test_an_interrupted_copy_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Any) -> None:
    source, real = write_tiny(tmp_path / "tiny.gguf"), gguf_patch.write_gguf

    def write_and_fail(*arguments: Any) -> None:
        real(*arguments)
        raise error

    monkeypatch.setattr(gguf_patch, "write_gguf", write_and_fail)
    with pytest.raises((KeyboardInterrupt, ConfigError)):
        patch_gguf(source, tmp_path / "out.gguf", parse_method("pi:factor=4"), GEOMETRY)
    assert list(tmp_path.iterdir()) == [source]


def test_a_copy_that_does_not_read_back_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, real = write_tiny(tmp_path / "tiny.gguf"), gguf_patch.write_gguf

    def write_other(source: Path, header: Any, out: Path, keys: Any, *rest: Any) -> None:
        real(source, header, out, {**keys, "llama.rope.scaling.factor": 4.001}, *rest)

    monkeypatch.setattr(gguf_patch, "write_gguf", write_other)
    with pytest.raises(PatchError, match=r"pi:factor=4\.001, not pi:factor=4"):
        patch_gguf(source, tmp_path / "out.gguf", parse_method("pi:factor=4"), GEOMETRY)
    assert list(tmp_path.iterdir()) == [source]
