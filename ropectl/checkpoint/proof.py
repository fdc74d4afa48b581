"""Reads a written checkpoint back with stock classes and compares it with the method, before it gets its name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ropectl.checkpoint.plan import PatchPlan
from ropectl.errors import PatchError
from ropectl.hf.config.dialects import text_section
from ropectl.hf.config.families import family_of, named
from ropectl.hf.config.geometry import describe_rope
from ropectl.hf.config.writer import REPLACED_KEYS
from ropectl.printable import first_line


def prove_checkpoint(folder: Path, plan: PatchPlan, trust_remote_code: bool = False) -> dict[str, Any]:
    """Returns the comparisons that were made, with the differences that were found; no weight is loaded.

    Args:
        folder: The checkpoint as written.
        plan: What it has to compute.
        trust_remote_code: Run modelling code that comes with the checkpoint.

    Raises:
        PatchError: If the checkpoint computes something else, or the two dialects of its config differ.
    """
    config = json.loads((folder / "config.json").read_text())
    _compare_dialects(config, plan)
    return {"dialects": "equal", **_compare_tables(folder, plan, trust_remote_code)}


def _compare_dialects(config: Mapping[str, Any], plan: PatchPlan) -> None:
    """Compares how transformers 4 and transformers 5 read the config; sizes that it leaves to its class are filled in."""
    section, layer_type = text_section(config), plan.source.rope.layer_type
    sizes = {key: value for key, value in text_section(plan.source.config).items() if key not in REPLACED_KEYS}
    section = {**sizes, **section}
    if layer_type is not None and ("rope_scaling" not in section or layer_type != family_of(section).layer_scaling):
        return  # the old dialect cannot express it
    old = {key: value for key, value in section.items() if key != "rope_parameters"}
    new = {key: value for key, value in section.items() if key not in ("rope_scaling", "rope_theta")}
    length = section.get("original_max_position_embeddings") or named(section, "max_position_embeddings")
    readings = [describe_rope(old, length), describe_rope(new, length, layer_type)]
    facts = [(reading.geometry, reading.method, reading.max_position_embeddings) for reading in readings]
    if facts[0] != facts[1]:
        raise PatchError(f"The two dialects of the written config differ: {facts[0]} and {facts[1]}.")


def _compare_tables(folder: Path, plan: PatchPlan, trust_remote_code: bool) -> dict[str, Any]:
    import torch
    import transformers

    from ropectl.hf.model.model_class import stock_class
    from ropectl.hf.model.rotary import verify_rope

    try:
        config = transformers.AutoConfig.from_pretrained(folder, trust_remote_code=trust_remote_code)
        with torch.device("meta"):
            if trust_remote_code and getattr(config, "auto_map", None):
                model = transformers.AutoModelForCausalLM.from_config(config, trust_remote_code=True)
            else:
                model = stock_class(config)(config)
    except Exception as error:  # a strict config, or a model's constructor, may raise anything
        raise PatchError(
            f"Stock transformers cannot build a model from the written config: {first_line(error)}"
        ) from error
    expected = plan.method.frequencies(plan.geometry, plan.seq_len)
    return {
        "transformers": transformers.__version__,
        "max_frequency_deviation": verify_rope(_with_real_tables(model), expected, plan.source.rope.layer_type),
        "attention_factor": expected.attention_factor,
    }


def _with_real_tables(model: Any) -> Any:
    """Gives a model on the meta device rotary modules with real tables, as its class builds them."""
    from ropectl.hf.model.rotary import rotary_modules, text_config

    names = {id(module): name for name, module in model.named_modules()}
    for module in rotary_modules(model):
        model.set_submodule(names[id(module)], type(module)(config=text_config(model)))
    return model
