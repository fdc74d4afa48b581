"""Log-probabilities under a reading are those of stock classes with the config that says it, in families that differ."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch

from ropectl.checkpoint.verify.known_readings import known_readings
from ropectl.checkpoint.verify.likelihoods import own_likelihoods
from ropectl.checkpoint.verify.passages import below_and_beyond, spread
from ropectl.hf.config.families import LATENT_ATTENTION_KEY
from ropectl.hf.config.source import read_config
from ropectl.hf.model.loading import LoadOptions
from ropectl.reporter import Reporter
from scripts.tiny_models import TRAINED, VOCABULARY, tiny_model

pytestmark = pytest.mark.usefixtures("one_thread")

IDS = [(7 * k + k * k) % VOCABULARY for k in range(3 * TRAINED)]


def yarn(**changes: Any) -> dict[str, Any]:
    return {
        "rope_type": "yarn",
        "rope_theta": 5e4,
        "factor": 4.0,
        "original_max_position_embeddings": TRAINED,
        **changes,
    }


@torch.no_grad()
def stock(model: Any, block: dict[str, Any], layer: str | None) -> list[float]:
    config = copy.deepcopy(model.config)
    config.rope_parameters = {**config.rope_parameters, layer: block} if layer else block
    other = type(model)(config).eval()
    other.load_state_dict(model.state_dict())
    rows = other(torch.tensor([IDS])).logits[0].log_softmax(-1)
    return [rows[k][token].item() for k, token in enumerate(IDS[1:])]


@pytest.mark.parametrize("model_type", ["qwen3", "gemma3_text", "deepseek_v3", "glm4"])
def test_readings_are_what_stock_classes_compute(model_type: str, tmp_path: Path) -> None:
    model = tiny_model(model_type)
    layer = "full_attention" if "full_attention" in (model.config.rope_parameters or {}) else None
    kept = {} if layer else {k: v for k, v in model.config.rope_parameters.items() if k == "partial_rotary_factor"}
    block = {**yarn(), **kept}
    model.config.rope_parameters = {**model.config.rope_parameters, layer: block} if layer else block
    model.config.max_position_embeddings = 4 * TRAINED
    model = type(model)(model.config).eval()
    model.save_pretrained(tmp_path / "model")
    source = read_config(str(tmp_path / "model"))
    rope, is_latent = source.rope, source.config.get(LATENT_ATTENTION_KEY) is not None
    passages = below_and_beyond(len(IDS), spread(len(IDS), None), TRAINED)
    readings = known_readings(rope.method, rope.geometry, 4 * TRAINED, [TRAINED, len(IDS)], is_latent=is_latent)
    options = LoadOptions("float32", "cpu")
    found = own_likelihoods(source, options, readings, IDS, passages, Reporter())
    rows = {reading.code: row for reading, row in zip(found.readings, found.logprobs, strict=True)}
    assert not found.skipped and is_latent == (model_type == "deepseek_v3")
    blocks = {
        "as-meant": block,
        "unscaled": {"rope_type": "default", "rope_theta": 5e4, **kept},
        "attention-factor-missing": {**block, "attention_factor": 1.0},
        "theta-dropped": {**block, "rope_theta": 1e4},
        "factor-twice": {**block, "factor": 16.0},
    }
    for code, changed in blocks.items():
        assert rows[code] == pytest.approx(stock(model, changed, layer), abs=2e-5), code
    assert len({tuple(row) for row in rows.values()}) == len(rows)
