"""Accelerate as the loop sees it: devices, precision, wrapping, collectives, and saved states."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ropectl.errors import ConfigError
from ropectl.train.engine.loss import CausalLoss
from ropectl.train.engine.optimizer import begin, make_optimizer
from ropectl.train.settings import FinetuneSettings

_WEIGHTS = "weights.safetensors"


@dataclass
class Engine:
    """A model, its optimizer, and the devices they live on.

    Attributes:
        accelerator: Accelerate's.
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

    @property
    def is_sharded(self) -> bool:
        """True if each rank holds a part of the weights only."""
        return bool(self.accelerator.distributed_type.value == "FSDP")

    def sum(self, *numbers: float) -> list[float]:
        """Returns the sums of numbers over all ranks."""
        device = self.accelerator.device
        dtype = torch.float32 if device.type == "mps" else torch.float64  # mps has no float64
        tensor = torch.tensor(numbers, dtype=dtype, device=device)
        result: list[float] = self.accelerator.reduce(tensor, reduction="sum").tolist()
        return result

    def of_main(self, *numbers: float) -> list[float]:
        """Returns the main process's numbers on every rank: what ranks decide by has to be the same to the last digit."""
        return self.sum(*(numbers if self.accelerator.is_main_process else [0.0] * len(numbers)))

    def clip(self, largest: float) -> float:
        """Scales the gradient down to a norm of at most ``largest``; returns what its norm was. All ranks must call it."""
        norm: Any = self.accelerator.clip_grad_norm_(self.loss.parameters(), largest)
        return float(norm.full_tensor() if hasattr(norm, "full_tensor") else norm)

    def backward(self, loss: Tensor, total_targets: float) -> None:
        """Adds the gradient of one micro-batch.

        DDP and FSDP2 average gradients over ranks; the sum over all targets of all ranks is wanted, divided by
        their number, so the number of ranks is multiplied in.

        Args:
            loss: The summed loss of the micro-batch on this rank [nats].
            total_targets: Targets of the whole step, over all ranks.
        """
        self.accelerator.backward(loss * (self.accelerator.num_processes / max(1.0, total_targets)))

    def accumulation(self, is_last: bool) -> Any:
        """Returns the context of one micro-batch: only the last one exchanges gradients.

        Sharded gradients are exchanged every time: whole ones would not fit.
        """
        if is_last or self.is_sharded or self.accelerator.num_processes == 1:
            return nullcontext()
        return self.accelerator.no_sync(self.loss)

    @contextmanager
    def evaluation(self) -> Iterator[Any]:
        """Yields the model as it is for measurements: as :meth:`whole`, and with the arithmetic of training."""
        with self.whole() as model, self.accelerator.autocast():
            yield model

    @contextmanager
    def whole(self) -> Iterator[Any]:
        """Yields the model without dropout, embedding and head whole.

        Sharded layers gather themselves, so every rank has to compute the same. A forward pass of the wrapped model
        has to come before the first computation, for FSDP2 takes the first module that runs for its root.
        """
        model = self.model
        root = self.loss if self.is_sharded else None
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
        """Returns the trained weights on the CPU, by name; on other ranks than the main one, nothing. All ranks must call it."""
        weights = {}
        for name, parameter in self.model.named_parameters():
            if not parameter.requires_grad:
                continue
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
        """Writes what is trained; frozen weights are read from the source again. Sharded ones are written already."""
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
        """Lets go of everything; without this order gloo aborts now and then when the process ends."""
        import gc

        self.loss = self.optimizer = None
        self.accelerator.free_memory()
        gc.collect()


def _keep_loss_exact(accelerator: Any) -> None:
    """Under FSDP2 accelerate has outputs rounded to half precision: the summed loss would lose its digits, or overflow."""
    plugin = getattr(accelerator.state, "fsdp_plugin", None)
    dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(accelerator.mixed_precision)
    if plugin is None or dtype is None:
        return
    from torch.distributed.fsdp import MixedPrecisionPolicy

    plugin.mixed_precision_policy = MixedPrecisionPolicy(param_dtype=dtype, reduce_dtype=torch.float32)


def load_weights(model: Any, weights: dict[str, Tensor]) -> None:
    """Puts trained weights in their places.

    Raises:
        ConfigError: If they are not those that the model trains.
    """
    wanted = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
    if wanted.keys() != weights.keys():
        different = sorted(wanted.keys() ^ weights.keys())[:3]
        raise ConfigError(
            f"The saved weights are those of another run: {', '.join(different)} ...", "Begin anew: --overwrite"
        )
    with torch.no_grad():
        for name, parameter in wanted.items():
            parameter.copy_(weights[name])
