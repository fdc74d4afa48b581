"""The same weights and the same scaling in llama.cpp and in stock transformers: the same probabilities.

Needs the model (see ``real_model.py``) and a python whose environment holds llama.cpp:

    python -m venv /tmp/llamacpp && /tmp/llamacpp/bin/pip install xllamacpp
    ROPECTL_LLAMACPP_PYTHON=/tmp/llamacpp/bin/python python -m pytest -m slow tests/slow/test_llamacpp.py
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoConfig

from ropectl.checkpoint.gguf_patch import patch_gguf
from ropectl.hf.config.source import read_config
from ropectl.hf.model.loading import LoadOptions, load_model, load_tokenizer
from ropectl.hf.model.patch import apply_rope
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.registry import parse_method
from ropectl.runtimes.matrix import find_probe
from tests.slow.real_model import named_by, smollm2_file
from tests.tolerances import RUNTIME

pytestmark = pytest.mark.slow

SCRIPTS = Path(__file__).parents[2] / "scripts" / "runtimes"
PROBE = find_probe("llama.cpp").path
#: A short stand-in for the trained length, so that a text of twice its size is past it.
GEOMETRY = RopeGeometry(rotary_dim=64, rope_theta=100_000.0, original_max_position_embeddings=512)
CONTEXT = 2048
NUM_TOKENS, NUM_SCORED = 1100, 40
DIVISORS = ":".join(f"{1 + 3 * i / 31:.3f}" for i in range(32))
SPECS = [
    "none",
    "pi:factor=4",
    "ntk:factor=4",
    "ntk-by-parts:factor=4",
    "yarn:factor=4",
    "yarn:factor=4,attention_factor=1",
    "yarn:factor=4,beta_fast=16,beta_slow=2",
    "llama3:factor=4",
    f"longrope:factor=4,long_factor={DIVISORS}",
]


@pytest.fixture(scope="module")
def python() -> str:
    return str(named_by("ROPECTL_LLAMACPP_PYTHON", "the python of an environment with xllamacpp"))


@pytest.fixture(scope="module")
def f32_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model in float32: llama.cpp would multiply quantized weights with quantized activations."""
    out = tmp_path_factory.mktemp("f32") / "SmolLM2.f32.gguf"
    subprocess.run([sys.executable, SCRIPTS / "make_f32_gguf.py", smollm2_file(), out], check=True)
    return out


@pytest.fixture(scope="module")
def ids(f32_file: Path) -> list[int]:
    tokenizer = load_tokenizer(read_config(str(f32_file)), LoadOptions())
    found: list[int] = tokenizer(Path(argparse.__file__).read_text())["input_ids"]
    return found[:NUM_TOKENS]


@pytest.fixture(scope="module")
def positions() -> list[int]:
    return sorted({1 + round(k * (NUM_TOKENS - 2) / (NUM_SCORED - 1)) for k in range(NUM_SCORED)})


@pytest.fixture(scope="module")
def model(f32_file: Path) -> Any:
    return load_model(read_config(str(f32_file)), LoadOptions(dtype="float32", device="cpu"))


def llamacpp(python: str, file: Path, ids: list[int], positions: list[int], folder: Path) -> list[float]:
    request = folder / "ids.json"
    request.write_text(json.dumps({"token_ids": ids, "positions": positions}))
    command = [python, PROBE, file, request]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-2000:]
    answer = json.loads(run.stdout)
    assert answer["positions"] == positions and answer["runtime"] == "llama.cpp"
    logprobs: list[float] = answer["logprobs"]
    return logprobs


def transformers_logprobs(model: Any, ids: list[int], positions: list[int]) -> list[float]:
    with torch.inference_mode():
        table = model(torch.tensor([ids])).logits[0].float().log_softmax(-1)
    return [table[position - 1, ids[position]].item() for position in positions]


def mean_difference(left: list[float], right: list[float]) -> float:
    return sum(abs(a - b) for a, b in zip(left, right, strict=True)) / len(left)


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec[:40])
def test_llama_cpp_computes_the_patched_file_as_transformers_computes_the_method(
    python: str, f32_file: Path, model: Any, ids: list[int], positions: list[int], tmp_path: Path, spec: str
) -> None:
    method = parse_method(spec)
    out = tmp_path / "patched.gguf"
    patch_gguf(f32_file, out, method, GEOMETRY, target_length=CONTEXT)
    theirs = llamacpp(python, out, ids, positions, tmp_path)
    out.unlink()
    unscaled = transformers_logprobs(model, ids, positions)
    with apply_rope(model, method, geometry=GEOMETRY):
        ours = transformers_logprobs(model, ids, positions)
    assert mean_difference(ours, theirs) < RUNTIME
    assert spec == "none" or mean_difference(unscaled, theirs) > 10 * RUNTIME, "the method must make a difference"


def test_the_declared_context_is_a_limit(python: str, ids: list[int], positions: list[int], tmp_path: Path) -> None:
    """llama.cpp's server cuts its context down to ``context_length``, so a patch has to raise it."""
    out = tmp_path / "short.gguf"
    patch_gguf(smollm2_file(), out, parse_method("none"), GEOMETRY, target_length=1024)
    request = tmp_path / "ids.json"
    request.write_text(json.dumps({"token_ids": ids, "positions": [NUM_TOKENS - 1]}))
    run = subprocess.run([python, PROBE, out, request], capture_output=True, text=True)
    assert run.returncode != 0 and "exceeds the available context size (1024 tokens)" in run.stderr


def test_the_real_header_says_what_transformers_reads() -> None:
    file = smollm2_file()
    theirs = AutoConfig.from_pretrained(file.parent, gguf_file=file.name)
    ours = read_config(str(file)).rope
    assert ours.geometry.rope_theta == theirs.rope_parameters["rope_theta"]
    assert ours.geometry.original_max_position_embeddings == theirs.max_position_embeddings
    assert ours.geometry.rotary_dim == theirs.head_dim
