"""The estimate against real models: what they hold, keep and compute. Seconds are made up."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
import torch
from accelerate.state import AcceleratorState
from torch import nn
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode
from transformers import LlamaForCausalLM

from ropectl import memory
from ropectl.errors import ConfigError, UnsupportedModelError
from ropectl.evaluate.cost import ForwardCost
from ropectl.hf.model.model_class import cut
from ropectl.hf.model_shape import ModelShape
from ropectl.timing.speed import Speed
from ropectl.train import trainer
from ropectl.train.engine.loss import CausalLoss
from ropectl.train.estimate import run_estimate
from ropectl.train.estimate.cost import Arithmetic, OptimizerTime, seconds_per_step
from ropectl.train.estimate.memory import (
    TrainingSetup,
    Weights,
    device_total,
    layer_activations,
    levers,
    memory_parts,
)
from ropectl.train.estimate.request import with_lora
from ropectl.train.estimate.skeleton import build, count_weights, held_dtype
from ropectl.train.finetuning import finetune
from ropectl.train.settings import FinetuneSettings
from ropectl.train.strategies import make_strategy
from scripts.tiny_models import tiny_config as family_config
from tests.conftest import tiny_config
from tests.tolerances import KEPT_BYTES
from tests.train.runs import write_text

TOKENS = 256
SIZES: dict[str, dict[str, Any]] = {
    "tiny": {"vocab_size": 64, "num_key_value_heads": 2},
    "middle": {
        "vocab_size": 64,
        "hidden_size": 256,
        "intermediate_size": 704,
        "num_hidden_layers": 5,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
    },
}
LORA = {"strategy": "lora"}
LORA_ALL = {**LORA, "lora_targets": "all", "lora_rank": 4, "train_norms": True, "train_embeddings": True}


def prepared(config: Any, dtype: torch.dtype = torch.float32, device: str = "cpu", **settings: Any) -> Any:
    return build(config, make_strategy(FinetuneSettings(**settings)), dtype, device)


def shape_of(config: Any) -> ModelShape:
    return ModelShape.of(config.to_dict())


def kept_bytes(model: Any, autocast: bool, chunk: int = 64) -> int:
    """Bytes that a forward pass really keeps for the backward pass, weights left out."""
    weights = {p.untyped_storage().data_ptr() for p in model.parameters()}
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        loss = CausalLoss(model, chunk)
    model.train()
    ids = torch.randint(0, model.config.vocab_size, (1, TOKENS))
    kept: dict[int, torch.Tensor] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        kept.setdefault(tensor.untyped_storage().data_ptr(), tensor)
        return tensor

    with (
        torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor),
        torch.autocast("cpu", torch.bfloat16, enabled=autocast),
    ):
        loss(ids, ids)
    return sum(tensor.untyped_storage().nbytes() for place, tensor in kept.items() if place not in weights)


@pytest.mark.process
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("settings", "dtype", "autocast"),
    [
        ({}, torch.float32, False),
        ({}, torch.float32, True),
        ({}, torch.bfloat16, False),
        (LORA, torch.float32, False),
        (LORA, torch.float32, True),
        (LORA, torch.bfloat16, True),
        (LORA_ALL, torch.float32, False),
        (LORA_ALL, torch.bfloat16, True),
        ({**LORA, "lora_dropout": 0.1}, torch.float32, False),
    ],
    ids=lambda value: "-".join(map(str, value.values())) or "full" if isinstance(value, dict) else str(value),
)
def test_activations_are_what_a_model_keeps(
    size: str, settings: dict[str, Any], dtype: torch.dtype, autocast: bool
) -> None:
    config = tiny_config(**SIZES[size])
    model, shape = prepared(config, dtype, **settings), shape_of(config)
    weights = count_weights(model, shape)
    setup = TrainingSetup("full", TOKENS, autocast=autocast)
    if settings:
        setup = with_lora(setup, FinetuneSettings(**settings))
    parts = memory_parts(shape, weights, setup)
    estimated = parts["activations"] + parts.get("half-precision copies", 0)
    assert kept_bytes(model, autocast) == pytest.approx(estimated, rel=KEPT_BYTES)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("settings", [{}, LORA], ids=["full", "lora"])
def test_with_activation_checkpointing_a_layer_keeps_its_input(size: str, settings: dict[str, Any]) -> None:
    config = tiny_config(**SIZES[size])
    model, shape = prepared(config, **settings), shape_of(config)
    weights = count_weights(model, shape)
    setup = TrainingSetup("full", TOKENS, checkpointing="on")
    if settings:
        setup = with_lora(setup, FinetuneSettings(**settings))
    model.activation_checkpointing_enable()
    rotary = 2 * shape.head_dim * 4 * TOKENS  # held by what computes a layer again, not by its graph
    kept = memory_parts(shape, weights, setup)["activations"] - layer_activations(shape, weights, setup)
    assert kept_bytes(model, autocast=False) + rotary == pytest.approx(kept, rel=KEPT_BYTES)


def allocated(function: Callable[[], Any]) -> int:
    """The most bytes that exist at once while something runs, above those before."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
        function()
    events = [event for event in recorded.profiler.kineto_results.events() if event.name() == "[memory]"]
    return max(accumulate(event.nbytes() for event in sorted(events, key=lambda event: event.start_ns())))


@pytest.mark.process
@pytest.mark.parametrize("checkpointing", ["off", "on"])
@pytest.mark.parametrize("settings", [{}, LORA], ids=["full", "lora"])
def test_a_pass_takes_no_more_than_estimated(settings: dict[str, Any], checkpointing: str) -> None:
    """Parts are not all at their largest at once in a single pass, but nearly."""
    config = tiny_config(**SIZES["middle"])
    model, shape = prepared(config, **settings), shape_of(config)
    setup = TrainingSetup("full", TOKENS, checkpointing=checkpointing, loss_chunk=64)
    if settings:
        setup = with_lora(setup, FinetuneSettings(**settings))
    loss = CausalLoss(model, 64)
    if checkpointing == "on":
        model.activation_checkpointing_enable()
    model.train()
    ids = torch.randint(0, 64, (1, TOKENS))
    parts = memory_parts(shape, count_weights(model, shape), setup)
    estimated = device_total(parts) - parts["weights"] - parts["optimizer"]
    peak = allocated(lambda: loss(ids, ids).backward())
    assert estimated / 1.7 < peak < estimated * (1 + KEPT_BYTES)


@pytest.mark.process
def test_eager_attention_keeps_its_scores() -> None:
    config = tiny_config(**SIZES["middle"], attn_implementation="eager")
    config._attn_implementation = "eager"
    model, shape = prepared(config), shape_of(config)
    weights = count_weights(model, shape)
    eager, fused = (
        memory_parts(shape, weights, TrainingSetup("full", TOKENS, eager=e))["activations"] for e in (True, False)
    )
    assert eager - fused == shape.num_layers * shape.num_heads * TOKENS**2 * 4
    assert kept_bytes(model, autocast=False) == pytest.approx(eager, rel=0.1)


def test_whole_logits_are_counted() -> None:
    """Log-probabilities are kept where there are no chunks, one of the three copies that exist at once."""
    config = tiny_config(vocab_size=4096, tie_word_embeddings=True)
    model, shape = prepared(config), shape_of(config)
    logits = kept_bytes(model, autocast=False, chunk=0) - kept_bytes(model, autocast=False, chunk=8)
    whole = memory_parts(shape, count_weights(model, shape), TrainingSetup("full", TOKENS))["logits"]
    assert whole == 3 * 4 * 4096 * TOKENS
    assert logits == pytest.approx(whole / 3, rel=KEPT_BYTES)
    assert (
        memory_parts(shape, count_weights(model, shape), TrainingSetup("full", TOKENS, loss_chunk=8))["logits"]
        == whole / 32
    )


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("settings", [{}, LORA, LORA_ALL], ids=["full", "lora", "lora-all"])
def test_counts_without_weights_are_those_of_a_real_model(settings: dict[str, Any], tied: bool) -> None:
    config = tiny_config(**SIZES["middle"] | {"tie_word_embeddings": tied})
    shape = shape_of(config)
    real = LlamaForCausalLM(config).to(torch.bfloat16)
    make_strategy(FinetuneSettings(**settings)).prepare(real)
    sketched = prepared(config, torch.bfloat16, "meta", **settings)
    assert all(p.is_meta for p in sketched.parameters())
    weights = count_weights(sketched, shape)
    trained = [p for p in real.parameters() if p.requires_grad]
    assert weights == count_weights(real, shape)
    assert weights.total == sum(p.numel() for p in real.parameters())
    assert weights.trained == sum(p.numel() for p in trained) == sum(weights.parts.values())
    assert weights.num_bytes == sum(p.untyped_storage().nbytes() for p in real.parameters())
    assert weights.trained_bytes == sum(p.untyped_storage().nbytes() for p in trained)
    assert weights.layer_bytes * shape.num_layers + weights.root_bytes == weights.num_bytes


def test_lora_matrices_by_their_shapes() -> None:
    config = tiny_config(**SIZES["middle"])
    weights = count_weights(prepared(config, device="meta", **LORA_ALL), shape_of(config))
    h, i, k, rank = 256, 704, 128, 4
    pairs = [(h, h), (h, k), (h, k), (h, h), (h, i), (h, i), (i, h)]
    assert weights.parts == {
        "LoRA matrices": 5 * rank * sum(a + b for a, b in pairs),
        "norms and biases": (2 * 5 + 1) * h,
        "embeddings": 64 * h,
    }


@pytest.mark.parametrize("family", ["mixtral", "qwen3_moe"])
def test_a_token_meets_some_experts(family: str) -> None:
    config = family_config(family)
    shape = shape_of(config)
    model = prepared(config)
    weights = count_weights(model, shape)
    experts = sum(p.numel() for name, p in model.named_parameters() if ".experts." in name)
    others = sum(p.numel() for name, p in model.named_parameters() if ".layers." in name) - experts
    assert experts > 0
    assert weights.layers == others + experts // 2  # 2 of 4


def test_arithmetic_is_three_and_four_forward_passes() -> None:
    layers, vocabulary, hidden, width, depth, length = 1000, 50, 10, 16, 4, 128
    forward = 2 * (layers + vocabulary * hidden) * length + 2 * depth * width * length**2
    pass_ = ForwardCost(layers, vocabulary * hidden, attention=2 * depth * width)
    full = Arithmetic(pass_, depth, 1.0, True, recomputes=False, chunked=False)
    assert full.cost(length).total == 3 * forward
    assert replace(full, recomputes=True, chunked=True).cost(length).total == 4 * forward
    frozen = replace(full, layers_trained=0.0, head_trained=False)
    assert full.cost(length).total - frozen.cost(length).total == 2 * (layers + vocabulary * hidden) * length


@pytest.mark.process
@pytest.mark.parametrize("checkpointing", ["off", "on"])
@pytest.mark.parametrize("chunk", [0, 64])
def test_arithmetic_of_matrices_is_what_torch_counts(chunk: int, checkpointing: str) -> None:
    config = tiny_config(**SIZES["middle"])
    model, shape = prepared(config), shape_of(config)
    weights = count_weights(model, shape)
    without_attention = ForwardCost(weights.layers, model.lm_head.weight.numel(), attention=0)
    arithmetic = Arithmetic(without_attention, shape.num_layers, 1.0, True, checkpointing == "on", chunk > 0)
    loss = CausalLoss(model, chunk)
    if checkpointing == "on":
        model.activation_checkpointing_enable()
    model.train()
    ids = torch.randint(0, 64, (1, TOKENS))
    with FlopCounterMode(display=False) as counter:
        loss(ids, ids).backward()
    counted = counter.get_flop_counts()["Global"]
    matrices = sum(count for op, count in counted.items() if "mm" in str(op))
    expected = arithmetic.cost(TOKENS).total  # with the norms, which multiply no matrices
    if checkpointing == "on":  # torch stops before a layer's last product, whose result nothing needs
        expected -= 2 * TOKENS * shape.num_layers * shape.hidden * shape.intermediate
    assert matrices == pytest.approx(expected, rel=0.01)


ARITHMETIC = Arithmetic(
    ForwardCost(6_000_000, 1_000_000, attention=2 * 32 * 512), 32, 1.0, True, recomputes=False, chunked=True
)


#: Seconds of an operation with weights, one of attention, one of the head, and of a pass.
RATES = (1e-12, 3e-12, 2e-12, 1e-3)
SPEED = Speed(lambda cost: cost.parts, [tuple(rate / 2 for rate in RATES)], RATES, [tuple(rate * 3 for rate in RATES)])


def expected(length: int, rows: int = 1) -> float:
    cost = ARITHMETIC.cost(length, rows)
    return 1e-12 * cost.weights + 3e-12 * cost.attention + 2e-12 * cost.head + 1e-3


def test_a_step_is_its_passes_and_its_optimizer() -> None:
    optimizer = OptimizerTime(0.2, [0.25, 0.3, 0.24], 1000).span(5000)
    assert (optimizer.low, optimizer.middle, optimizer.high) == pytest.approx((1.0, 1.25, 1.5))
    lengths = [1024, 128] * 3
    half = seconds_per_step(SPEED, optimizer, ARITHMETIC, lengths, micro_batch=1, micro_batches=8)
    passes = 8 * (expected(1024) + expected(128)) / 2
    assert half.middle == pytest.approx(passes + 1.25)
    assert (half.low, half.high) == pytest.approx((passes / 2 + 1.0, passes * 3 + 1.5))
    padded = seconds_per_step(SPEED, optimizer, ARITHMETIC, lengths, micro_batch=2, micro_batches=4)
    assert padded.middle == pytest.approx(4 * expected(1024, rows=2) + 1.25)
    shared = seconds_per_step(SPEED, optimizer, ARITHMETIC, lengths, micro_batch=1, micro_batches=8, cp_size=4)
    assert shared.middle == pytest.approx(passes / 4 + 1.25)


WEIGHTS = Weights(10_000, 10_000, {}, 8_000, 8_000, 40_000, 40_000, 9_000, 4_000, 8_000)
SHAPE = ModelShape(4, 64, 128, 4, 64, 32, 16, 1000)


def test_devices_share_weights_or_sequences() -> None:
    base = TrainingSetup("full", 1024, micro_batch=2, loss_chunk=16)
    alone = memory_parts(SHAPE, WEIGHTS, base)
    sharded = memory_parts(SHAPE, WEIGHTS, replace(base, ranks=4, sharded=True))
    for part in ("weights", "gradients", "optimizer"):
        assert sharded[part] * 4 == alone[part]
    assert sharded["gathered weights"] == 2 * 4_000 + 8_000
    assert alone["optimizer"] == 8 * 10_000
    assert memory_parts(SHAPE, WEIGHTS, replace(base, ranks=2))["exchange buffers"] == 40_000
    split = memory_parts(SHAPE, WEIGHTS, replace(base, ranks=4, sharded=True, cp_size=4))
    assert split["activations"] * 4 == alone["activations"]


def test_offloaded_activations_are_the_hosts() -> None:
    off, on, offload = (
        memory_parts(SHAPE, WEIGHTS, TrainingSetup("full", 1024, checkpointing=choice))
        for choice in ("off", "on", "offload")
    )
    inputs = 4 * 1024 * 64 * 4
    assert off["activations"] > on["activations"] == offload["activations"] + inputs
    assert offload["host_activations"] == inputs
    assert device_total(offload) == device_total(on) - inputs


def test_levers_are_those_that_are_left() -> None:
    setup = TrainingSetup("full", 4096, micro_batch=4)
    options = levers(
        setup, chunk=16, trained_length=512, can_pose=True, lora=with_lora(setup, FinetuneSettings(strategy="lora"))
    )
    assert list(options) == [
        "--activation-checkpointing on",
        "--loss-chunk 16",
        "--micro-batch 1",
        "--positions pose --seq-len 512",
        "--strategy lora",
        "--activation-checkpointing on --loss-chunk 16 --micro-batch 1 --positions pose --seq-len 512 --strategy lora",
    ]
    *_, last = options.values()
    assert (last.checkpointing, last.loss_chunk, last.micro_batch, last.seq_len, last.strategy) == (
        "on", 16, 1, 512, "lora",
    )  # fmt: skip
    totals = [device_total(memory_parts(SHAPE, WEIGHTS, changed)) for changed in options.values()]
    assert max(totals) < device_total(memory_parts(SHAPE, WEIGHTS, setup)) and min(totals) == totals[-1]
    small = TrainingSetup("lora", 512, checkpointing="on", loss_chunk=16)
    assert levers(small, chunk=16, trained_length=512, can_pose=True, lora=None) == {}


def test_free_memory_of_a_host_and_of_a_container(tmp_path: Path) -> None:
    meminfo, group = tmp_path / "meminfo", tmp_path / "group"
    group.mkdir()
    meminfo.write_text("MemTotal: 2048 kB\nMemAvailable:    1024 kB\n")
    assert memory.host_memory(meminfo, group) == 1024**2
    for name, content in {"max": "1000000", "current": "600000", "stat": "anon 5\ninactive_file 100000\n"}.items():
        (group / f"memory.{name}").write_text(content)
    assert memory.host_memory(meminfo, group) == 500_000
    (group / "memory.max").write_text("max\n")
    assert memory.host_memory(meminfo, group) == 1024**2
    assert memory.host_memory(tmp_path / "none", tmp_path / "none") == memory.host_memory(
        tmp_path / "x", tmp_path / "x"
    )


@pytest.mark.parametrize(
    ("dtype", "strategy", "device", "named", "expected"),
    [
        ("auto", "full", "cuda", "bfloat16", torch.float32),
        ("auto", "lora", "cuda", "torch.bfloat16", torch.bfloat16),
        ("auto", "lora", "cpu", "bfloat16", torch.float32),
        ("bfloat16", "full", "cpu", None, torch.bfloat16),
        ("auto", "lora", "cuda", None, torch.float32),
    ],
)
def test_the_type_that_weights_are_held_in(
    dtype: str, strategy: str, device: str, named: str | None, expected: torch.dtype
) -> None:
    assert held_dtype(dtype, strategy, device, {"dtype": named}) is expected


@pytest.mark.parametrize("family", ["llama", "gemma3_text", "mixtral", "olmo3", "qwen3"])
def test_models_can_be_cut_to_a_layer(family: str) -> None:
    for num_layers in (1, 2):
        model = prepared(cut(family_config(family), num_layers))
        assert any(isinstance(m, nn.ModuleList) and len(m) == num_layers for m in model.get_decoder().modules())
        loss = CausalLoss(model)(torch.ones(1, 8, dtype=torch.long), torch.ones(1, 8, dtype=torch.long))
        assert torch.isfinite(loss)


def test_what_a_strategy_cannot_train_is_refused() -> None:
    with pytest.raises(ConfigError, match="strategy = lora is not possible for BeamForCausalLM"):
        prepared(family_config("beam"), device="meta", strategy="lora")


@pytest.mark.parametrize("family", ["dory", "modernbert-decoder", "gemma3n_text", "qwen3_5"])
def test_layers_of_every_build_are_counted(family: str) -> None:
    """Layers in several lists, sizes in lists, a config that has the text model's inside."""
    config = family_config(family)
    model, shape = prepared(config, device="meta"), shape_of(config)
    weights = count_weights(model, shape)
    assert 0 < weights.layers <= weights.total - model.get_output_embeddings().weight.numel()
    assert weights.root_bytes > 0 and weights.layer_bytes > 0


def test_a_config_without_sizes_is_refused() -> None:
    with pytest.raises(UnsupportedModelError, match="num_hidden_layers"):
        ModelShape.of({"model_type": "llama", "hidden_size": 8, "num_attention_heads": 2, "vocab_size": 8})


@pytest.fixture(autouse=True)
def fresh_accelerate() -> None:
    """accelerate keeps the precision of the first run of a process."""
    AcceleratorState._reset_state(True)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The shortest calibration, no weights, an empty folder to stand in."""
    monkeypatch.setattr("ropectl.evaluate.short_passes.BUDGET", 0.0)

    def no_weights(*arguments: Any) -> None:
        raise AssertionError("weights were loaded")

    monkeypatch.setattr(trainer, "load_model", no_weights)
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")


def estimate(**settings: Any) -> dict[str, Any]:
    wanted = {"method": "yarn", "factor": 4, "steps": 6, "batch_size": 4, "dry_run": True, "device": "cpu", **settings}
    wanted["text"] = str(write_text(Path("..")))
    record = finetune(FinetuneSettings(**wanted)).record
    assert record is not None
    assert not list(Path().iterdir())
    return json.loads(json.dumps(record, allow_nan=False))


@pytest.mark.process
@pytest.mark.usefixtures("quick")
def test_a_dry_run_loads_and_writes_nothing() -> None:
    record = estimate(out=Path("tuned"), seq_len=600)
    assert record["parameters"]["total"] == record["parameters"]["trained"] == 3_426_560
    assert record["data"]["tokens"] == 6 * 4 * 600 == 6 * record["data"]["tokens_per_step"]
    assert record["flops"]["total"] == pytest.approx(6 * record["flops"]["per_step"])
    memory, time = record["memory"], record["time"]
    assert memory["total"] == sum(memory["parts"].values()) and memory["fits"]
    assert all(lever["total"] < memory["total"] and lever["fits"] for lever in memory["levers"])
    assert time["seconds"] == pytest.approx(6 * time["seconds_per_step"]) and time["seconds"] > 0
    assert 0 < time["seconds_low"] <= time["seconds"] <= time["seconds_high"] and isinstance(time["busy"], bool)
    layers = {each["layers"] for each in time["calibration"]["passes"]}
    assert layers == {1, 4}, "one layer, and all"
    assert time["tokens_per_second"] == pytest.approx(4 * 600 / time["seconds_per_step"])
    assert record["rough"] == []


@pytest.mark.process
@pytest.mark.usefixtures("quick")
def test_mixed_lengths_are_counted() -> None:
    record = estimate(short_fraction=0.5, steps=25)  # as many sequences as it takes for exact shares
    assert record["data"]["tokens"] == 50 * 2048 + 50 * 512


@pytest.mark.process
@pytest.mark.usefixtures("quick")
def test_what_does_not_fit_is_said_and_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_estimate, "free_memory", lambda device: 40 * 2**20)
    record = estimate(batch_size=8, micro_batch=8, loss_chunk=0)
    fits = {lever["flags"]: lever["fits"] for lever in record["memory"]["levers"]}
    assert record["memory"]["fits"] is False
    assert not fits["--micro-batch 1"] and fits[list(fits)[-1]]
    assert record["time"]["seconds"] > 0, "a few layers at the shortest length do"
    monkeypatch.setattr(run_estimate, "free_memory", lambda device: 2**20)
    AcceleratorState._reset_state(True)
    time = estimate(batch_size=8, micro_batch=8, loss_chunk=0)["time"]
    assert time["seconds"] is None and "memory is too small" in time["reason"]


@pytest.mark.process
@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(("family", "reason"), [("mixtral", "experts"), ("gemma3_text", "layers differ")])
def test_an_estimate_says_where_it_is_rough(family: str, reason: str, family_checkpoint: Callable[[str], Path]) -> None:
    record = estimate(model=str(family_checkpoint(family)), factor=2)
    assert reason in "; ".join(record["rough"])


@pytest.fixture
def family_checkpoint(tmp_path: Path) -> Callable[[str], Path]:
    """A folder with a config and a tokenizer, and no weights."""

    def save(family: str) -> Path:
        from transformers import AutoTokenizer

        from ropectl.builtin import TINY_MODEL_DIR

        folder = tmp_path / family
        config = family_config(family, vocab_size=1024, max_position_embeddings=128)
        config.save_pretrained(folder)
        AutoTokenizer.from_pretrained(TINY_MODEL_DIR).save_pretrained(folder)
        return folder

    return save


@pytest.mark.process
@pytest.mark.usefixtures("quick")
def test_the_command_prints_a_table_that_fits(ropectl: Callable[..., tuple[int, str, str]]) -> None:
    options = ["finetune", "-m", "yarn", "--factor", "4", "--steps", "3", "--device", "cpu", "--dry-run"]
    options += ["--seq-len", "600", "--text", str(write_text(Path("..")))]
    code, out, _ = ropectl(*options, "--micro-batch", "2", "--loss-chunk", "0")
    assert code == 0
    assert all(len(line) <= 80 for line in out.splitlines())
    for text in ("3,426,560", "It fits.", "--micro-batch 1", "s a step"):
        assert text in out
    AcceleratorState._reset_state(True)
    code, out, _ = ropectl(*options, "--format", "json")
    assert code == 0 and json.loads(out)["memory"]["fits"] is True
    assert not list(Path().iterdir())


def test_offloading_from_the_cpu_is_refused(ropectl: Callable[..., tuple[int, str, str]]) -> None:
    code, _, error = ropectl(
        *("finetune", "-m", "yarn", "--factor", "4", "--dry-run", "--device", "cpu"),
        *("--activation-checkpointing", "offload"),
    )
    assert code == 2 and "--activation-checkpointing on" in error
