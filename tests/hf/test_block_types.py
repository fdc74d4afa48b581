"""A key of a scaling block is used, refused or named; null and empty are not taken for absent where transformers does not."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

from ropectl.errors import ConfigError, UnsupportedModelError
from ropectl.hf.config.block_keys import outer_notes
from ropectl.hf.config.block_types import BLOCK_TYPES, SLOWEST_SPEEDUP, block_notes, check_blocks
from ropectl.hf.config.dialects import text_section
from ropectl.hf.config.family_patch import family_patch
from ropectl.hf.config.geometry import describe_rope
from ropectl.hf.config.source import read_config
from ropectl.hf.config.writer import patched_config
from ropectl.rope.proportional import PROPORTIONAL
from tests.hf.released import RELEASED, REMARKED
from tests.rope.test_contract import NAMES, example
from tests.runtimes.cases import methods_as_written

PLAIN: dict[str, Any] = {
    "model_type": "llama", "hidden_size": 128, "num_attention_heads": 2, "head_dim": 64, "num_hidden_layers": 2,
    "max_position_embeddings": 8192, "rope_theta": 5e5,
}  # fmt: skip
_LENGTH = {"original_max_position_embeddings": 2048}
#: A value for every key that any type reads, fit for a rotary part of 64 dimensions.
VALUES: dict[str, Any] = {
    "factor": 4.0, "attention_factor": 1.1, "beta_fast": 16.0, "beta_slow": 2.0, "mscale": 1.0, "mscale_all_dim": 0.5,
    "truncate": True, "attn_factor": 0.9, "finetuned": True, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "short_factor": [1.0] * 32, "long_factor": [2.0] * 32, "short_mscale": 1.1, "long_mscale": 1.1,
    "partial_rotary_factor": 1.0,
}  # fmt: skip
TYPES = tuple(BLOCK_TYPES)


def block_of(rope_type: str, **changes: Any) -> dict[str, Any]:
    """A complete block of a type, with the trained length that its formula or ropectl reads."""
    needed = {key: VALUES[key] for key in BLOCK_TYPES[rope_type].needed}
    factor = {"factor": 4.0} if rope_type in ("yarn", PROPORTIONAL) else {}
    length = {} if rope_type in ("default", "dynamic") else _LENGTH
    return {"rope_type": rope_type, **needed, **factor, **length, **changes}


def own_keys(rope_type: str) -> set[str]:
    return set(BLOCK_TYPES[rope_type].keys)


def foreign_keys(rope_type: str) -> list[str]:
    """The keys that other types read and this one does not."""
    return [key for key in VALUES if key not in own_keys(rope_type)]


def in_scaling(block: dict[str, Any]) -> dict[str, Any]:
    return {**PLAIN, "rope_scaling": block}


def in_parameters(block: dict[str, Any]) -> dict[str, Any]:
    return {**PLAIN, "rope_parameters": {**block, "rope_theta": 5e5}}


def in_both(block: dict[str, Any]) -> dict[str, Any]:
    return {**in_scaling(block), **in_parameters(block)}


def in_a_text_part(block: dict[str, Any]) -> dict[str, Any]:
    return {"model_type": "llava", "text_config": in_parameters(block)}


def in_a_layer(block: dict[str, Any]) -> dict[str, Any]:
    blocks = {
        "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
        "full_attention": {**block, "rope_theta": 5e5},
    }
    kinds = {"model_type": "gemma3_text", "layer_types": list(blocks), "sliding_window": 512}
    return {**PLAIN, **kinds, "rope_parameters": blocks}


PLACES: list[Callable[[dict[str, Any]], dict[str, Any]]] = [
    in_scaling,
    in_parameters,
    in_both,
    in_a_text_part,
    in_a_layer,
]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("rope_type", TYPES)
def test_keys_of_other_types_are_named(place: Callable[[dict[str, Any]], dict[str, Any]], rope_type: str) -> None:
    for key in foreign_keys(rope_type):
        (note,) = block_notes(text_section(place(block_of(rope_type, **{key: VALUES[key]}))))
        assert f"under type {rope_type!r}: {key}." in note
    assert not block_notes(text_section(place(block_of(rope_type))))


@pytest.mark.parametrize("rope_type", [name for name in TYPES if name != PROPORTIONAL])
def test_what_is_named_changes_nothing(rope_type: str) -> None:
    """The note is true: transformers and ropectl compute the same numbers without the keys."""
    foreign = {key: VALUES[key] for key in foreign_keys(rope_type)}
    with_keys, without = block_of(rope_type, **foreign), block_of(rope_type)
    assert len(foreign) > 5 and theirs(with_keys) == theirs(without)
    assert describe_rope(in_scaling(with_keys)) == describe_rope(in_scaling(without))


def theirs(block: dict[str, Any]) -> tuple[list[float], float]:
    """The table that transformers makes of a block."""
    config = LlamaConfig(**copy.deepcopy({**PLAIN, "rope_scaling": block}))
    module = LlamaRotaryEmbedding(config)
    return module.inv_freq.tolist(), module.attention_scaling


@pytest.mark.parametrize("rope_type", TYPES)
def test_the_table_is_that_of_transformers(rope_type: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What its validation knows, ropectl knows; what ropectl knows beyond that is for other programs, and listed here."""
    seen: list[set[str]] = []

    def record(rope_type: str, received: set[str], required: set[str], optional_keys: Any = None, **_: Any) -> None:
        seen.append(required | (optional_keys or set()))

    monkeypatch.setattr(LlamaConfig, "_check_received_keys", staticmethod(record))
    config = LlamaConfig(**{**PLAIN, "rope_scaling": block_of(rope_type, rope_theta=5e5)})
    seen.clear()
    config.validate_rope()
    known = seen[0] | {"partial_rotary_factor"}
    others = {
        "yarn": {"attn_factor", "finetuned"}, "longrope": {"short_mscale", "long_mscale"}, PROPORTIONAL: {"factor"},
    }  # fmt: skip
    every = {"type", "original_max_position_embeddings", "mrope_section", "mrope_interleaved", "llama_4_scaling_beta"}
    assert own_keys(rope_type) - every == (known | others.get(rope_type, set())) - every


#: Every key under every type that reads it, but two: where a longrope block has no trained length, transformers takes
#: another one for it, and ropectl asks; and a null share of a proportional block is 1 to its validation, which its function
#: then cannot multiply by.
READ = [(rope_type, key) for rope_type in TYPES for key in sorted(own_keys(rope_type))]
READ.remove(("longrope", "original_max_position_embeddings"))
READ.remove((PROPORTIONAL, "partial_rotary_factor"))


@pytest.mark.parametrize(("rope_type", "key"), READ)
def test_null_is_absent_where_transformers_takes_it_so(rope_type: str, key: str) -> None:
    """Refused where transformers stops or computes something else than without the key, read as absent where it does not."""
    null = {**block_of(rope_type, rope_theta=5e5), key: None}
    absent = {name: value for name, value in null.items() if name != key}
    try:
        numbers = theirs(null)
        is_absent = (rope_type == "yarn" and key == "factor") or numbers == theirs(absent)
    except Exception:  # a strict config raises many kinds
        is_absent = False
    config = in_parameters(null) | {"rope_parameters": null}
    if not is_absent:
        with pytest.raises(ConfigError):
            describe_rope(config)
        return
    found = describe_rope(config)
    assert list(found.method.frequencies(found.geometry).inv_freq) == pytest.approx(numbers[0], rel=1e-6)
    assert ("factor is null" in "".join(found.warnings)) == (key == "factor")


@pytest.mark.parametrize("key", ["facter", "Factor", "factr"])
@pytest.mark.parametrize("rope_type", ["linear", "yarn", "llama3"])
def test_a_misspelt_key_is_named_with_the_one_that_was_meant(rope_type: str, key: str) -> None:
    (note,) = block_notes(in_scaling(block_of(rope_type, **{key: 8.0})))
    assert f"{key} (did you mean factor?)" in note


def test_many_unread_keys_are_one_line() -> None:
    (note,) = block_notes(in_scaling(block_of("linear", **{f"{'k' * 1000}{i}": i for i in range(1000)})))
    assert "and 992 more" in note and len(note) < 500


def test_a_block_without_a_type_says_which_holds() -> None:
    (note,) = block_notes(in_scaling({"factor": 4.0}))
    assert "factor" in note and "'default', which holds where none is given" in note


def test_keys_beside_the_blocks_of_layers_are_named() -> None:
    config = in_a_layer(block_of("linear"))
    config["rope_parameters"] |= {"factor": 8.0, "truncate": False}
    (note,) = block_notes(config)
    assert "rope_parameters: keys without effect beside the blocks of layer types: factor." in note


def test_a_block_for_one_layer_where_there_is_one_table_is_refused() -> None:
    config = {**in_a_layer(block_of("linear")), "model_type": "llama"}
    with pytest.raises(ConfigError, match="'llama' have one rotary table"):
        describe_rope(config)


@pytest.mark.parametrize(
    "block",
    [
        {"rope_type": "", "factor": 4.0},
        {"type": "", "factor": 4.0},
        {"rope_type": "", "type": "linear", "factor": 4.0},
        {"rope_type": "linear", "type": "", "factor": 4.0},
        {"rope_type": None, "type": "linear", "factor": 4.0},
        {"type": None, "factor": 4.0},
    ],
)
def test_an_empty_type_is_refused(block: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"type is (empty|null)"):
        describe_rope(in_scaling(block))


def test_the_old_key_may_be_null_beside_the_new_one() -> None:
    assert str(describe_rope(in_scaling({"rope_type": "linear", "type": None, "factor": 4.0})).method) == "pi:factor=4"


@pytest.mark.parametrize("name", RELEASED)
def test_released_files_raise_no_false_alarm(name: str, tmp_path: Path) -> None:
    """Neither as they are, nor as every method that they can carry is written into them."""
    (tmp_path / "config.json").write_text(json.dumps(RELEASED[name]))
    source = read_config(str(tmp_path))
    assert len(source.rope.warnings) == (name in REMARKED or name in ("Gemma 3", "Phi-3.5 MoE"))
    for method in NAMES:
        try:
            patch = family_patch(
                example(method, 2.0, source.rope.geometry), source.rope.geometry, source.config, 300_000
            )
        except ConfigError:
            continue
        written = patched_config(source.writable_config, patch, source.rope.layer_type)
        check_blocks(text_section(written))
        assert not block_notes(text_section(written)) + outer_notes(text_section(written)), method


@pytest.mark.parametrize("name", methods_as_written())
def test_what_patch_writes_raises_no_alarm(name: str) -> None:
    written = methods_as_written()[name]
    assert not block_notes(written) + outer_notes(written)


@pytest.mark.parametrize(
    ("divisor", "is_named"),
    [(0.5, True), (0.98, True), (SLOWEST_SPEEDUP, False), (0.9977997200264581, False), (1.0, False)],
)
@pytest.mark.parametrize("name", ["short_factor", "long_factor"])
def test_divisors_that_speed_pairs_up_are_named(name: str, divisor: float, is_named: bool) -> None:
    notes = block_notes(in_both(block_of("longrope", **{name: [1.0, divisor, *[2.0] * 30]})))
    assert [name in note and f"{divisor:g}" in note for note in notes] == [True] * is_named


@pytest.mark.parametrize("divisors", [[0.0] * 32, [-1.0] * 32, [1.0] * 31, [1.0] * 33, []])
@pytest.mark.parametrize("name", ["short_factor", "long_factor"])
def test_impossible_divisors_are_refused(name: str, divisors: list[float]) -> None:
    with pytest.raises(ConfigError, match=name):
        describe_rope(in_scaling(block_of("longrope", **{name: divisors})))


@pytest.mark.parametrize("sections", [[16, 24, 25], [16, 24], [], [32.5, -0.5], [-1, 33], [40, -8]])
@pytest.mark.parametrize("place", PLACES)
def test_sections_that_do_not_share_out_the_pairs_are_refused(
    place: Callable[[dict[str, Any]], dict[str, Any]], sections: list[float]
) -> None:
    with pytest.raises(ConfigError, match=r"mrope_section is \[.*rotates 32 pairs"):
        describe_rope(place(block_of("yarn", mrope_section=sections)))
    assert describe_rope(place(block_of("yarn", mrope_section=[8, 12, 12]))).method.name == "yarn"


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("rope_scalling", "rope_scaling"),
        ("rope_scalings", "rope_scaling"),
        ("rope_parameter", "rope_parameters"),
        ("rope_tetha", "rope_theta"),
    ],
)
def test_a_misspelt_key_next_to_the_block_is_named(key: str, meant: str) -> None:
    section = {name: value for name, value in PLAIN.items() if name != meant} | {
        key: {"rope_type": "linear", "factor": 4.0}
    }
    (note,) = outer_notes(section)
    assert note == f"{key} is not read: did you mean {meant}?"
    assert not outer_notes({**section, key: None}) and not outer_notes({**section, meant: {"rope_type": "default"}})


LENGTH = "original_max_position_embeddings"


@pytest.mark.parametrize(
    ("block", "outer", "words"),
    [
        (block_of("yarn"), 1024, "given twice: 1024 next to the scaling block (read) and 2048 in it"),
        (block_of("yarn"), 2048, ""),
        ({"rope_type": "linear", "factor": 4.0}, 1024, "1024 next to a scaling block of type 'linear' is not read"),
        (block_of("linear"), 1024, "is not read. If it is the trained length: --original-length 1024"),
        (block_of("linear"), 2048, ""),
        (block_of("default"), 1024, "type 'default' is not read"),
        (block_of("default"), 8192, ""),
        (block_of("default"), None, ""),
    ],
)
def test_a_trained_length_without_effect_is_named(block: dict[str, Any], outer: int | None, words: str) -> None:
    notes = outer_notes(in_scaling(block) | {LENGTH: outer})
    assert bool(notes) == bool(words) and words in " ".join(notes)
    assert not outer_notes(in_scaling(block) | {LENGTH: outer}, knows_length=True)


def test_a_trained_length_next_to_blocks_of_layers_is_named() -> None:
    (note,) = outer_notes({**in_a_layer(block_of("yarn")), LENGTH: 1024})
    assert "next to the blocks of layer types is not read" in note


def test_types_that_are_not_known_are_refused_and_not_listed() -> None:
    config = in_scaling({"rope_type": "yam", "factor": 4.0, "x": 1})
    assert not block_notes(config)
    with pytest.raises(UnsupportedModelError, match="'yam'"):
        describe_rope(config)
