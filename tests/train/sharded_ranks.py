"""What each rank of the sharded tests does: sequences shared by two, parameters sharded or replicated over all four."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

import ropectl
from ropectl.hf.config.geometry import describe_rope
from ropectl.hf.model.rotary import verify_rope
from ropectl.train.context_parallel.group import ContextParallel
from tests.conftest import make_model
from tests.tolerances import SHARED_SEQUENCE, SHARED_SEQUENCE_BFLOAT16
from tests.train.context_parallel_ranks import (
    Outcome,
    assert_same,
    check_groups,
    compare,
    make_batch,
    take_gradients,
    whole,
    world,
)

METHOD = "yarn:factor=4"
TIED = {"tie_word_embeddings": True}
CHUNK = 5


class CausalLoss(nn.Module):
    """The shape of the training loop's module: decoder and head called one by one, the loss in checkpointed chunks.

    It has no ``get_input_embeddings``: embeddings, final norm and head then stay in the unit of this module, which is
    whole from the begin of its forward to the end of its backward.
    """

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    @property
    def _no_split_modules(self) -> Any:
        return self.model._no_split_modules

    def tie_weights(self) -> None:
        self.model.tie_weights()

    def forward(self, targets: Tensor, **inputs: Tensor) -> Tensor:
        hidden = self.model.get_decoder()(**inputs, use_cache=False).last_hidden_state
        pairs = zip(hidden.split(CHUNK, 1), targets.split(CHUNK, 1), strict=True)
        return sum((checkpoint(self._chunk, *pair, use_reentrant=False) for pair in pairs), torch.zeros(()))

    def _chunk(self, hidden: Tensor, targets: Tensor) -> Tensor:
        logits = self.model.get_output_embeddings()(hidden).float()
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="sum")


class Setting:
    """Two replicas of two ranks, a batch for each replica, and how many targets there are in all."""

    def __init__(self) -> None:
        parallel = ContextParallel.of(2)
        assert parallel is not None
        self.parallel = parallel
        self.batches = [make_batch(65, 300, seed=seed) for seed in range(parallel.data_size)]
        self.batches[1]["targets"][:, :50] = -100  # so that a mean of means would be wrong
        self.total = sum(int((batch["targets"] != -100).sum()) for batch in self.batches)

    def of_one_process(self, module: CausalLoss) -> Outcome:
        loss = sum(module(**whole(batch)) for batch in self.batches) / self.total
        loss.backward()
        return loss.detach(), take_gradients(module)

    def of_all(self, wrapped: Any, module: CausalLoss) -> Outcome:
        """One step as the loop makes it: the mean over ranks that DDP and FSDP take is undone by the scale."""
        with self.parallel.use(module.model):
            mine = self.parallel.shard(self.batches[self.parallel.data_rank])
            loss = wrapped(**mine) * dist.get_world_size() / self.total
            loss.backward()
        mean = loss.detach() / dist.get_world_size()
        dist.all_reduce(mean)
        return mean, take_gradients(module)


def build(**variant: Any) -> CausalLoss:
    model = make_model(**variant).train()
    ropectl.apply_rope(model, ropectl.parse_method(METHOD))
    return CausalLoss(model)


def shard_by_hand(module: CausalLoss) -> CausalLoss:
    for layer in module.model.model.layers:
        fully_shard(layer)
    return fully_shard(module, reshard_after_forward=False)


def shard_by_accelerate(module: CausalLoss, mixed_precision: str = "no", **options: Any) -> CausalLoss:
    """What ``accelerator.prepare`` does to a model under FSDP2, which accelerate itself leaves out on a CPU."""
    from accelerate import FullyShardedDataParallelPlugin
    from accelerate.utils.fsdp_utils import fsdp2_prepare_model

    plugin = FullyShardedDataParallelPlugin(fsdp_version=2, auto_wrap_policy="transformer_based_wrap", **options)
    accelerator = SimpleNamespace(
        state=SimpleNamespace(fsdp_plugin=plugin),
        mixed_precision=mixed_precision,
        is_main_process=dist.get_rank() == 0,
        device=torch.device("cpu"),
    )
    return fsdp2_prepare_model(accelerator, module)


def check_gradients(setting: Setting) -> None:
    for variant, checkpointing in (({}, False), (TIED, True)):
        expected = setting.of_one_process(build(**variant))
        wraps = {
            "by hand": shard_by_hand,
            "accelerate": lambda module: shard_by_accelerate(module, cpu_ram_efficient_loading=False),
            "accelerate, meta": lambda module: shard_by_accelerate(module, cpu_ram_efficient_loading=True),
            "DDP": DistributedDataParallel,
        }
        for name, wrap in wraps.items():
            module = build(**variant)
            if checkpointing:
                module.model.activation_checkpointing_enable()
            wrapped = wrap(module)
            case = f"{name}, {variant}, checkpointing={checkpointing}"
            assert_same(setting.of_all(wrapped, module), expected, case)
            _check_rope(module)
            units = [child for child in module.modules() if type(child).__name__.startswith("FSDP")]
            assert name == "DDP" or len(units) == 3, f"{case}: two layers and the root, not {len(units)}"
            head, embeddings = module.model.get_output_embeddings(), module.model.get_input_embeddings()
            assert (head.weight is embeddings.weight) == bool(variant), f"{case}: tied as before"


def _check_rope(module: CausalLoss) -> None:
    rope = describe_rope(module.model.config.to_dict())
    verify_rope(module.model, rope.method.frequencies(rope.geometry))
    assert module.model.model.rotary_emb.inv_freq.dtype == torch.float32


def check_half_precision(setting: Setting) -> None:
    """FSDP in bfloat16: the rotary table and the loss stay float32, if the policy does not name an output type."""
    expected = setting.of_one_process(build())
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    module = shard_by_accelerate(build(), "bf16", mixed_precision_policy=policy, cpu_ram_efficient_loading=False)
    loss, gradients = setting.of_all(module, module)
    assert loss.dtype == torch.float32
    assert {gradient.dtype for gradient in gradients.values()} == {torch.float32}
    assert_same((loss, gradients), expected, "bfloat16", SHARED_SEQUENCE_BFLOAT16)
    _check_rope(module)


def check_evaluation_between_steps(setting: Setting) -> None:
    """Decoder and head outside the module's forward: after one forward of the module, and while it is unsharded."""
    ids = setting.batches[0]["input_ids"]
    for variant in ({}, TIED):
        plain, sharded = build(**variant), shard_by_hand(build(**variant))
        optimizers = [torch.optim.SGD(module.parameters(), lr=1e-2) for module in (plain, sharded)]
        mine = setting.parallel.shard(setting.batches[setting.parallel.data_rank])
        with torch.no_grad(), setting.parallel.use(sharded.model):
            sharded(**mine)  # the first forward decides what is the root; in inference mode it would spoil training
        for _ in range(2):
            sharded.unshard()
            ours, theirs = (_logits(module, ids) for module in (sharded, plain))
            sharded.reshard()
            difference = float((ours - theirs).abs().max() / theirs.abs().max())
            assert difference <= 10 * SHARED_SEQUENCE, f"{variant}: logits differ by {difference:.1e}"
            _step(setting, plain, sharded)
            for optimizer in optimizers:
                optimizer.step()
                optimizer.zero_grad()


@torch.inference_mode()
def _logits(module: CausalLoss, ids: Tensor) -> Tensor:
    hidden = module.model.get_decoder()(input_ids=ids, use_cache=False).last_hidden_state
    return module.model.get_output_embeddings()(hidden)


def _step(setting: Setting, plain: CausalLoss, sharded: CausalLoss) -> None:
    (sum(plain(**whole(batch)) for batch in setting.batches) / setting.total).backward()
    with setting.parallel.use(sharded.model):
        mine = setting.parallel.shard(setting.batches[setting.parallel.data_rank])
        (sharded(**mine) * dist.get_world_size() / setting.total).backward()


def main() -> None:
    check_groups()
    four = ContextParallel.of(4)
    assert four is not None
    compare(four, [("groups", METHOD)])
    setting = Setting()
    check_gradients(setting)
    check_half_precision(setting)
    check_evaluation_between_steps(setting)
    print("all is the same")


if __name__ == "__main__":
    with world():
        main()
