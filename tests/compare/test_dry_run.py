"""The estimate of a comparison against what is really done."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from ropectl.compare.dry_run import estimate_comparison
from ropectl.compare.run import compare_methods
from ropectl.errors import ConfigError
from ropectl.evaluate import setup
from ropectl.evaluate.config import CompareConfig
from ropectl.evaluate.cost import ForwardCost, ForwardPass
from ropectl.reporter import Reporter
from ropectl.timing.operations import NOTHING, Cost

Run = Callable[..., tuple[int, str, str]]


class Counter(Reporter):
    """Counts tokens that went through the model, and what they were said to cost."""

    def __init__(self) -> None:
        super().__init__()
        self.total, self.planned, self.done, self.tokens = NOTHING, NOTHING, NOTHING, 0

    def start(self, what: str, total: float = 0.0, unit: str = "tokens", cost: Cost | None = None) -> None:
        self.total += cost or NOTHING

    def cell(self, method: str, part: str, cost: Cost) -> None:
        self.planned += cost

    def advance(self, amount: int, cost: Cost | None = None) -> None:
        self.tokens += amount
        self.done += cost or NOTHING


@pytest.fixture
def config(checkpoint: Callable[..., Path]) -> CompareConfig:
    return CompareConfig(
        model=str(checkpoint()), methods=("pi", "dynamic-ntk"), factor=4, lengths=(128, 200, 512), documents=3, trials=2
    )


@pytest.mark.process
def test_tokens_are_those_that_are_computed(
    config: CompareConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as context:
        context.setattr(setup, "load_model", lambda *_: pytest.fail("weights were loaded"))
        estimate = estimate_comparison(config, tmp_path / "run")
    assert not (tmp_path / "run").exists()
    counter = Counter()
    compare_methods(config, tmp_path / "run", counter)
    [model] = estimate["models"]
    assert sum(kind["tokens"] for kind in model["kinds"]) == counter.tokens
    assert counter.done == counter.total == counter.planned != NOTHING
    assert counter.total.total == pytest.approx(sum(kind["flops"] for kind in model["kinds"]))
    after = estimate_comparison(config, tmp_path / "run")["models"][0]
    assert after["finished"] == after["cells"] == model["cells"] and after["time"]["seconds"] == 0


def test_operations_are_those_that_torch_counts(config: CompareConfig) -> None:
    """Torch counts all of attention's square; half of it is what causality leaves."""
    from torch.utils.flop_counter import FlopCounterMode

    from ropectl.evaluate.setup import Setup

    model_setup = Setup.of(config.model_copy(update={"attention": "eager"}))  # what torch can count
    length, cost = 256, ForwardCost.of(model_setup.source.config)
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        model_setup.model(input_ids=torch.zeros(1, length, dtype=torch.long), use_cache=False)
    wanted = cost.of_pass(ForwardPass(1, length, scored=length))
    assert counter.get_total_flops() == pytest.approx(wanted.total + cost.attention * length**2, rel=0.01)


@pytest.mark.process
def test_what_a_person_reads(ropectl: Run, config: CompareConfig, tmp_path: Path) -> None:
    arguments = ["compare-methods", config.model, "-m", "pi", "--factor", "4", "--documents", "3", "--dry-run"]
    code, out, _ = ropectl(*arguments, "-o", tmp_path / "run")
    assert (
        code == 0
        and "Memory about" in out
        and "without loading the weights" in " ".join(out.split())
        and all(len(line) <= 80 for line in out.splitlines())
    )
    assert not (tmp_path / "run").exists()
    code, out, _ = ropectl(*arguments, "--format", "json")
    record: dict[str, Any] = json.loads(out)
    [model] = record["models"]
    assert code == 0 and record["estimate"] and model["time"]["seconds"] > 0 and model["memory"]["total"] > 0
    assert {kind["kind"] for kind in model["kinds"]} == {"prefix", "tail", "passkey"}


@pytest.mark.process
def test_it_counts_what_the_same_command_would_measure(config: CompareConfig, tmp_path: Path) -> None:
    few = config.model_copy(update={"methods": ("pi",), "passkey": False, "lengths": (128,)})
    compare_methods(few, tmp_path / "run")
    path = next(iter((tmp_path / "run" / "cells").glob("*.json")))
    record = json.loads(path.read_text())
    del record["result"]
    path.write_text(json.dumps({**record, "error": {"type": "X", "message": "x", "length": 128}}))
    finished = [
        estimate_comparison(few, tmp_path / "run", retry_failed=retry)["models"][0]["finished"]
        for retry in (False, True)
    ]
    assert finished == [4, 3]


def test_a_training_file_that_cannot_be_is_found(config: CompareConfig, tmp_path: Path) -> None:
    file = tmp_path / "recipe.yaml"
    file.write_text("early_stop: 2\n")
    with pytest.raises(ConfigError, match="early-stop"):
        estimate_comparison(config.model_copy(update={"finetune": file}))
