"""Every causal model type of the installed transformers: scaled exactly and undone, or refused for a known reason.

A new version of transformers brings new model types: they are tried here without being named.
"""

from __future__ import annotations

import copy
import inspect
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from transformers import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from ropectl.errors import MethodError, PatchError, UnsupportedModelError
from ropectl.hf.config.families import FAMILIES, INTERLEAVED, family_of
from ropectl.hf.config.geometry import RopeDescription, describe_rope
from ropectl.hf.config.writer import patched_config
from ropectl.hf.model.patch import apply_rope
from ropectl.hf.model.rotary import (
    rotary_module,
    rotary_modules,
    table_names,
    text_config,
    text_config_values,
    verify_rope,
)
from ropectl.rope.registry import parse_method
from scripts.model_types import census
from scripts.tiny_models import TRAINED, tiny_config, tiny_model

CENSUS = census()

#: Model types whose tiny model cannot be built here, and why; their text parts are tried under another name.
NOT_BUILT = {"gemma3n": "its vision part needs the package timm; its text part is gemma3n_text"}

BUILT = [name for name in CENSUS.supported if name not in NOT_BUILT]

IDS = (torch.arange(160) * 7).remainder(60).unsqueeze(0) + 2
FROZEN_AT = 160

transformers.logging.set_verbosity_error()

pytestmark = pytest.mark.usefixtures("one_thread")


def logits(model: Any) -> torch.Tensor:
    with torch.no_grad():
        result: torch.Tensor = model(IDS, use_cache=False).logits
    return result


def methods(description: RopeDescription) -> list[tuple[Any, int | None]]:
    """Static methods with a native type, and one that has only the universal form."""
    divisors = ":".join(str(1 + pair / 2) for pair in range(description.geometry.num_pairs))
    native = ["yarn:factor=4"] if description.geometry.num_turning is None else ["pi:factor=4", "ntk:factor=4"]
    return [
        *((parse_method(spec), None) for spec in native),
        (parse_method(f"longrope:factor=4,long_factor={divisors}"), None),
        (parse_method("dynamic-yarn"), FROZEN_AT),
    ]


def test_the_census_is_whole() -> None:
    """Every model type is counted once; what is supported is far the most of what rotates."""
    counted = [*CENSUS.supported, *CENSUS.refused, *CENSUS.without]
    assert sorted(counted) == sorted(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES) and len(set(counted)) == len(counted)
    assert len(CENSUS.supported) > 6 * len(CENSUS.refused)


@pytest.mark.process
@pytest.mark.parametrize("model_type", BUILT)
def test_scaled_exactly_and_undone(model_type: str, tmp_path: Path) -> None:
    model = tiny_model(model_type)
    model.save_pretrained(tmp_path)
    config_file = tmp_path / "config.json"
    on_disk = json.loads(config_file.read_text())
    description = describe_rope(text_config_values(model))
    assert description.geometry.original_max_position_embeddings == TRAINED
    layer_type = description.layer_type
    verify_rope(model, description.method.frequencies(description.geometry), layer_type)
    before, base = copy.deepcopy(model.config.to_dict()), logits(model)
    for method, seq_len in methods(description):
        if family_of(text_config_values(model)).no_universal and method.name in ("longrope", "dynamic-yarn"):
            with pytest.raises(MethodError, match="has no config for models of type"):
                apply_rope(model, method, seq_len=seq_len)
            continue
        with apply_rope(model, method, seq_len=seq_len) as report:
            assert report.layer_type == layer_type
            verify_rope(model, method.frequencies(description.geometry, seq_len), layer_type)
            scaled = logits(model)
            assert torch.isfinite(scaled).all() and not torch.equal(scaled[:, TRAINED:], base[:, TRAINED:])
            config_file.write_text(json.dumps(patched_config(on_disk, report.patch, layer_type)))
            stock = type(model).from_pretrained(tmp_path, dtype=torch.float32).eval()
            assert torch.equal(logits(stock), scaled)
        assert torch.equal(logits(model), base) and model.config.to_dict() == before


def default_section(model_type: str) -> dict[str, Any]:
    """The text part of a class's default config; its name alone where there is no default."""
    try:
        section: dict[str, Any] = CONFIG_MAPPING[model_type]().get_text_config(decoder=True).to_dict()
    except Exception:
        section = {"model_type": model_type}
    return section


@pytest.mark.parametrize("model_type", CENSUS.refused)
def test_refused_with_its_reason(model_type: str) -> None:
    """The config is refused as the census says, before any model is built."""
    section, refusals = default_section(model_type), []
    for candidate in (section, {**section, "model_type": model_type}):
        try:
            describe_rope(candidate)
        except UnsupportedModelError as error:
            refusals.append(str(error))
    assert any(CENSUS.refused[model_type] in refusal for refusal in refusals)


@pytest.mark.parametrize("model_type", CENSUS.without)
def test_without_rotary_positions_is_refused(model_type: str) -> None:
    with pytest.raises(UnsupportedModelError):
        describe_rope(default_section(model_type))
    model_class = getattr(transformers, MODEL_FOR_CAUSAL_LM_MAPPING_NAMES[model_type])
    source = inspect.getsource(sys.modules[model_class.__module__])
    text_part = re.sub(r"class \w*(Vision|Audio)\w*\(.*?\nclass ", "", source, flags=re.DOTALL)
    assert not re.search(r"self\.rotary_emb = |original_inv_freq", text_part)


def rotation_of(model: Any) -> Any:
    """The function with which the text model's attention rotates queries and keys."""
    flag = getattr(text_config(model), "rope_interleave", True)
    for name, module in model.named_modules():
        source = inspect.getsource(type(module).forward)
        called = re.findall(r"apply_\w*rotary\w*(?=\()", source)
        if called and not re.search("vision|audio|visual|indexer|compressor", name):
            interleaving = [name for name in called if "interleave" in name]
            chosen = interleaving[0] if interleaving and flag else called[0]
            return getattr(sys.modules[type(module).__module__], chosen)
    raise AssertionError("nothing rotates")


@pytest.mark.process
@pytest.mark.parametrize("model_type", BUILT)
def test_pairing_is_as_in_the_code(model_type: str) -> None:
    """Two channels turn together if rotating one and rotating the other ends in the same two channels."""
    model = tiny_model(model_type)
    description, module = describe_rope(text_config_values(model)), rotary_module(model)
    width = description.geometry.rotary_dim
    layer = {"layer_type": description.layer_type} if description.layer_type else {}
    table = module(torch.zeros(1), torch.ones(1, 1, dtype=torch.long), **layer)
    rotate = rotation_of(model)

    def ends(channel: int) -> set[int]:
        vector = torch.zeros(1, 1, 1, width)
        vector[..., channel] = 1
        vectors = [vector] * (2 if list(inspect.signature(rotate).parameters)[1] in ("k", "xk") else 1)
        rotated = rotate(*vectors, *(table if isinstance(table, tuple) else (table,)))
        rotated = rotated[0] if isinstance(rotated, tuple) else rotated
        return set(rotated.flatten().nonzero().flatten().tolist())

    paired = {1: INTERLEAVED, width // 2: "half-split"}
    assert [paired[other] for other in paired if ends(0) == ends(other)] == [description.pairing]


@pytest.mark.parametrize("model_type", BUILT)
def test_layers_without_a_window_rotate_or_do_not(model_type: str) -> None:
    """With all layers seeing the whole context, scaling changes the logits unless such layers have no positions."""
    config = tiny_config(model_type)
    section = config.get_text_config(decoder=True)
    kinds = set(getattr(section, "layer_types", None) or ())
    if not ({"sliding_attention", "chunked_attention"} & kinds and "full_attention" in kinds):
        assert not family_of(section.to_dict()).rope_only_windowed
        return
    prefix = "" if section is config else "text_config."
    kinds_on_disk = section.to_dict()["layer_types"]  # one family lists other blocks between its attention layers
    changes = {"layer_types": ["full_attention" if "attention" in kind else kind for kind in kinds_on_disk]}
    if hasattr(section, "no_rope_layers"):
        changes["no_rope_layers"] = [0] * len(section.layer_types)
    model = tiny_model(model_type, **{prefix + key: value for key, value in changes.items()})
    description = describe_rope(config.get_text_config(decoder=True).to_dict())
    base = logits(model)
    try:
        with apply_rope(model, parse_method("pi:factor=4"), geometry=description.geometry):
            changed = not torch.equal(logits(model), base)
    except (UnsupportedModelError, PatchError):
        changed = False  # only the layers with a window have a table
    only_windowed = description.layer_types == ("sliding_attention",)
    assert changed != (family_of(section.to_dict()).rope_only_windowed or only_windowed)
    assert bool([note for note in description.warnings if "whole context" in note]) != changed


@pytest.mark.process
def test_data_names_families_that_exist() -> None:
    """A family renamed by transformers would lose its data silently; and the data agree with the classes."""
    null = {name for name, family in FAMILIES.items() if family.null_head_dim}
    for name, family in FAMILIES.items():
        section = CONFIG_MAPPING[name]()
        if family.default_window is not None:
            assert section.sliding_window == family.default_window
    for name in CENSUS.supported:
        text = CONFIG_MAPPING[name]().get_text_config(decoder=True)
        assert (vars(text).get("head_dim", 0) is None) == (text.model_type in null), name


def test_one_module_in_every_layer_is_scaled_in_each() -> None:
    model = tiny_model("moshi")
    modules = rotary_modules(model)
    assert len(modules) == 2
    with apply_rope(model, parse_method("pi:factor=2")) as report:
        tables = [module.inv_freq for module in modules]
        assert torch.equal(tables[0], tables[1])
        assert tables[0][0].item() == pytest.approx(report.frequencies.inv_freq[0])


@pytest.mark.parametrize("model_type", ["gemma3_text", "olmo3", "zaya", "laguna"])
def test_layer_types_have_their_own_tables(model_type: str) -> None:
    model = tiny_model(model_type)
    description = describe_rope(text_config_values(model))
    assert set(description.layer_types) == {
        name.removesuffix("_inv_freq") for name in table_names(rotary_module(model))
    }
