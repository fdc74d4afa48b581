"""Config files of every family with every type of scaling, as ``patch`` writes them and as they are found in the wild."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from transformers import CONFIG_MAPPING

from ropectl.errors import RopectlError
from ropectl.hf.config.families import LAYOUT_KEYS, family_of
from ropectl.hf.config.family_patch import family_patch
from ropectl.hf.config.geometry import describe_rope
from ropectl.hf.config.layers import layer_blocks
from ropectl.hf.config.writer import patched_config
from ropectl.hf.refused_types import REFUSED_MODEL_TYPES
from ropectl.rope.config_patch import RopeConfigPatch
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.registry import parse_method
from scripts.model_types import census, has_rotary_class
from scripts.tiny_models import EXCEPTIONS, Sizes, small_config

TRAINED, FACTOR = 2048, 4.0
TARGET = int(TRAINED * FACTOR)
SIZES = Sizes(hidden=128, head=32, trained=TRAINED)
#: No class's default, so that a base that is not read shows.
THETA = 50_000.0

#: Methods as ``patch`` writes them; those that follow the length also frozen at the target.
METHODS = (
    *("none", "pi", "ntk", "dynamic-ntk", "llama3", "ntk-by-parts", "yarn", "yarn:attention_factor=1"),
    *("yarn:attention_factor=1.3", "yarn:mscale=0.7,mscale_all_dim=1", "yarn:beta_fast=16,beta_slow=2", "yarn:truncate=false"),
)  # fmt: skip
FROZEN = ("dynamic-ntk", "dynamic-yarn")

_YARN = {"rope_type": "yarn", "factor": FACTOR, "original_max_position_embeddings": TRAINED}
_LLAMA3 = {**_YARN, "rope_type": "llama3", "low_freq_factor": 1.0, "high_freq_factor": 4.0}
#: Blocks of released files, and the length that these declare.
RELEASED: dict[str, tuple[dict[str, Any], int]] = {
    "linear, extended length": ({"rope_type": "linear", "factor": FACTOR}, TARGET),
    "dynamic, extended length": ({"rope_type": "dynamic", "factor": FACTOR}, TARGET),
    "yarn, trained length declared": (_YARN, TRAINED),
    "yarn, original missing": ({"rope_type": "yarn", "factor": FACTOR}, TARGET),
    "yarn, equal betas": ({**_YARN, "beta_fast": 1.0, "beta_slow": 1.0}, TARGET),
    "yarn, mscale_all_dim": ({**_YARN, "mscale_all_dim": 1.0}, TARGET),
    "yarn, all keys": ({**_YARN, "beta_fast": 32.0, "beta_slow": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0}, TARGET),
    "llama3, equal bounds": ({**_LLAMA3, "high_freq_factor": 1.0}, TARGET),
    "hunyuan": (
        {"rope_type": "dynamic", "alpha": 50.0, "factor": 1.0, "beta_fast": 32, "beta_slow": 1, "mscale": 1.0, "mscale_all_dim": 1.0},
        TARGET,
    ),
    "proportional": ({"rope_type": "proportional", "factor": 1.0, "partial_rotary_factor": 0.5}, TARGET),
    "unknown": ({"rope_type": "ntk", "factor": FACTOR}, TARGET),
}  # fmt: skip

_WITH_SECTIONS = ("cosmos3_edge_text", "hy_v4_vl_text", "qwen2_vl_text", "qwen2_5_vl_text", "qwen2_5_omni_text")
#: Sizes that have to fit :data:`SIZES`.
_SIZES_OF = {
    **{key: {"head_dim": SIZES.head} for key in ("hunyuan_v1_dense", "hunyuan_v1_moe", "ministral")},
    **{key: {"rope_parameters.mrope_section": [6, 5, 5]} for key in _WITH_SECTIONS},
    "granitemoehybrid": {"layer_types": ["mamba", "attention"]},
    "qwen4_exp_text": {"indexer_head_dim": SIZES.head},
}

_SCALING_KEYS = frozenset(
    (
        *("factor", "beta_fast", "beta_slow", "truncate", "original_max_position_embeddings", "mscale", "mscale_all_dim"),
        *("attention_factor", "low_freq_factor", "high_freq_factor"),
    )
)  # fmt: skip
_DROPPED = (
    *("transformers_version", "architectures", "dtype", "id2label", "label2id", "_name_or_path", "per_layer_config"),
    *("chunk_size_feed_forward", "is_encoder_decoder", "problem_type", "return_dict", "output_hidden_states"),
    *("output_attentions", "torch_dtype"),
)


@dataclass(frozen=True)
class FamilyFiles:
    """A family's files.

    Attributes:
        model_type: Of the text part.
        layer_type: The layers that are scaled, where each type has a table of its own.
        geometry: What the family's small model rotates.
        files: Name -> content of ``config.json``.
    """

    model_type: str
    layer_type: str | None
    geometry: RopeGeometry
    files: dict[str, dict[str, Any]]


def families() -> list[str]:
    """Returns the model type of every causal family that can be scaled, that of the text part where it has one, and of other text parts."""
    names = {name for name in CONFIG_MAPPING if name.endswith("_text") and has_rotary_class(name)}
    for model_type in census().supported:
        try:
            names.add(str(CONFIG_MAPPING[model_type]().get_text_config(decoder=True).model_type))
        except Exception:  # a class without defaults of its own
            names.add(model_type)
    refused = {name for refused in REFUSED_MODEL_TYPES for name in (refused, f"{refused}_text")}
    return sorted(name for name in names if name in CONFIG_MAPPING and name not in refused)


def family_files(model_type: str) -> FamilyFiles:
    """Returns the files of one family."""
    base = _released(
        small_config(model_type, SIZES, {**EXCEPTIONS.get(model_type, {}), **_SIZES_OF.get(model_type, {})}).to_dict()
    )
    rope = describe_rope(CONFIG_MAPPING[model_type].from_dict(dict(base)).to_dict())
    files: dict[str, dict[str, Any]] = {}
    for name, config in _written(base, rope.geometry, rope.layer_type):
        for dialect, content in _dialects(config):
            if content not in files.values():
                files[f"{name} | {dialect}"] = content
    return FamilyFiles(model_type, rope.layer_type, rope.geometry, files)


def _released(config: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a config without scaling as releases have it: spelt for transformers 4 where that could say it."""
    result = {key: value for key, value in config.items() if key not in _DROPPED}
    blocks, family = layer_blocks(result), family_of(result)
    if blocks:
        if family.layer_theta_keys:
            result |= {key: blocks[kind]["rope_theta"] for kind, key in family.layer_theta_keys.items()}
        return result
    block = result.pop("rope_parameters", None) or {}
    result |= {key: value for key, value in block.items() if key not in ("rope_type", "type", "rope_theta")}
    for key in _SCALING_KEYS & block.keys():  # of the class's own scaling
        result.pop(key)
    layout = {key: result.pop(key) for key in LAYOUT_KEYS if key in result}
    if layout.get("mrope_section"):
        pairs = int(SIZES.head * result.get("partial_rotary_factor", 1.0)) // 2
        layout["mrope_section"] = [pairs - 2 * (pairs // 3), pairs // 3, pairs // 3]
    if family.theta_key == "rotary_emb_base" and "partial_rotary_factor" in result:
        result["rotary_pct"] = result["partial_rotary_factor"]  # GPT-NeoX has names of its own in transformers 4
    scaling = {"rope_type": "default", **layout} if layout else None
    return {**result, family.theta_key: THETA, "rope_theta": THETA, "rope_scaling": scaling}


def _written(
    base: dict[str, Any], geometry: RopeGeometry, layer_type: str | None
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields a name and a file in both dialects for every scaling that this family can be given."""
    jobs = [*((spec, None) for spec in METHODS), *((spec, TARGET) for spec in FROZEN)]
    for spec, seq_len in jobs:
        method = parse_method(spec, FACTOR, geometry) if spec != "none" else parse_method(spec)
        try:
            patch = family_patch(method, geometry, base, seq_len)
        except RopectlError:
            continue  # this family has no such form
        yield f"{spec}{' frozen' if seq_len else ''}", patched_config(base, patch, layer_type)
    silent = (
        "rope_parameters",
        "rope_scaling",
        "rope_theta",
        "rotary_emb_base",
        *family_of(base).layer_theta_keys.values(),
    )
    yield "nothing said", {key: value for key, value in base.items() if key not in silent}
    pairs = geometry.num_pairs
    short = [1.0 + i / (8 * pairs) for i in range(pairs)]
    long = [1.0 + i / pairs for i in range(pairs)]
    lists = {"rope_type": "longrope", "short_factor": short, "long_factor": long}
    inner = {**lists, "factor": FACTOR, "original_max_position_embeddings": TRAINED}
    blocks = {
        **RELEASED,
        "longrope, switch": (inner, TARGET),
        "longrope, switch, attention_factor": ({**inner, "attention_factor": 1.2}, TARGET),
        "longrope, switch, mscales": (
            {**inner, "short_mscale": 1.2, "long_mscale": 1.2, "attention_factor": 1.2},
            TARGET,
        ),
    }
    for name, (block, length) in blocks.items():
        written = patched_config(
            base, RopeConfigPatch({"rope_theta": _theta(base, layer_type), **block}, length), layer_type
        )
        if "original_max_position_embeddings" not in block:
            written.pop("original_max_position_embeddings", None)
        yield name, written
    if layer_type is None:
        outer = {**base, "max_position_embeddings": TARGET, "original_max_position_embeddings": TRAINED}
        yield "longrope, as Phi-3", {**outer, "rope_scaling": lists}
        old = {key: value for key, value in lists.items() if key != "rope_type"}
        yield "longrope, as Phi-3, old spelling", {**outer, "rope_scaling": {"type": "longrope", **old}}
        yield "longrope, as Phi-3, su", {**outer, "rope_scaling": {"type": "su", **old}}
        yield "linear, old spelling", {**base, "rope_scaling": {"type": "linear", "factor": FACTOR}}
        yield "yarn, old spelling", {**base, "max_position_embeddings": TARGET, "rope_scaling": {**{k: v for k, v in _YARN.items() if k != "rope_type"}, "type": "yarn"}}  # fmt: skip
        if "head_dim" in base:
            for rope_type in ("linear", "dynamic", "yarn"):
                block = {"rope_type": rope_type, "factor": FACTOR, "original_max_position_embeddings": TRAINED}
                yield f"{rope_type}, head_dim null", {**base, "head_dim": None, "rope_scaling": block}
            yarn = {key: value for key, value in base.items() if key != "head_dim"} | {"rope_scaling": dict(_YARN)}
            if _rotary_dim(yarn) == geometry.rotary_dim:
                yield "yarn, head_dim absent", yarn
        yield (
            "mrope",
            {**base, "rope_scaling": {"type": "mrope", "mrope_section": [pairs // 2, pairs // 4, pairs // 4]}},
        )


def _rotary_dim(config: Mapping[str, Any]) -> int | None:
    """Returns how much of a head the class makes rotate; None where it refuses the file."""
    try:
        full = CONFIG_MAPPING[config["model_type"]].from_dict(copy.deepcopy(dict(config))).to_dict()
        return describe_rope(full).geometry.rotary_dim
    except Exception:  # a strict config raises many kinds
        return None


def _theta(base: Mapping[str, Any], layer_type: str | None) -> float:
    return float(layer_blocks(base)[layer_type]["rope_theta"] if layer_type else base["rope_theta"])


def _dialects(config: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the file as it is, and as only transformers 4 and only transformers 5 would have written it."""
    block = config.get("rope_parameters")
    if block is None:
        yield "v4", config
        return
    yield "both", config
    family = family_of(config)
    old = {"rope_scaling", "rope_theta", family.theta_key, *family.layer_theta_keys.values()}
    if old & config.keys():
        yield "v4", {key: value for key, value in config.items() if key != "rope_parameters"}
        rest = {key: value for key, value in config.items() if key not in old}
        share = rest.pop("partial_rotary_factor", None)  # transformers 5 moves it when it saves
        yield "v5", {**rest, "rope_parameters": block if share is None else {"partial_rotary_factor": share, **block}}
