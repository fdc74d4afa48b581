"""``patch`` over every model type that is scaled: written, read back, loaded by stock classes, described again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from ropectl.checkpoint.api import patch_checkpoint
from ropectl.checkpoint.settings import PatchSettings
from ropectl.hf.loading import LoadOptions, load_model
from ropectl.hf.patch import apply_rope
from ropectl.hf.source import read_config
from ropectl.rope.registry import parse_method
from tests.hf.test_families import CENSUS, NOT_BUILT
from tests.hf.tiny_families import tiny_model

IDS = (torch.arange(80) * 7).remainder(60).unsqueeze(0) + 2

transformers.logging.set_verbosity_error()


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """Models of this size spend their time waiting for threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def logits(model: Any) -> torch.Tensor:
    with torch.no_grad():
        result: torch.Tensor = model(IDS, use_cache=False).logits
    return result


@pytest.mark.parametrize("model_type", [name for name in CENSUS.supported if name not in NOT_BUILT])
def test_patched_and_loaded(model_type: str, tmp_path: Path) -> None:
    """The result in stock classes is what the source computes under the method, to the last bit."""
    tiny_model(model_type).save_pretrained(tmp_path / "source")
    request = {"method": "yarn", "factor": 4, "replace": True}  # some classes are scaled by default
    record = patch_checkpoint(PatchSettings(model=str(tmp_path / "source"), out=tmp_path / "out", **request))
    assert record["verified"]["max_frequency_deviation"] < 1e-5
    assert [step["runtime"] for step in record["next_steps"]] == ["transformers", "vllm", "sglang", "llama.cpp"]
    assert all((step["command"] is None) == bool(step["refusal"]) for step in record["next_steps"])
    newest = next(reading for reading in record["runtimes"] if reading["version"] == "5.x")
    assert newest["loads"] and newest["max_deviation"] < 1e-5, newest["problems"]
    rope = read_config(str(tmp_path / "out")).rope
    assert rope.method == parse_method("yarn:factor=4")
    source = read_config(str(tmp_path / "source"))
    assert rope.geometry == source.rope.geometry
    base = load_model(source, LoadOptions(device="cpu"))
    with apply_rope(base, rope.method, geometry=rope.geometry):
        expected = logits(base)
    architecture = json.loads((tmp_path / "out" / "config.json").read_text())["architectures"][0]
    model = getattr(transformers, architecture).from_pretrained(tmp_path / "out").eval()
    assert torch.equal(logits(model), expected)
