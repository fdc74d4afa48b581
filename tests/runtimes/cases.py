"""Config files for the runtime rules: every method as ropectl writes it, and files as they are found in the wild."""

from __future__ import annotations

import itertools
from typing import Any

from ropectl.hf.config.writer import patched_config
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.registry import all_methods, parse_method
from ropectl.runtimes.runtime import CheckpointFacts
from tests.rope.test_contract import example

GEOMETRY = RopeGeometry(64, 500_000.0, 2048)
TARGET = 8192
PAIRS = GEOMETRY.num_pairs
LONG = [1.0 + i / 8 for i in range(PAIRS)]
SHORT = [1.0 + i / 64 for i in range(PAIRS)]


def base_config(**changes: Any) -> dict[str, Any]:
    """A LLaMA-like config of the test geometry; a value of "REMOVE" takes a key out."""
    config = {
        "model_type": "llama",
        "hidden_size": 128,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "head_dim": 64,
        "max_position_embeddings": 2048,
        "rope_theta": 500_000.0,
    }
    return {key: value for key, value in {**config, **changes}.items() if value != "REMOVE"}


def scaled(rope_type: str, **block: Any) -> dict[str, Any]:
    """A v4 file: rope_scaling beside rope_theta, max_position_embeddings = L'."""
    return base_config(max_position_embeddings=TARGET, rope_scaling={"rope_type": rope_type, **block})


def facts(config: dict[str, Any], spec: str = "none", target: int = TARGET, **changes: Any) -> CheckpointFacts:
    """Facts about a config whose author meant ``spec`` on the test geometry."""
    return CheckpointFacts(config, GEOMETRY, parse_method(spec, 4.0, GEOMETRY), target, "./model", **changes)


#: The runtimes that the tests know.
KNOWN = ("transformers", "vllm", "sglang", "llama.cpp")

YARN: dict[str, Any] = {"factor": 4.0, "original_max_position_embeddings": 2048}
LLAMA3: dict[str, Any] = {**YARN, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
LISTS: dict[str, Any] = {"short_factor": SHORT, "long_factor": LONG}


def methods_as_written() -> dict[str, dict[str, Any]]:
    """Every registered method patched into two geometries, and frozen where it follows the length."""
    found = {}
    geometries = (GEOMETRY, RopeGeometry(64, 10_000.0, 131_072))
    for name, (number, geometry) in itertools.product(all_methods(), enumerate(geometries)):
        method = example(name, 4.0, geometry)
        config = base_config(rope_theta=geometry.rope_theta)
        found[f"{name}/{number}"] = patched_config(config, method.config_patch(geometry))
        if method.depends_on_seq_len:
            frozen = method.config_patch(geometry, 3 * geometry.original_max_position_embeddings)
            found[f"{name}/{number}/frozen"] = patched_config(config, frozen)
    for spec in (
        "yarn:attention_factor=1",
        "yarn:attention_factor=1.3",
        "yarn:beta_fast=16,beta_slow=2",
        "yarn:truncate=false",
    ):
        method = parse_method(spec, 4.0, GEOMETRY)
        found[spec] = patched_config(base_config(), method.config_patch(GEOMETRY))
    return found


def v5_only(config: dict[str, Any]) -> dict[str, Any]:
    """The file as transformers 5 would save it."""
    block = {**(config.get("rope_scaling") or {"rope_type": "default"}), "rope_theta": config["rope_theta"]}
    rest = {key: value for key, value in config.items() if key not in ("rope_scaling", "rope_theta")}
    return {**rest, "rope_parameters": block}


def files_in_the_wild() -> dict[str, dict[str, Any]]:
    """v4-only, v5-only, contradictory, incomplete and misspelt files."""
    v4 = {
        "linear": scaled("linear", factor=4.0),
        "linear, integer": scaled("linear", factor=4),
        "dynamic": base_config(rope_scaling={"rope_type": "dynamic", "factor": 2.0}),
        "dynamic, raised": scaled("dynamic", factor=2.0, original_max_position_embeddings=2048),
        "yarn": scaled("yarn", **YARN),
        "yarn, mpe = L": base_config(rope_scaling={"rope_type": "yarn", **YARN}),
        "yarn, ratio is not the factor": {**scaled("yarn", **YARN), "max_position_embeddings": 2560},
        "yarn, no original": scaled("yarn", factor=4.0),
        "yarn, original null": scaled("yarn", factor=4.0, original_max_position_embeddings=None),
        "yarn, factor null": scaled("yarn", factor=None, original_max_position_embeddings=2048),
        "yarn, no factor": scaled("yarn", original_max_position_embeddings=2048),
        "yarn, attention_factor": scaled("yarn", **YARN, attention_factor=1.0),
        "yarn, attn_factor": scaled("yarn", **YARN, attn_factor=0.8782488562869419),
        "yarn, mscales": scaled("yarn", **YARN, mscale=0.7, mscale_all_dim=1.0),
        "yarn, one mscale": scaled("yarn", **YARN, mscale=0.7),
        "yarn, mscale zero": scaled("yarn", **YARN, mscale=0.0, mscale_all_dim=1.0),
        "yarn, betas": scaled("yarn", **YARN, beta_fast=16, beta_slow=2),
        "yarn, equal betas": scaled("yarn", **YARN, beta_fast=1.0, beta_slow=1.0),
        "yarn, equal betas, not truncated": scaled("yarn", **YARN, beta_fast=1.0, beta_slow=1.0, truncate=False),
        "yarn, betas the wrong way round": scaled("yarn", **YARN, beta_fast=1.0, beta_slow=8.0),
        "yarn, not truncated": scaled("yarn", **YARN, truncate=False),
        "yarn, top-level original": {**scaled("yarn", **YARN), "original_max_position_embeddings": 1024},
        "llama3": scaled("llama3", **LLAMA3),
        "llama3, no original": scaled("llama3", factor=4.0, low_freq_factor=1.0, high_freq_factor=4.0),
        "llama3, equal bounds": scaled("llama3", **{**LLAMA3, "low_freq_factor": 4.0}),
        "llama3, bounds the wrong way round": scaled("llama3", **{**LLAMA3, "low_freq_factor": 8.0}),
        "llama3, no low": scaled("llama3", **YARN, high_freq_factor=4.0),
        "longrope, original inside": scaled("longrope", **LISTS, **YARN, attention_factor=1.1),
        "longrope, no attention factor": scaled("longrope", **LISTS, **YARN),
        "longrope, no factor": scaled("longrope", **LISTS, original_max_position_embeddings=2048, attention_factor=1.1),
        "longrope, top-level original": {**scaled("longrope", **LISTS), "original_max_position_embeddings": 2048},
        "longrope, both originals": {**scaled("longrope", **LISTS, **YARN), "original_max_position_embeddings": 1024},
        "longrope, neither original": scaled("longrope", **LISTS, factor=4.0, attention_factor=1.1),
        "longrope, short lists": scaled("longrope", **YARN, short_factor=[1.0, 1.0], long_factor=[2.0, 2.0]),
        "longrope, no long list": scaled("longrope", **YARN, short_factor=SHORT),
        "unknown": scaled("ntk", factor=4.0),
        "proportional": scaled("proportional", factor=1.0, partial_rotary_factor=0.75),
        "old spelling": base_config(rope_scaling={"type": "linear", "factor": 4.0}),
        "both spellings": base_config(rope_scaling={"type": "yarn", "rope_type": "linear", **YARN}),
        "no theta": base_config(rope_theta="REMOVE", rope_scaling={"rope_type": "linear", "factor": 4.0}),
        "head_dim null": {**scaled("yarn", **YARN), "head_dim": None},
        "length a float": {**scaled("yarn", **YARN), "max_position_embeddings": 8192.0},
    }  # fmt: skip
    plain = {"rope_type": "default", "rope_theta": 10_000.0}
    dialects = {
        "v5: default": v5_only(base_config()),
        "v5: llama3": v5_only(v4["llama3"]),
        "v5: yarn": v5_only(v4["yarn"]),
        "v5: theta beside": {**v5_only(v4["yarn"]), "rope_theta": 10_000.0},
        "v5: no theta in the block": base_config(rope_parameters={"rope_type": "linear", "factor": 4.0}),
        "both: null beside the block": {**v5_only(v4["llama3"]), "rope_scaling": None, "rope_theta": 500_000.0},
        "both: they contradict": {**v4["linear"], "rope_parameters": {"rope_type": "yarn", "rope_theta": 1e4, **YARN}},
        "both: only the new one scales": base_config(rope_scaling=None, rope_parameters={**plain, "rope_type": "linear", "factor": 2.0}),
    }  # fmt: skip
    return {**v4, **dialects}


CASES = {**methods_as_written(), **files_in_the_wild()}


def lengths_of(config: dict[str, Any]) -> tuple[int, int]:
    """The lengths at which a case is compared: both sides of every switch."""
    return GEOMETRY.original_max_position_embeddings, 4 * int(config["max_position_embeddings"])
