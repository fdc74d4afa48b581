"""A model and its optimizer on Accelerate: precision, wrapping, collectives, and saved states."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ropectl.errors import ConfigError
from ropectl.train.engine.accelerator import is_sharded
from ropectl.train.engine.loss import CausalLoss
from ropectl.train.settings import FinetuneSettings
from ropectl.train.strategies.strategy import trained_parameters

_WEIGHTS = "weights.safetensors"


@dataclass
class Engine:
    """A model, its optimizer, and the devices they live on.

    Attributes:
        accelerator: The Accelerator.
        loss: The wrapped :class:`CausalLoss`.
        optimizer: The wrapped optimizer.
    """

    accelerator: Any
    loss: Any
    optimizer: Any

    @classmethod
    def prepare(cls, accelerator: Any, loss: CausalLoss, settings: FinetuneSettings) -> Engine:
        """Returns the prepared engine."""
        _keep_loss_exact(accelerator)
        wrapped, optimizer = accelerator.prepare(loss, make_optimizer(loss, settings))
        engine = cls(accelerator, wrapped, optimizer)
        begin(optimizer)
        accelerator.register_save_state_pre_hook(engine._write_weights)
        accelerator.register_load_state_pre_hook(engine._read_weights)
        return engine

    @property
    def model(self) -> Any:
        """The causal language model inside all wrappers."""
        return self.accelerator.unwrap_model(self.loss).model

    def sum(self, *numbers: float) -> list[float]:
        """Returns the sums of numbers over all ranks."""
        device = self.accelerator.device
        dtype = torch.float32 if device.type == "mps" else torch.float64  # mps has no float64
        tensor = torch.tensor(numbers, dtype=dtype, device=device)
        result: list[float] = self.accelerator.reduce(tensor, reduction="sum").tolist()
        return result

    def of_main(self, *numbers: float) -> list[float]:
        """Returns the main process's numbers on every rank, so that all decide by the same digits."""
        return self.sum(*(numbers if self.accelerator.is_main_process else [0.0] * len(numbers)))

    def clip(self, largest: float) -> float:
        """Scales the gradient down to a norm of at most ``largest``; returns its norm before. All ranks must call it."""
        norm: Any = self.accelerator.clip_grad_norm_(self.loss.parameters(), largest)
        return float(norm.full_tensor() if hasattr(norm, "full_tensor") else norm)

    def backward(self, loss: Tensor, total_targets: float) -> None:
        """Adds the gradient of one micro-batch.

        DDP and FSDP2 average gradients over ranks. The sum over the targets of all ranks is wanted, divided by the
        number of targets, so the loss is multiplied by the number of ranks.

        Args:
            loss: The summed loss of the micro-batch on this rank [nats].
            total_targets: Targets of the whole step, over all ranks.
        """
        self.accelerator.backward(loss * (self.accelerator.num_processes / max(1.0, total_targets)))

    def accumulation(self, is_last: bool) -> Any:
        """Returns the context of one micro-batch: only the last one exchanges gradients.

        Sharded gradients are exchanged every time, as whole ones would not fit.
        """
        if is_last or is_sharded(self.accelerator) or self.accelerator.num_processes == 1:
            return nullcontext()
        return self.accelerator.no_sync(self.loss)

    @contextmanager
    def evaluation(self) -> Iterator[Any]:
        """Yields the model for measurements: as :meth:`whole`, and with the arithmetic of training."""
        with self.whole() as model, self.accelerator.autocast():
            yield model

    @contextmanager
    def whole(self) -> Iterator[Any]:
        """Yields the model without dropout, its embedding and head unsharded.

        Sharded layers gather themselves, so every rank has to compute the same. A forward pass of the wrapped model
        has to come before the first computation, because FSDP2 takes the first module that runs as its root.
        """
        model = self.model
        root = self.loss if is_sharded(self.accelerator) else None
        model.eval()
        if root is not None:
            root.unshard()
        try:
            yield model
        finally:
            if root is not None:
                root.reshard()
            model.train()

    def trained_weights(self) -> dict[str, Tensor]:
        """Returns the trained weights on the CPU, by name; nothing on other ranks than the main one. All ranks must call it."""
        weights = {}
        for name, parameter in trained_parameters(self.model).items():
            tensor = parameter.detach()
            whole = tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor  # collective where sharded
            if self.accelerator.is_main_process:
                weights[name] = whole.cpu().clone()
        return weights

    def save(self, folder: Path) -> None:
        """Writes weights, optimizer and random states; called on every rank."""
        self.accelerator.save_state(str(folder))

    def load(self, folder: Path) -> None:
        """Restores what :meth:`save` wrote; called on every rank."""
        self.accelerator.load_state(str(folder))

    def _write_weights(self, models: list[Any], weights: list[Any], folder: str) -> None:
        """Writes the trained weights; frozen ones are read from the source again. Accelerate itself writes sharded ones."""
        if not weights:
            return
        weights.clear()
        if self.accelerator.is_main_process:
            from safetensors.torch import save_file

            save_file(self.trained_weights(), Path(folder) / _WEIGHTS)

    def _read_weights(self, models: list[Any], folder: str) -> None:
        if not models:
            return
        models.clear()
        from safetensors.torch import load_file

        load_weights(self.model, load_file(Path(folder) / _WEIGHTS))

    def close(self) -> None:
        """Frees everything; without this order gloo sometimes aborts when the process ends."""
        import gc

        self.loss = self.optimizer = None
        self.accelerator.free_memory()
        gc.collect()


def make_optimizer(module: nn.Module, settings: FinetuneSettings) -> torch.optim.Optimizer:
    """Returns the optimizer of all parameters that require gradients; weight decay is on matrices only."""
    trained = [parameter for parameter in module.parameters() if parameter.requires_grad]
    matrices, vectors = ([p for p in trained if (p.ndim > 1) == wanted] for wanted in (True, False))
    groups = [{"params": matrices, "weight_decay": settings.weight_decay}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.AdamW(
        [group for group in groups if group["params"]],
        lr=settings.peak_learning_rate,
        betas=(0.9, settings.beta2),
        fused=True,
    )


def begin(optimizer: Any) -> None:
    """Gives each parameter the state that AdamW would make in its first step.

    The state that is saved before the first step is then as large as any later one, which proves that those can be saved.
    Sharded states cannot be saved empty: torch then takes a step with zero gradients first, which counts, so the
    correction of AdamW's averages would be wrong from the first real step on; under a gradient scaler it fails.
    """
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            optimizer.state[parameter] = {
                "step": torch.zeros((), dtype=torch.float32, device=parameter.device),  # where fused kernels read it
                "exp_avg": torch.zeros_like(parameter),
                "exp_avg_sq": torch.zeros_like(parameter),
            }


def _keep_loss_exact(accelerator: Any) -> None:
    """Keeps FSDP2 from rounding outputs to half precision, where the summed loss would lose digits or overflow."""
    plugin = getattr(accelerator.state, "fsdp_plugin", None)
    dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(accelerator.mixed_precision)
    if plugin is None or dtype is None:
        return
    from torch.distributed.fsdp import MixedPrecisionPolicy

    plugin.mixed_precision_policy = MixedPrecisionPolicy(param_dtype=dtype, reduce_dtype=torch.float32)


def load_weights(model: Any, weights: dict[str, Tensor]) -> None:
    """Puts trained weights into a model.

    Raises:
        ConfigError: If they are not the weights that the model trains.
    """
    wanted = trained_parameters(model)
    if wanted.keys() != weights.keys():
        different = sorted(wanted.keys() ^ weights.keys())[:3]
        raise ConfigError(
            f"The saved weights are those of another run: {', '.join(different)} ...", "To begin again: --overwrite"
        )
    with torch.no_grad():
        for name, parameter in wanted.items():
            parameter.copy_(weights[name])
