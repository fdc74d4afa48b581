"""A sequence that several processes share gives the loss and the gradients of one process, or is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, MistralConfig, Qwen2Config

import ropectl
from ropectl.errors import ConfigError, UnsupportedModelError
from ropectl.train.context_parallel.group import ContextParallel
from tests.conftest import make_model
from tests.distributed import run_ranks

HERE = Path(__file__).parent


def member(rank: int, size: int) -> ContextParallel:
    """A member of a group that does not run."""
    return ContextParallel(size, rank, group=None, data_rank=0, data_size=1)


@pytest.mark.process
def test_two_ranks_are_one_process() -> None:
    """24 combinations of heads, method, checkpointing, length and positions; half precision, dropout, adapter, undo.

    And families of every kind are computed exactly or refused.
    """
    outputs = run_ranks([HERE / "context_parallel_ranks.py"], 2)
    assert all("all is the same" in output for output in outputs)


@pytest.mark.slow
def test_every_family_is_computed_exactly_or_refused() -> None:
    """All causal types of the installed transformers; each run makes the same check of its own model."""
    outputs = run_ranks([HERE / "context_parallel_ranks.py", "census"], 2)
    assert all("all is the same" in output for output in outputs)


@pytest.mark.process
def test_four_ranks_are_one_process() -> None:
    """One group of four; two replicas of two under FSDP2, by hand and as accelerate prepares it, and under DDP."""
    outputs = run_ranks([HERE / "sharded_ranks.py"], 4)
    assert all("all is the same" in output for output in outputs)


@pytest.mark.parametrize("size", [2, 3, 4])
@pytest.mark.parametrize("length", [1, 48, 49, 65])
def test_parts_are_the_whole(size: int, length: int) -> None:
    """Every token is in one part, with its own target and position; each part has an early and a late chunk."""
    ids = torch.arange(2 * length).view(2, length) + 1
    targets, positions = ids + 1000, torch.arange(length).expand(2, -1) + 5
    batch = {"input_ids": ids, "targets": targets, "position_ids": positions}
    parts = [member(rank, size).shard(batch) for rank in range(size)]
    local = parts[0]["input_ids"].shape[1]
    assert local * size == length + -length % (2 * size)
    found: dict[int, tuple[int, int]] = {}
    for part in parts:
        assert {name: tensor.shape for name, tensor in part.items()} == dict.fromkeys(
            ("input_ids", "targets", "position_ids", "attention_mask"), (2, local)
        )
        assert part["attention_mask"].all()
        rows = zip(*(part[name].flatten().tolist() for name in ("input_ids", "targets", "position_ids")), strict=True)
        for token, target, position in rows:
            if target != -100:
                assert token not in found
                found[token] = (target, position)
    expected = zip(ids.flatten().tolist(), targets.flatten().tolist(), positions.flatten().tolist(), strict=True)
    assert found == {token: (target, position) for token, target, position in expected}


def test_work_is_balanced() -> None:
    """Rank r holds the chunks r and 2R-1-r; padding takes up the positions that follow."""
    parts = [member(rank, 2).shard({"input_ids": torch.ones(1, 7), "targets": torch.ones(1, 7)}) for rank in range(2)]
    assert parts[0]["position_ids"].tolist() == [[0, 1, 6, 7]]
    assert parts[1]["position_ids"].tolist() == [[2, 3, 4, 5]]
    assert parts[0]["targets"].tolist() == [[1, 1, 1, -100]]


def test_padding_at_the_end_is_accepted() -> None:
    ids = torch.ones(1, 4, dtype=torch.long)
    part = member(0, 2).shard({"input_ids": ids, "targets": ids, "attention_mask": torch.tensor([[1, 1, 1, 0]])})
    assert part["attention_mask"].tolist() == [[1, 1]]


@pytest.mark.parametrize(
    "extra",
    [
        {"position_ids": torch.tensor([[0, 1, 0, 1]])},
        {"position_ids": torch.tensor([[3, 4, 4, 5]])},
        {"attention_mask": torch.tensor([[0, 1, 1, 1]])},
        {"attention_mask": torch.ones(1, 1, 4, 4)},
    ],
    ids=["restart", "repeat", "left padding", "4D mask"],
)
def test_texts_that_are_kept_apart_are_refused(extra: dict[str, torch.Tensor]) -> None:
    ids = torch.ones(1, 4, dtype=torch.long)
    with pytest.raises(ConfigError, match="several texts that are kept apart"):
        member(0, 2).shard({"input_ids": ids, "targets": ids, **extra})


def test_needs_several_processes() -> None:
    assert ContextParallel.of(1) is None
    with pytest.raises(ConfigError, match=r"cp-size = 4 needs 4 processes(.|\n)*accelerate launch"):
        ContextParallel.of(4)


def dynamic() -> Any:
    return make_model(rope_parameters={"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0})


def longrope(long: float) -> Any:
    block = {"rope_type": "longrope", "rope_theta": 1e4, "factor": 4.0, "original_max_position_embeddings": 128}
    return make_model(rope_parameters={**block, "short_factor": [1.0] * 8, "long_factor": [long] * 8})


def family(config: Any, **changes: Any) -> Any:
    sizes = {"hidden_size": 64, "intermediate_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2}
    return AutoModelForCausalLM.from_config(config(vocab_size=64, num_hidden_layers=2, **sizes, **changes))


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (dynamic, "'dynamic' follows the length"),
        (lambda: longrope(2.0), "'longrope' follows the length"),
        (lambda: family(MistralConfig, sliding_window=8), "'mistral' with windows of 8 tokens"),
        (lambda: family(Qwen2Config, use_sliding_window=True, max_window_layers=1), "sliding_attention"),
    ],
)
def test_refused_before_any_forward(make: Callable[[], Any], reason: str) -> None:
    model = make()
    with pytest.raises(UnsupportedModelError, match=reason), member(0, 2).use(model):
        pass
    assert model.config._attn_implementation == "sdpa"


def test_a_window_that_no_config_names_is_refused_in_the_forward_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ropectl.train.context_parallel.group.check_config", lambda section: None)
    model = family(MistralConfig, sliding_window=8)
    ids = torch.ones(1, 4, dtype=torch.long)
    part = member(0, 2).shard({"input_ids": ids, "targets": ids})
    part.pop("targets")
    with member(0, 2).use(model), pytest.raises(UnsupportedModelError, match="no windows"):
        model(**part, use_cache=False)


def test_a_universal_or_frozen_table_is_accepted() -> None:
    """The universal form is called longrope too, and does not follow the length."""
    for make in (lambda: longrope(1.0), make_model):
        with member(0, 2).use(make()):
            pass
    model = make_model()
    ropectl.apply_rope(model, ropectl.parse_method("dynamic-ntk"), seq_len=512)
    with member(0, 2).use(model):
        pass
