"""The matrix in ``ropectl inspect``."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.runtimes.cases import KNOWN, LLAMA3, YARN, base_config, scaled, v5_only

Run = Callable[..., tuple[int, str, str]]
NUMBERS = "rotary_dim=64,rope_theta=10000,original_max_position_embeddings=2048"


def test_a_folder_as_it_stands(ropectl: Run, tmp_path: Path) -> None:
    """What transformers 5 saves is another model to transformers 4."""
    (tmp_path / "config.json").write_text(json.dumps(v5_only(scaled("llama3", **LLAMA3))))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"model_max_length": 2048}))
    code, out, _ = ropectl("inspect", str(tmp_path), "--format", "json")
    readings = {(entry["runtime"], entry["version"]): entry for entry in json.loads(out)["runtimes"]}
    assert code == 0 and len([name for name, _ in readings if name in KNOWN]) == 14
    old, new = readings["transformers", "4.57"], readings["transformers", "5.24"]
    assert old["rope_type"] == "default" and old["max_deviation"] > 10 and not old["ok"]
    assert [problem["code"] for problem in old["problems"]] == ["theta-dropped", "factor-ignored", "tokenizer-capped"]
    assert new["rope_type"] == "llama3" and new["max_deviation"] < 1e-9 and len(new["inv_freq"]) == 32
    assert readings["vllm", "0.32"]["usable_length"] == 8192 and readings["vllm", "0.32"]["ok"]
    code, out, _ = ropectl("inspect", str(tmp_path))
    assert code == 0 and all(len(line) <= 80 for line in out.splitlines()) and "[theta-dropped]" in out


def test_a_folder_as_a_patch_would_make_it(ropectl: Run, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(base_config()))
    _, out, _ = ropectl("inspect", str(tmp_path), "-m", "yarn", "--target-length", "8192", "--format", "json")
    readings = json.loads(out)["runtimes"]
    assert {entry["rope_type"] for entry in readings} == {"yarn"}
    wrong = [entry["version"] for entry in readings if entry["runtime"] in KNOWN and not entry["ok"]]
    assert wrong == ["4.44", "4.48"]


def test_numbers_have_a_matrix_with_a_method_only(ropectl: Run) -> None:
    _, out, _ = ropectl("inspect", "--geometry", NUMBERS, "--format", "json")
    assert json.loads(out)["runtimes"] == []
    _, out, _ = ropectl("inspect", "--geometry", NUMBERS, "-m", "llama3", "--factor", "4", "--format", "json")
    assert all(entry["ok"] for entry in json.loads(out)["runtimes"])


@pytest.mark.process
def test_needs_neither_torch_nor_transformers(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(scaled("yarn", **YARN)))
    code = (
        f"import sys; sys.argv = ['ropectl', 'inspect', {str(tmp_path)!r}]\nfrom ropectl.cli.app import main\n"
        "try: main()\nexcept SystemExit as stop: print(stop.code, [m for m in ('torch', 'transformers') if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "llama.cpp" in result.stdout and result.stdout.strip().endswith("0 []")


def test_keys_that_a_file_leaves_to_its_class_are_not_read_for_it(ropectl: Run, tmp_path: Path) -> None:
    """Gemma 3 as on the hub says ``rope_scaling``, which transformers 4 reads; and no base, which is the class's."""
    text = {"model_type": "gemma3_text", "hidden_size": 2560, "num_hidden_layers": 6, "sliding_window": 1024}
    text["rope_scaling"] = {"rope_type": "linear", "factor": 8.0}
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "gemma3", "text_config": text}))
    _, out, _ = ropectl("inspect", str(tmp_path), "--format", "json")
    found = [entry for entry in json.loads(out)["runtimes"] if entry["loads"]]
    assert "4.51" in {entry["version"] for entry in found}
    for entry in found:
        assert entry["rope_type"] == "linear", entry
        assert (entry["max_deviation"] < 1e-9) == (entry["runtime"] != "sglang"), entry  # its class reads no scaling
