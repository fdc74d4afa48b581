"""``--layers`` from the command line to the measured model, on one whose layer types have tables of their own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoTokenizer

from ropectl.builtin import TINY_MODEL_DIR
from ropectl.evaluate.config import CompareConfig
from scripts.tiny_models import tiny_model
from tests.conftest import VOCABULARY

Run = Callable[..., tuple[int, str, str]]

PERPLEXITY = ("eval-perplexity", "--length", "64,256", "--documents", "2", "--device", "cpu", "--format", "json")


@pytest.fixture
def layered(tmp_path: Path) -> str:
    """A random Gemma 3: a base of 1e4 in sliding layers, 1e6 in those that see all."""
    folder = tmp_path / "layered"
    changes = {"vocab_size": VOCABULARY, "max_position_embeddings": 128, "bos_token_id": 0, "eos_token_id": 1}
    torch.manual_seed(0)
    tiny_model("gemma3_text", sliding_window=64, **changes).save_pretrained(folder)
    AutoTokenizer.from_pretrained(TINY_MODEL_DIR).save_pretrained(folder)
    return str(folder)


def read(result: tuple[int, str, str]) -> dict[str, Any]:
    assert result[0] == 0, result[2]
    document: dict[str, Any] = json.loads(result[1])
    return document


def test_inspect_shows_the_layers_that_are_asked_for(ropectl: Run, layered: str) -> None:
    bases = {
        layers: read(ropectl("inspect", layered, *layers, "--format", "json"))["geometry"]["rope_theta"]
        for layers in ((), ("--layers", "sliding_attention"))
    }
    assert list(bases.values()) == [1e6, 1e4]


@pytest.mark.process
def test_perplexity_depends_on_which_layers_are_scaled(ropectl: Run, layered: str) -> None:
    text = Path(layered) / "text.txt"
    text.write_text("The lighthouse keeper counted ships. " * 400)
    common = (*PERPLEXITY[:1], layered, *PERPLEXITY[1:], "--text", str(text))
    scaled = ("-m", "pi:factor=4")
    runs = [
        read(ropectl(*common, *options))
        for options in ((), scaled, (*scaled, "--layers", "full_attention"), (*scaled, "--layers", "sliding_attention"))
    ]
    plain, default, full, sliding = ([point["perplexity"] for point in run["points"]] for run in runs)
    assert default == full and len({tuple(values) for values in (plain, full, sliding)}) == 3
    assert runs[2]["manifest"]["config"]["layers"] == "full_attention"


def test_a_window_that_ends_early_is_said(ropectl: Run, layered: str) -> None:
    """With numbers, where the scaled layers are those with the window."""
    text = Path(layered) / "text.txt"
    text.write_text("The lighthouse keeper counted ships. " * 400)
    common = (*PERPLEXITY[:1], layered, *PERPLEXITY[1:], "--text", str(text), "-m", "pi:factor=2")
    assert "64 tokens only" in ropectl(*common, "--layers", "sliding_attention")[2].replace("\n", " ")
    assert "tokens only" not in ropectl(*common)[2].replace("\n", " ")


def test_passkey_runs_on_the_layers_that_are_asked_for(ropectl: Run, layered: str) -> None:
    options = "-m pi:factor=4 --layers sliding_attention --length 128 --trials 1 --depths 1 --device cpu --format json"
    record = read(ropectl("eval-passkey", layered, *options.split()))
    assert record["geometry"]["rope_theta"] == 1e4 and record["cells"][0]["trials"] == 1


@pytest.mark.process
def test_a_comparison_of_other_layers_has_other_records(layered: str, tmp_path: Path) -> None:
    from ropectl.compare.run import compare_methods

    text = tmp_path / "text.txt"
    text.write_text("The lighthouse keeper counted ships. " * 400)
    base = {
        "model": layered, "methods": ("pi:factor=2",), "lengths": (128, 256), "text": str(text), "documents": 1,
        "passkey": False, "device": "cpu",
    }  # fmt: skip
    ids = []
    for layers in (None, "sliding_attention"):
        comparison = compare_methods(CompareConfig(**base, layers=layers), out=tmp_path / "run")
        assert comparison.num_failed == 0
        ids.append({cell["id"] for cell in comparison.record["manifest"]["cells"]})
    assert not ids[0] & ids[1]


@pytest.mark.parametrize("layers", ["global", "conv"])
def test_unknown_layers_are_refused_before_weights_load(ropectl: Run, layered: str, layers: str) -> None:
    (Path(layered) / "model.safetensors").unlink()
    code, _, err = ropectl("eval-perplexity", layered, "--layers", layers)
    assert code == 2 and "full_attention" in err and "sliding_attention" in err


def test_layers_of_a_model_with_one_table_are_refused(ropectl: Run) -> None:
    code, _, err = ropectl("inspect", "builtin:tiny", "--layers", "full_attention")
    assert code == 2 and "Leave out --layers" in err
    geometry = "rotary_dim=8,rope_theta=1e4,original_max_position_embeddings=128"
    assert ropectl("inspect", "--geometry", geometry, "--layers", "full_attention")[0] == 2
