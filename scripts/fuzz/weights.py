"""Kind 1: weights that do not belong to the config beside them."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from fuzz.case import Case, Expected, Step, changed_json, file, json_file, removed
from fuzz.templates import reading

WEIGHTS, INDEX = "model/model.safetensors", "model/model.safetensors.index.json"
_MAP = {"metadata": {"total_size": 1}}


def cases() -> Iterator[Case]:
    """Yields the cases of this kind, for every command that reads weights."""
    for each in reading("weights"):
        for wrong, steps, mentions in _faults():
            expected = Expected.told if "--dry-run" in each.args else Expected.refused
            yield each.case(1, wrong, *steps, expected=expected, mentions=mentions)
        yield each.case(
            1,
            "stale rotary_emb.inv_freq of another base",
            edited_tensors(_stale_frequencies, "inv_freq of base 500000"),
            expected=Expected.told,
            mentions=("inv_freq",),
        )
        yield each.case(1, "an index without metadata", _indexed(metadata=False))


def _faults() -> Iterator[tuple[str, tuple[Step, ...], tuple[str, ...]]]:
    """Yields what is wrong, how it is made, and what has to be mentioned."""
    for key, value in (
        *(("head_dim", 32), ("intermediate_size", 128), ("vocab_size", 2048), ("vocab_size", 512)),
        *(("num_hidden_layers", 3), ("num_hidden_layers", 1), ("num_key_value_heads", 4)),
        *(("num_key_value_heads", 1), ("hidden_size", 128), ("num_attention_heads", 8)),
    ):
        change = changed_json(
            "model/config.json", lambda config, k=key, v=value: config.update({k: v}), f"{key}={value}"
        )
        yield f"the config's {key} is {value}, the tensors' is not", (change,), ()
    for name in ("../x.safetensors", "/etc/hostname", "missing.safetensors", "sub/../../x.safetensors", "~/x", "", "."):
        yield f"the index names the shard {name!r}", (_indexed(name),), ()
    outside = file("x.safetensors", b"\x02\0\0\0\0\0\0\0{}")
    yield "the index names a shard outside that is there", (outside, _indexed("../x.safetensors")), ()
    for value in ({}, [], None, "model.safetensors", 5, {"model.norm.weight": 5}, {"model.norm.weight": None}):
        index = json_file(INDEX, {**_MAP, "weight_map": value})
        yield f"weight_map = {value!r}", (index, in_a_shard()), ("weight_map|model.safetensors.index.json",)
    yield "an index without weight_map", (json_file(INDEX, _MAP), in_a_shard()), ("index",)
    yield "an index that is a list", (json_file(INDEX, []), in_a_shard()), ("index",)
    for name in ("model.norm.weight", "model.layers.1.self_attn.q_proj.weight", "model.embed_tokens.weight"):
        yield f"the tensor {name} is missing", (edited_tensors(_without(name), f"without {name}"),), ()
    yield "a tensor of another type than numbers", (edited_header(_retyped, "dtype X9"),), ()
    yield "a tensor with a negative size", (edited_header(_negative, "shape [-1]"),), ()
    yield "a tensor past the end of the file", (edited_header(_past_the_end, "offsets past the end"),), ()
    yield "two tensors in the same place", (edited_header(_overlapping, "overlapping offsets"),), ()
    for name, cut in (("half", 0.5), ("one byte", None), ("nearly all", 0.99), ("nothing", 0.0)):
        yield f"of the weights {name} is there", (_truncated(name, cut),), ("model.safetensors",)
    header = b'{"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}'
    for name, content in (
        ("a header that is longer than the file", struct.pack("<Q", 2**40) + b"{}"),
        ("a header of 2**63 bytes", struct.pack("<Q", 2**63) + b"{}"),
        ("a header that is a list", struct.pack("<Q", 2) + b"[]"),
        ("a header that is not JSON", struct.pack("<Q", len(header)) + header),
        ("a header nested 100,000 deep", struct.pack("<Q", 200_000) + b"[" * 100_000 + b"]" * 100_000),
        ("no tensor", struct.pack("<Q", 2) + b"{}"),
        ("bytes that are no safetensors", b"\x80\x02}q\x00." * 40),
        ("zeros", bytes(4096)),
    ):
        yield f"weights of {name}", (file(WEIGHTS, content, f"{WEIGHTS}: {name}"),), ()
    yield "no weights", (removed(WEIGHTS),), ()


def _split(content: bytes) -> tuple[dict[str, Any], bytes]:
    (length,) = struct.unpack("<Q", content[:8])
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def edited_header(change: Callable[[dict[str, Any]], None], name: str) -> Step:
    """The base's weights with a change made to their header."""

    def make(folder: Path) -> None:
        header, data = _split((folder / WEIGHTS).read_bytes())
        change(header)
        text = json.dumps(header).encode()
        (folder / WEIGHTS).write_bytes(struct.pack("<Q", len(text)) + text + data)

    return Step(f"{WEIGHTS}: {name}", make)


def edited_tensors(change: Callable[[dict[str, Any]], None], name: str, path: str = WEIGHTS) -> Step:
    """The base's weights with a change made to the tensors themselves."""

    def make(folder: Path) -> None:
        from safetensors.torch import load_file, save_file

        tensors = load_file(folder / WEIGHTS)
        change(tensors)
        save_file(tensors, folder / path, {"format": "pt"})

    return Step(f"{path}: {name}", make)


def _without(name: str) -> Callable[[dict[str, Any]], None]:
    def change(tensors: dict[str, Any]) -> None:
        del tensors[name]

    return change


def _stale_frequencies(tensors: dict[str, Any]) -> None:
    import torch

    for layer in range(2):
        tensors[f"model.layers.{layer}.self_attn.rotary_emb.inv_freq"] = 500_000.0 ** (-torch.arange(0, 16, 2) / 16)


def _first(header: dict[str, Any]) -> dict[str, Any]:
    return next(value for key, value in header.items() if key != "__metadata__")


def _retyped(header: dict[str, Any]) -> None:
    _first(header)["dtype"] = "X9"


def _negative(header: dict[str, Any]) -> None:
    _first(header)["shape"] = [-1]


def _past_the_end(header: dict[str, Any]) -> None:
    _first(header)["data_offsets"] = [0, 2**50]


def _overlapping(header: dict[str, Any]) -> None:
    names = [key for key in header if key != "__metadata__"]
    header[names[1]] = dict(header[names[0]])


def _truncated(name: str, share: float | None) -> Step:
    def make(folder: Path) -> None:
        content = (folder / WEIGHTS).read_bytes()
        end = 1 if share is None else int(len(content) * share)
        (folder / WEIGHTS).write_bytes(content[:end])

    return Step(f"{WEIGHTS}: {name}", make)


def in_a_shard() -> Step:
    """Renames the weights to a shard, so that the index alone says where they are."""

    def make(folder: Path) -> None:
        (folder / WEIGHTS).rename(folder / "model" / "model-00001-of-00001.safetensors")

    return Step("weights in a shard", make)


def _indexed(name: str = "model-00001-of-00001.safetensors", metadata: bool = True) -> Step:
    """Weights in a shard, and an index by which one tensor is in the file of the given name."""

    def make(folder: Path) -> None:
        header, _ = _split((folder / WEIGHTS).read_bytes())
        names = [key for key in header if key != "__metadata__"]
        in_a_shard().make(folder)
        shards = dict.fromkeys(names, "model-00001-of-00001.safetensors") | {names[0]: name}
        index = {**(_MAP if metadata else {}), "weight_map": shards}
        (folder / INDEX).write_text(json.dumps(index))

    return Step(f"{INDEX}: {name} {metadata}", make)
