"""The scripts that compare with llama.cpp, without llama.cpp: what they write and what they ask for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import gguf
import numpy as np
import pytest

from ropectl.hf.config.source import read_config
from ropectl.runtimes.matrix import find_probe
from tests.gguf.gguf_files import write_tiny

pytestmark = pytest.mark.process

SCRIPTS = Path(__file__).parents[2] / "scripts" / "runtimes"

#: A server whose log-probability is minus the token, and which writes down what it was given.
FAKE_RUNTIME = """
import json, os
from types import SimpleNamespace
__version__ = "0"

class Choice:
    def __getattr__(self, name):
        return name

ggml_type = llama_flash_attn_type = llama_rope_scaling_type = Choice()

class CommonParams(SimpleNamespace):
    def __init__(self):
        super().__init__(model=SimpleNamespace(), cpuparams=SimpleNamespace())

class Server:
    def __init__(self, params):
        self.log = open(os.environ["FAKE_LOG"], "a")
        print(json.dumps(vars(params), default=vars), file=self.log)

    def handle_completions(self, request):
        print(json.dumps(request), file=self.log, flush=True)
        [[token, bias]] = request["logit_bias"]
        assert bias >= 1e5
        every = [{"id": other, "logprob": -float(other)} for other in range(min(request["n_probs"], 100))]
        content = [{"id": token, "logprob": -float(token), "top_logprobs": every}]
        held_back = token >= 90  # as a token that ends inside a character
        logprobs = None if held_back else {"content": content}
        return {"choices": [{"logprobs": logprobs}], "usage": {"prompt_tokens": len(request["prompt"])}}
"""


def test_weights_are_unpacked_and_keys_kept(tmp_path: Path) -> None:
    source, out = write_tiny(tmp_path / "tiny.gguf"), tmp_path / "f32.gguf"
    subprocess.run([sys.executable, SCRIPTS / "make_f32_gguf.py", source, out], check=True)
    old, new = gguf.GGUFReader(source), gguf.GGUFReader(out)
    assert {tensor.tensor_type for tensor in new.tensors} == {gguf.GGMLQuantizationType.F32}
    for before, after in zip(old.tensors, new.tensors, strict=True):
        assert before.name == after.name and before.shape.tolist() == after.shape.tolist()
        assert np.array_equal(unpacked(before), after.data.reshape(-1))
    assert {name: field.contents() for name, field in new.fields.items() if name in old.fields} == {
        name: field.contents() for name, field in old.fields.items()
    }
    assert read_config(str(out)).rope == read_config(str(source)).rope


def unpacked(tensor: gguf.ReaderTensor) -> np.ndarray:
    """Blocks of 32 weights with one float16 scale each: Q8_0 has a byte per weight, Q4_0 half of one, offset by 8."""
    if tensor.tensor_type == gguf.GGMLQuantizationType.F32:
        return tensor.data.reshape(-1)
    size = {gguf.GGMLQuantizationType.Q8_0: 34, gguf.GGMLQuantizationType.Q4_0: 18}[tensor.tensor_type]
    blocks = tensor.data.reshape(-1, size)
    scales = blocks[:, :2].copy().view(np.float16).astype(np.float32)
    packed = blocks[:, 2:]
    if size == 34:
        weights = packed.view(np.int8).astype(np.float32)
    else:
        weights = np.concatenate([packed & 15, packed >> 4], axis=1).astype(np.float32) - 8
    return (scales * weights).reshape(-1)


@pytest.fixture
def run_scorer(tmp_path: Path):  # type: ignore[no-untyped-def]
    """Runs the script on the fake runtime: exit status, answer, and what the runtime was given."""
    (tmp_path / "xllamacpp.py").write_text(FAKE_RUNTIME)

    def run(request: dict[str, list[int]], *flags: str) -> tuple[int, str, list[dict[str, object]]]:
        ids, log = tmp_path / "ids.json", tmp_path / "log"
        ids.write_text(json.dumps(request))
        environment = {**os.environ, "PYTHONPATH": str(tmp_path), "FAKE_LOG": str(log)}
        command = [sys.executable, find_probe("llama.cpp").path, "model.gguf", ids, *flags]
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        lines = log.read_text().splitlines() if log.exists() else []
        return done.returncode, done.stdout or done.stderr, [json.loads(line) for line in lines]

    return run


def test_each_token_is_scored_after_its_prefix(run_scorer) -> None:  # type: ignore[no-untyped-def]
    code, out, (params, *requests) = run_scorer({"token_ids": [5, 6, 7, 8], "positions": [3, 1]})
    answer = json.loads(out)
    assert code == 0 and answer["positions"] == [3, 1] and answer["logprobs"] == [-8.0, -6.0]
    assert [request["prompt"] for request in requests] == [[5], [5, 6, 7]], "in order, so that the cache is used"
    assert all(request["cache_prompt"] and request["n_predict"] == 1 for request in requests)
    assert params["cache_type_k"] == params["cache_type_v"] == "GGML_TYPE_F32" and params["n_ctx"] >= 5
    assert not {"rope_scaling_type", "rope_freq_scale", "rope_freq_base"} & set(params), "the file decides"
    _, out, _ = run_scorer({"token_ids": [5, 6, 7, 8]})
    assert json.loads(out)["logprobs"] == [-6.0, -7.0, -8.0]


def test_tokens_that_end_inside_a_character_are_scored_too(run_scorer) -> None:  # type: ignore[no-untyped-def]
    _, out, _ = run_scorer({"token_ids": [91, 92, 7, 93]})
    assert json.loads(out)["logprobs"] == [-92.0, -7.0, -93.0]
    code, message, _ = run_scorer({"token_ids": [91, 92]})
    assert code == 1 and "inside a character" in message


def test_rotary_flags_reach_the_runtime(run_scorer) -> None:  # type: ignore[no-untyped-def]
    flags = ["--rope-scaling", "yarn", "--rope-scale", "4", "--yarn-orig-ctx", "512", "--yarn-beta-fast", "16"]
    _, _, (params, *_) = run_scorer({"token_ids": [5, 6]}, *flags, "--rope-freq-base", "5e5", "--context", "4096")
    assert params["rope_scaling_type"] == "LLAMA_ROPE_SCALING_TYPE_YARN" and params["rope_freq_scale"] == 0.25
    assert (params["yarn_orig_ctx"], params["yarn_beta_fast"], params["rope_freq_base"]) == (512, 16.0, 5e5)
    assert params["n_ctx"] == 4096


@pytest.mark.parametrize("position", [0, 2])
def test_positions_without_a_prefix_or_a_token_are_refused(run_scorer, position: int) -> None:  # type: ignore[no-untyped-def]
    code, message, asked = run_scorer({"token_ids": [5, 6], "positions": [position]})
    assert code == 1 and "from 1 to 1" in message and not asked
