"""What each rank of the distributed tests does: compares a shared sequence with one process on all of it.

python -m tests.train.context_parallel_ranks [census]
"""

from __future__ import annotations

import gc
import itertools
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn

import ropectl
from ropectl.errors import ConfigError, UnsupportedModelError
from ropectl.train.context_parallel import attention
from ropectl.train.context_parallel.group import ContextParallel
from tests.conftest import VOCABULARY, make_model
from tests.tolerances import SHARED_SEQUENCE, SHARED_SEQUENCE_BFLOAT16

#: Loss and the gradient of every parameter by name.
Outcome = tuple[Tensor, dict[str, Tensor]]

VARIANTS: dict[str, dict[str, Any]] = {
    "heads": {},
    "groups": {"num_key_value_heads": 2},
    "tied": {"num_key_value_heads": 1, "tie_word_embeddings": True},
}


@contextmanager
def world() -> Iterator[None]:
    """A gloo world that is taken down before the interpreter is."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    try:
        yield
    finally:
        gc.collect()
        dist.destroy_process_group()


def make_batch(length: int, jump: int = 0, rows: int = 2, seed: int = 1) -> dict[str, Tensor]:
    """Random tokens; some positions have no target. ``jump`` skips positions inside a chunk."""
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(1, VOCABULARY, (rows, length + 1), generator=generator)
    targets = tokens[:, 1:].clone()
    targets[0, length // 3 : length // 2] = -100
    batch = {"input_ids": tokens[:, :-1].contiguous(), "targets": targets}
    if jump:
        positions = torch.arange(length).expand(rows, -1).clone()
        positions[:, length * 5 // 8 + 3 :] += jump
        batch["position_ids"] = positions
    return batch


def whole(batch: dict[str, Tensor]) -> dict[str, Tensor]:
    """The batch for one process: without a mask transformers takes a jump for the border of a packed text."""
    return {**batch, "attention_mask": torch.ones_like(batch["input_ids"])}


def summed_loss(model: Any, batch: dict[str, Tensor]) -> Tensor:
    """The plain way: all logits at once."""
    inputs = {name: tensor for name, tensor in batch.items() if name != "targets"}
    logits = model(**inputs, use_cache=False).logits.float()
    return F.cross_entropy(logits.flatten(0, 1), batch["targets"].flatten(), reduction="sum")


def take_gradients(model: nn.Module) -> dict[str, Tensor]:
    """Takes the gradients off the parameters, whole where they are sharded."""
    taken = {}
    for name, parameter in model.named_parameters():
        gradient: Any = parameter.grad
        if gradient is not None:
            taken[name] = (gradient.full_tensor() if hasattr(gradient, "full_tensor") else gradient).clone()
    model.zero_grad(set_to_none=True)
    return taken


def of_one_process(model: Any, batch: dict[str, Tensor]) -> Outcome:
    loss = summed_loss(model, whole(batch))
    loss.backward()
    return loss.detach(), take_gradients(model)


def of_group(parallel: ContextParallel, model: Any, batch: dict[str, Tensor]) -> Outcome:
    """Summed over the group."""
    with parallel.use(model):
        loss = summed_loss(model, parallel.shard(batch))
        loss.backward()
    total, gradients = loss.detach(), take_gradients(model)
    for tensor in (total, *gradients.values()):
        dist.all_reduce(tensor, group=parallel.group)
    return total, gradients


def assert_same(ours: Outcome, theirs: Outcome, case: str, tolerance: float = SHARED_SEQUENCE) -> None:
    difference = float((ours[0] - theirs[0]).abs() / theirs[0].abs())
    assert difference <= tolerance, f"{case}: loss {float(ours[0])}, expected {float(theirs[0])}"
    assert ours[1].keys() == theirs[1].keys(), case
    assert theirs[1], case
    for name, expected in theirs[1].items():
        difference = float((ours[1][name] - expected).abs().max() / expected.abs().max())
        assert difference <= tolerance, f"{case}: gradient of {name} differs by {difference:.1e}"


def compare(parallel: ContextParallel, cases: Iterable[tuple[str, str]]) -> None:
    """Some models with a method, in every combination of checkpointing, length and positions."""
    for variant, method in cases:
        model = make_model(**VARIANTS[variant]).train()
        ropectl.apply_rope(model, ropectl.parse_method(method))
        for length, jump in itertools.product((64, 65), (0, 300)):
            batch = make_batch(length, jump)
            expected = of_one_process(model, batch)
            for checkpointing in (False, True):
                if checkpointing:
                    model.activation_checkpointing_enable()
                case = f"{variant}, {method}, checkpointing={checkpointing}, T={length}, jump={jump}"
                assert_same(of_group(parallel, model, batch), expected, case)
                model.activation_checkpointing_disable()


def compare_half_precision(parallel: ContextParallel) -> None:
    """Autocast, whose rules for attention the kernels of a shared sequence do not pass, and a model in bfloat16."""
    batch = make_batch(65, 300)
    expected = of_one_process(make_model(num_key_value_heads=2).train(), batch)
    model = make_model(num_key_value_heads=2).train()
    attend, seen = attention._lower_right, set()

    def recording(query: Tensor, key: Tensor, value: Tensor, *rest: Any) -> Tensor:
        seen.update((query.dtype, key.dtype, value.dtype))
        return attend(query, key, value, *rest)

    with torch.autocast("cpu", torch.bfloat16), mock.patch.object(attention, "_lower_right", recording):
        assert_same(of_group(parallel, model, batch), expected, "autocast", SHARED_SEQUENCE_BFLOAT16)
    assert seen == {torch.bfloat16}
    half = make_model(num_key_value_heads=2).bfloat16().train()
    ropectl.apply_rope(half, ropectl.parse_method("none"))  # the cast rounded its frequencies
    loss, gradients = of_group(parallel, half, batch)
    assert {gradient.dtype for gradient in gradients.values()} == {torch.bfloat16}
    assert_same((loss, gradients), expected, "bfloat16", SHARED_SEQUENCE_BFLOAT16)


def compare_dropout(parallel: ContextParallel) -> None:
    """Weights are dropped in training, and the same ones when a layer is computed again."""
    model, batch = make_model(attention_dropout=0.5).train(), make_batch(64)
    without = of_one_process(model.eval(), batch)[0]
    outcomes = []
    for checkpointing in (False, True):
        if checkpointing:
            model.activation_checkpointing_enable()
        torch.manual_seed(7)
        outcomes.append(of_group(parallel, model.train(), batch))
    assert abs(outcomes[0][0] - without) > 1e-2 * without
    assert_same(outcomes[1], outcomes[0], "dropout")
    assert_same(of_group(parallel, model.eval(), batch), of_one_process(model, batch), "no dropout in evaluation")


def compare_adapter(parallel: ContextParallel) -> None:
    from peft import LoraConfig, get_peft_model

    torch.manual_seed(0)
    config = LoraConfig(r=4, target_modules=["q_proj", "v_proj"], init_lora_weights=False)
    model = get_peft_model(make_model(), config).train()
    batch = make_batch(65)
    assert_same(of_group(parallel, model, batch), of_one_process(model, batch), "adapter")


def check_undo(parallel: ContextParallel) -> None:
    """After, and after an error inside, the model is as it was; what is saved meanwhile does not name the group."""
    model = make_model()
    batch = whole(make_batch(64))
    batch.pop("targets")
    before = model(**batch).logits
    try:
        with parallel.use(model):
            assert model.config._attn_implementation == parallel.name
            assert "ropectl" not in model.config.to_json_string()
            raise KeyError
    except KeyError:
        assert model.config._attn_implementation == "sdpa"
    assert torch.equal(model(**batch).logits, before)


def check_refusals(parallel: ContextParallel) -> None:
    """What only a forward pass shows."""
    batch = parallel.shard(make_batch(64, 300))
    batch.pop("targets")
    no_mask = {name: tensor for name, tensor in batch.items() if name != "attention_mask"}
    model = make_model()
    with parallel.use(model):
        _assert_refused(lambda: model(**no_mask, use_cache=False), "packed")
        prefix = model(**batch, use_cache=True).cache
        _assert_refused(lambda: model(**batch, cache=prefix), "a cache")
        for name in ("sliding_window", "s_aux", "softcap", "position_bias"):
            _assert_refused(lambda name=name: model(**batch, use_cache=False, **{name: 8}), "which is not possible")
    _assert_refused(lambda: parallel.verify(_with_mixing_layer()), "mix tokens by more than attention")


def _with_mixing_layer() -> Any:
    """A model in which every token adds the one before it, outside attention."""
    model = make_model()
    model.model.layers[0].mlp.register_forward_hook(lambda module, inputs, output: output + output.roll(1, dims=1))
    return model


def _assert_refused(call: Callable[[], Any], part: str) -> None:
    try:
        call()
    except UnsupportedModelError as error:
        assert part in str(error), error
    else:
        raise AssertionError(f"not refused: {part}")


def check_groups() -> None:
    """Consecutive ranks share; every other division is refused on all ranks."""
    rank, size = dist.get_rank(), dist.get_world_size()
    assert ContextParallel.of(1) is None
    try:
        ContextParallel.of(3)
    except ConfigError as error:
        assert "cp-size = 3" in str(error)
    else:
        raise AssertionError("not refused: 3")
    pair = ContextParallel.of(2)
    assert pair is not None
    assert (pair.rank, pair.data_rank, pair.data_size) == (rank % 2, rank // 2, size // 2)
    members = [None, None]
    dist.all_gather_object(members, rank, group=pair.group)
    assert members == [rank // 2 * 2, rank // 2 * 2 + 1]


#: Families of every kind that is computed, and of every kind that is refused.
EXACT = {"qwen2", "qwen3", "phi3", "olmo2", "granite", "mixtral", "deepseek_v3", "smollm3"}
REFUSED = {"gemma3_text", "gpt_oss", "falcon_h1", "qwen3_next", "lfm2_moe", "llama4_text"}


def check_families(parallel: ContextParallel, model_types: Iterable[str]) -> None:
    """Every causal type that has a rotary table is computed exactly, or refused with a reason."""
    from scripts.tiny_models import tiny_model

    warnings.simplefilter("ignore")
    exact, refused = set(), set()
    for model_type in model_types:
        try:
            parallel.verify(tiny_model(model_type))
            exact.add(model_type)
        except UnsupportedModelError:
            refused.add(model_type)
    assert exact >= EXACT and refused >= REFUSED, f"exact: {sorted(exact)}, refused: {sorted(refused)}"


def main() -> None:
    parallel = ContextParallel.of(2)
    assert parallel is not None
    if "census" in sys.argv:
        from tests.hf.test_families import BUILT

        check_families(parallel, BUILT)
        print("all is the same")
        return
    compare(parallel, [("heads", "none"), ("groups", "yarn:factor=4"), ("tied", "yarn:factor=4")])
    compare_half_precision(parallel)
    compare_dropout(parallel)
    compare_adapter(parallel)
    check_undo(parallel)
    check_refusals(parallel)
    check_families(parallel, sorted(EXACT | REFUSED))
    print("all is the same")


if __name__ == "__main__":
    with world():
        main()
