"""What the engine arranges for GPUs that the tests lack, as far as it can be seen without them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from accelerate import FullyShardedDataParallelPlugin
from accelerate.state import AcceleratorState, DistributedType, PartialState

from ropectl.errors import ConfigError
from ropectl.train.checks.first_loss import _attention_of_any_device
from ropectl.train.context_parallel.sharing import check_shared
from ropectl.train.engine.accelerator import make_accelerator
from ropectl.train.engine.engine import Engine, _keep_loss_exact, begin, make_optimizer
from ropectl.train.run_state.run_folder import TrainingFolder
from ropectl.train.settings import FinetuneSettings
from tests.conftest import make_model

IDS = torch.arange(3, 43).unsqueeze(0)


def test_the_first_state_is_that_of_adamw() -> None:
    """A state that was made before the first step changes nothing, and holds what AdamW's own would."""
    results = []
    for begun in (False, True):
        model = make_model()
        optimizer = make_optimizer(model, FinetuneSettings(learning_rate=1e-2, weight_decay=0.1))
        if begun:
            begin(optimizer)
        for _ in range(3):
            model(input_ids=IDS, labels=IDS).loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        results.append((model.state_dict(), optimizer.state_dict()))
    (left, one), (right, other) = results
    assert all(torch.equal(left[name], right[name]) for name in left)
    assert one["param_groups"] == other["param_groups"] and one["state"].keys() == other["state"].keys()
    for index, state in one["state"].items():
        assert state.keys() == other["state"][index].keys()
        assert all(torch.equal(value, other["state"][index][name]) for name, value in state.items())


@pytest.mark.parametrize(("precision", "dtype"), [("bf16", torch.bfloat16), ("fp16", torch.float16)])
def test_a_sharded_loss_stays_float32(precision: str, dtype: torch.dtype) -> None:
    """In float16 the summed loss of 8192 tokens would not even be finite."""
    plugin: Any = FullyShardedDataParallelPlugin(fsdp_version=2)
    plugin.set_mixed_precision(precision)
    assert plugin.mixed_precision_policy.output_dtype == dtype, "what accelerate would do"
    _keep_loss_exact(SimpleNamespace(state=SimpleNamespace(fsdp_plugin=plugin), mixed_precision=precision))
    policy = plugin.mixed_precision_policy
    assert (policy.param_dtype, policy.reduce_dtype, policy.output_dtype) == (dtype, torch.float32, None)


def test_a_second_run_of_a_process_finds_its_engine_anew() -> None:
    """With another precision, after one that was sharded: what accelerate then remembers is no engine to start from."""
    settings = FinetuneSettings(device="cpu", precision="fp32")
    try:
        make_accelerator(settings)
        for shared in (PartialState, AcceleratorState):
            shared._shared_state["distributed_type"] = DistributedType.FSDP
        again = make_accelerator(settings.model_copy(update={"precision": "bf16"}))
        assert (again.distributed_type, again.mixed_precision) == (DistributedType.NO, "bf16")
    finally:
        AcceleratorState._reset_state(reset_partial_state=True)


@pytest.mark.parametrize("others", [0, 3])
def test_a_disk_that_not_all_machines_share(tmp_path: Path, others: int) -> None:
    def add_others(tensor: torch.Tensor, reduction: str) -> torch.Tensor:
        assert reduction == "sum"
        return tensor + others

    accelerator = SimpleNamespace(device=torch.device("cpu"), num_processes=4, reduce=add_others)
    folder = TrainingFolder(tmp_path / "out")
    folder.begin({"steps": 1})
    if others == 3:
        check_shared(folder, accelerator)
        return
    with pytest.raises(ConfigError, match=r"1 of 4 processes see .*out\.run"):
        check_shared(folder, accelerator)


def test_another_attention_stands_in_for_one_that_needs_a_gpu() -> None:
    set_to: list[str] = []
    config = SimpleNamespace(_attn_implementation="flash_attention_2")
    with _attention_of_any_device(SimpleNamespace(config=config, set_attn_implementation=set_to.append)):
        assert set_to == ["sdpa"]
    assert set_to == ["sdpa", "flash_attention_2"]
    model = make_model()
    before = model.config._attn_implementation
    with _attention_of_any_device(model):
        assert model.config._attn_implementation == before


def test_ranks_decide_by_the_numbers_of_the_main_one() -> None:
    """Two ranks whose validations differ in the last digit must not disagree on which weights are the best."""
    measured = {True: (0.1, -7.612345678901234), False: (0.1, -7.612345678901235)}
    sent: list[torch.Tensor] = []

    def received(is_main: bool) -> list[float]:
        def reduce(tensor: torch.Tensor, reduction: str) -> torch.Tensor:
            sent.append(tensor)
            return torch.stack(sent).sum(dim=0)

        accelerator: Any = SimpleNamespace(is_main_process=is_main, device=torch.device("cpu"), reduce=reduce)
        return Engine(accelerator, None, None).of_main(*measured[is_main])

    assert received(True) == list(measured[True])
    assert received(False) == list(measured[True])
