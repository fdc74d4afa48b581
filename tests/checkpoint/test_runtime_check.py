"""``verify-runtime`` against a stand-in runtime: stock transformers behind vLLM's interface, right or wrong on purpose."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

Checkpoint = Callable[..., Path]
Run = Callable[..., tuple[int, str, str]]

_STAND_IN = """
import json, os
from types import SimpleNamespace
__version__ = "0.0 (stand-in)"

class SamplingParams:
    def __init__(self, **kwargs): pass

class LLM:
    def __init__(self, model, **kwargs):
        assert "ropectl" not in __import__("sys").modules
        from transformers import AutoConfig, AutoModelForCausalLM
        config = AutoConfig.from_pretrained(model)
        if os.environ.get("STAND_IN_IGNORES_SCALING"):
            config.rope_parameters = {"rope_type": "default", "rope_theta": config.rope_parameters["rope_theta"]}
        if os.environ.get("STAND_IN_FAILS"):
            raise RuntimeError("no such kernel")
        dtype = os.environ.get("STAND_IN_DTYPE", "float32")
        self.model = AutoModelForCausalLM.from_pretrained(model, config=config, dtype=dtype).eval()

    def generate(self, prompts, params, use_tqdm):
        import torch
        ids = prompts[0]["prompt_token_ids"]
        with torch.no_grad():
            rows = self.model(torch.tensor([ids])).logits[0].double().log_softmax(-1)
        found = [{token: SimpleNamespace(logprob=rows[i][token].item())} for i, token in enumerate(ids[1:])]
        return [SimpleNamespace(prompt_logprobs=[None, *found])]
"""


@pytest.fixture
def patched(checkpoint: Checkpoint, ropectl: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkpoint scaled by 4, and a module called vllm on the path."""
    (tmp_path / "stand-in").mkdir()
    (tmp_path / "stand-in" / "vllm.py").write_text(_STAND_IN)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "stand-in"), prepend=":")
    assert ropectl("patch", str(checkpoint()), "-m", "yarn", "--factor", "4", "-o", str(tmp_path / "out"))[0] == 0
    return tmp_path / "out"


def arguments(model: Path, *more: str, runtime: str = "vllm") -> list[str]:
    return ["verify-runtime", str(model), "--runtime", runtime, "--python", sys.executable, *more]


@pytest.mark.usefixtures("warm_probe")
def test_a_runtime_that_computes_the_same(patched: Path, ropectl: Run, tmp_path: Path) -> None:
    record_file = tmp_path / "record.json"
    code, out, _ = ropectl(*arguments(patched, "--length", "400", "--format", "json", "-o", str(record_file)))
    record = json.loads(out)
    assert code == 0 and record == json.loads(record_file.read_text())
    assert record["agrees"] and record["mean_difference"] < 1e-4 and record["num_compared"] == 399
    assert record["num_past_trained_length"] == 272 and record["runtime_version"] == "vllm 0.0 (stand-in)"


@pytest.mark.usefixtures("warm_probe")
def test_a_runtime_that_ignores_the_scaling_is_found(
    patched: Path, ropectl: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STAND_IN_IGNORES_SCALING", "1")
    code, out, _ = ropectl(*arguments(patched, "--length", "400", "--positions", "50"))
    assert code == 1 and "vllm computes something else: no scaling at all" in out and "50 compared" in out


@pytest.mark.usefixtures("warm_probe")
def test_arithmetic_is_no_fault(patched: Path, ropectl: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """In bfloat16 the numbers differ, and the reading is still found."""
    monkeypatch.setenv("STAND_IN_DTYPE", "bfloat16")
    code, out, _ = ropectl(*arguments(patched, "--length", "400", "--format", "json"))
    record = json.loads(out)
    assert code == 0 and record["verdict"] == "as-meant" and not record["agrees"]
    assert 1e-3 < record["noise"] < record["margin_low"]
    monkeypatch.setenv("STAND_IN_IGNORES_SCALING", "1")
    code, out, _ = ropectl(*arguments(patched, "--length", "400", "--format", "json"))
    assert code == 1 and json.loads(out)["verdict"] == "unscaled"


@pytest.mark.usefixtures("warm_probe")
def test_what_cannot_work_is_said(patched: Path, ropectl: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    code, _, err = ropectl(*arguments(patched, runtime="tgi"))
    assert code == 2 and "Known: vllm, llama.cpp" in err
    code, _, err = ropectl(*arguments(patched, runtime="llama.cpp"))
    assert code == 2 and "reads a .gguf file" in err
    code, _, err = ropectl("verify-runtime", str(patched), "--runtime", "vllm", "--python", "/nowhere/python")
    assert code == 2 and "no Python" in err
    monkeypatch.setenv("STAND_IN_FAILS", "1")
    code, _, err = ropectl(*arguments(patched, "--length", "64"))
    assert code == 1 and "no such kernel" in err and "Traceback" not in err


def test_a_runtime_starts_in_another_folder(patched: Path, ropectl: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Relative places are no longer what they were there."""
    (patched.parent / "python").symlink_to(sys.executable)
    monkeypatch.setenv("PYTHONPATH", ":".join(sys.path), prepend=":")
    monkeypatch.chdir(patched.parent)
    arguments = ["verify-runtime", patched.name, "--runtime", "vllm", "--python", "./python"]
    _, out, err = ropectl(*arguments, "--length", "64", "--format", "json")
    assert out and json.loads(out)["num_tokens"] == 64, err


@pytest.mark.usefixtures("patched", "warm_probe")
def test_a_runtime_knows_no_builtin_model(ropectl: Run) -> None:
    _, out, err = ropectl(*arguments(Path("builtin:tiny"), "--length", "64", "--format", "json"))
    assert out and json.loads(out)["num_tokens"] == 64, err


def test_a_python_that_cannot_be_run(patched: Path, ropectl: Run) -> None:
    code, _, err = ropectl(
        "verify-runtime", str(patched), "--runtime", "vllm", "--python", str(patched / "config.json")
    )
    assert code == 2 and "config.json is not a program" in err
