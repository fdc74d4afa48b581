"""Turns a request into what the estimate needs: a model that can be built without its weights, and a setup of sizes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ropectl.hf.model_shape import ModelShape
from ropectl.train.engine.accelerator import is_sharded
from ropectl.train.estimate.memory import TrainingSetup, Weights
from ropectl.train.estimate.skeleton import build, held_dtype
from ropectl.train.settings import FinetuneSettings
from ropectl.train.strategies.strategy import Strategy
from ropectl.train.task import Task

#: Relative difference to the weights of a Llama of the same sizes above which an estimate is called rough.
_LIKE_LLAMA = 0.05


@dataclass
class Sketch:
    """The model of a task, which can be built without its weights.

    Attributes:
        task: What was asked for.
        accelerator: The Accelerator.
        config: The model's transformers config.
    """

    task: Task
    accelerator: Any
    config: Any

    def __post_init__(self) -> None:
        if self.task.settings.attention:
            self.config._attn_implementation = self.task.settings.attention
        self.shape = ModelShape.of(self.task.source.config)

    def build(self, config: Any, strategy: Strategy, device: Any) -> Any:
        """Returns a model with random weights; on ``meta`` it has none."""
        settings = self.task.settings
        loads_on = "cpu" if is_sharded(self.accelerator) else self.accelerator.device.type
        dtype = held_dtype(settings.dtype, strategy.settings.strategy, loads_on, self.task.source.config)
        remote = settings.trust_remote_code and "auto_map" in self.task.source.config
        return build(config, strategy, dtype, device, remote)


def make_setup(task: Task, accelerator: Any, model: Any) -> TrainingSetup:
    """Returns what memory depends on, except the loss chunk, which is known only later."""
    attention = getattr(model.config.get_text_config(decoder=True), "_attn_implementation", None)
    settings = task.settings
    base = TrainingSetup(
        strategy=settings.strategy,
        seq_len=task.seq_len,
        micro_batch=min(settings.micro_batch, settings.batch_size),
        checkpointing=settings.activation_checkpointing,
        autocast=accelerator.mixed_precision in ("bf16", "fp16"),
        eager=attention == "eager",
        ranks=accelerator.num_processes,
        sharded=is_sharded(accelerator),
        cp_size=settings.cp_size,
    )
    return with_lora(base, settings) if settings.strategy == "lora" else base


def with_lora(setup: TrainingSetup, settings: FinetuneSettings) -> TrainingSetup:
    """Returns a setup in which LoRA matrices are trained."""
    return replace(
        setup,
        strategy="lora",
        trains_norms=settings.train_norms,
        lora_rank=settings.lora_rank,
        lora_all=settings.lora_targets == "all",
        lora_dropout=settings.lora_dropout > 0,
    )


def rough_reasons(shape: ModelShape, weights: Weights, settings: FinetuneSettings) -> list[str]:
    """Returns why memory and time are less certain than for a Llama."""
    reasons = []
    if len(shape.layer_types) > 1:
        reasons.append(f"layers differ ({', '.join(shape.layer_types)})")
    if shape.active_experts < 1:
        reasons.append("each token meets some experts only")
    adapters = weights.parts.get("LoRA matrices", 0)
    llama = shape.num_layers * shape.layer_parameters
    if abs(weights.layers - adapters - llama) > _LIKE_LLAMA * llama:
        reasons.append("layers are not built like Llama's")
    if settings.packing == "isolated":
        reasons.append("a mask keeps documents apart")
    return reasons
