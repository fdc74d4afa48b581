"""One process, two that divide the sequences, two that share each: the same training."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from ropectl.train.finetuning import finetune
from ropectl.train.settings import FinetuneSettings
from tests.distributed import run_ranks
from tests.train.runs import arguments, losses, small_settings, weights, write_text

pytestmark = [pytest.mark.usefixtures("one_thread"), pytest.mark.process]

#: Losses whose float32 sums were added up in another order, over some steps (relative).
LOSS = 2e-5
#: Weights after them (absolute): AdamW divides by the size of a gradient, so rounding of a tiny one shows.
WEIGHT = 2e-4


def run(settings: FinetuneSettings, num_ranks: int) -> dict[str, Any]:
    assert settings.out is not None
    outputs = run_ranks(["-m", "ropectl", *arguments(settings), "--format", "json"], num_ranks)
    spoken = [output for output in outputs if output.strip()]
    assert len(spoken) == 1, "only the main process speaks"
    record: dict[str, Any] = json.loads((settings.out / "ropectl.json").read_text())
    return record


def assert_same(one: Path, other: Path) -> None:
    assert losses(other) == pytest.approx(losses(one), rel=LOSS)
    left, right = weights(one), weights(other)
    assert left.keys() == right.keys()
    assert all(torch.allclose(left[name], right[name], atol=WEIGHT) for name in left)


def test_any_number_of_ranks_trains_the_same(checkpoint: Callable[..., Path], tmp_path: Path) -> None:
    """Sequences of different lengths, five a step: no rank has as many tokens as another, one idles at the end."""
    source = checkpoint()
    options: dict[str, Any] = {
        "packing": "none", "batch_size": 5, "steps": 4, "eval_every": 2, "eval_lengths": (64, 128), "eval_trials": 1,
        "eval_text": str(write_text(tmp_path, ("heapq.py",))),
    }  # fmt: skip
    one = tmp_path / "one"
    alone = finetune(small_settings(source, one, **options)).record
    assert alone is not None
    record = run(small_settings(source, tmp_path / "two", **options), 2)
    assert_same(one, tmp_path / "two")
    assert record["training"]["engine"] == {"kind": "MULTI_CPU", "processes": 2, "device": "cpu", "precision": "fp32"}
    assert record["training"]["tokens"] == alone["training"]["tokens"]
    ours, theirs = (
        entry["training"]["validation"]["perplexity"]["128"]
        for entry in (record, json.loads((one / "ropectl.json").read_text()))
    )
    assert ours == pytest.approx(theirs, rel=1e-4)


@pytest.mark.parametrize("positions", ["contiguous", "pose"])
def test_a_shared_sequence_trains_the_same(checkpoint: Callable[..., Path], tmp_path: Path, positions: str) -> None:
    source = checkpoint()
    options: dict[str, Any] = {"steps": 3, "seq_len": 66, "positions": positions, "activation_checkpointing": "on"}
    finetune(small_settings(source, tmp_path / "one", **options))
    run(small_settings(source, tmp_path / "two", cp_size=2, **options), 2)
    assert_same(tmp_path / "one", tmp_path / "two")


def test_two_ranks_go_on_where_they_stopped(checkpoint: Callable[..., Path], tmp_path: Path) -> None:
    """With dropout, so that each rank needs its own random state back."""
    source = checkpoint()
    options: dict[str, Any] = {"strategy": "lora", "lora_dropout": 0.2, "steps": 6, "save_every": 3}
    out = tmp_path / "out"
    run(small_settings(source, out, **options), 2)
    whole, wanted = weights(out), losses(out)
    shutil.rmtree(out)
    shutil.rmtree(tmp_path / "out.run" / "state-00000006")
    run(small_settings(source, out, **options), 2)
    again = weights(out)
    assert whole.keys() == again.keys() and all(torch.equal(whole[name], again[name]) for name in whole)
    assert losses(out) == wanted
