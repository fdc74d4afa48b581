"""What each rank of ``test_context_parallel.py`` does: compares a shared sequence with one process on all of it."""

from __future__ import annotations

import gc
import itertools
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor

import ropectl
from ropectl.train.context_parallel import ContextParallel
from tests.conftest import VOCABULARY, make_model
from tests.tolerances import SHARED_SEQUENCE

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
    """Random tokens; some positions have no target. ``jump`` skips positions in the middle of a later chunk."""
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(1, VOCABULARY, (rows, length + 1), generator=generator)
    targets = tokens[:, 1:].clone()
    targets[0, length // 3 : length // 2] = -100
    batch = {"input_ids": tokens[:, :-1].contiguous(), "targets": targets}
    if jump:
        positions = torch.arange(length).expand(rows, -1).clone()
        positions[:, length * 5 // 8 :] += jump
        batch["position_ids"] = positions
    return batch


def summed_loss(model: Any, batch: dict[str, Tensor]) -> Tensor:
    """The plain way: all logits at once."""
    inputs = {name: tensor for name, tensor in batch.items() if name != "targets"}
    logits = model(**inputs, use_cache=False).logits
    return F.cross_entropy(logits.flatten(0, 1), batch["targets"].flatten(), reduction="sum")


def gradients(model: Any, total: Tensor) -> dict[str, Tensor]:
    """Runs backward and takes the gradients off the parameters."""
    total.backward()
    taken = {name: parameter.grad for name, parameter in model.named_parameters()}
    model.zero_grad(set_to_none=True)
    return taken


def of_one_process(model: Any, batch: dict[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
    # A mask of ones: without it transformers takes a jump of the positions for the border of a packed text.
    loss = summed_loss(model, {**batch, "attention_mask": torch.ones_like(batch["input_ids"])})
    return loss.detach(), gradients(model, loss)


def of_group(parallel: ContextParallel, model: Any, batch: dict[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
    """Loss and gradients, summed over the group."""
    with parallel.use(model):
        loss = summed_loss(model, parallel.shard(batch))
        local = gradients(model, loss)
    total = loss.detach()
    for tensor in (total, *local.values()):
        dist.all_reduce(tensor, group=parallel.group)
    return total, local


def assert_same(ours: tuple[Tensor, dict[str, Tensor]], theirs: tuple[Tensor, dict[str, Tensor]], case: str) -> None:
    torch.testing.assert_close(ours[0], theirs[0], rtol=SHARED_SEQUENCE, atol=0, msg=lambda text: f"{case}: {text}")
    assert ours[1].keys() == theirs[1].keys()
    for name, expected in theirs[1].items():
        difference = (ours[1][name] - expected).abs().max() / expected.abs().max()
        assert difference <= SHARED_SEQUENCE, f"{case}: gradient of {name} differs by {difference:.1e}"


def compare(parallel: ContextParallel) -> int:
    """Every combination of model, method, length, positions and checkpointing."""
    cases = itertools.product(VARIANTS, (None, "yarn:factor=4"), (False, True), (64, 65), (0, 300))
    count, models = 0, {}
    for variant, method, checkpointing, length, jump in cases:
        case = f"{variant}, {method}, checkpointing={checkpointing}, T={length}, jump={jump}"
        if (variant, method) not in models:
            models = {(variant, method): make_model(**VARIANTS[variant]).train()}
            if method:
                ropectl.apply_rope(models[variant, method], ropectl.parse_method(method))
        model = models[variant, method]
        batch = make_batch(length, jump)
        expected = of_one_process(model, batch)
        if checkpointing:
            model.activation_checkpointing_enable()
        assert_same(of_group(parallel, model, batch), expected, case)
        model.activation_checkpointing_disable()
        count += 1
    return count


def main() -> None:
    with world():
        parallel = ContextParallel.of(dist.get_world_size())
        assert parallel is not None
        print("cases:", compare(parallel))


if __name__ == "__main__":
    globals()[sys.argv[1] if len(sys.argv) > 1 else "main"]()
