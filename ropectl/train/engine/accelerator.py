"""Makes the Accelerator of a run: precision and tracker are chosen, engines that are not supported refused."""

from __future__ import annotations

import os
import warnings
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch

from ropectl.errors import ConfigError
from ropectl.names import unknown_choice
from ropectl.printable import first_line
from ropectl.records import TrainingEngine
from ropectl.train.settings import FinetuneSettings

_PRECISIONS = {"fp32": "no", "bf16": "bf16", "fp16": "fp16"}
#: How long ranks wait for each other: one reads all text before the others, and NCCL gives up after ten minutes.
_PATIENCE = timedelta(hours=6)


def make_accelerator(settings: FinetuneSettings, project: Path | None = None) -> Any:
    """Returns the Accelerator of a run; the launcher has decided on the number of devices.

    Args:
        settings: What was asked for.
        project: Where trackers write.

    Raises:
        ConfigError: If the engine, precision or tracker is not available.
    """
    from accelerate import Accelerator
    from accelerate.tracking import LOGGER_TYPE_TO_CLASS
    from accelerate.utils import GradientAccumulationPlugin, InitProcessGroupKwargs

    mixed = None if settings.precision == "auto" else _PRECISIONS[settings.precision]
    if mixed is None and "ACCELERATE_MIXED_PRECISION" not in os.environ:
        usable = torch.accelerator.is_available() and settings.device != "cpu"
        mixed = "bf16" if usable else "no"
    if settings.tracker is not None and settings.tracker not in LOGGER_TYPE_TO_CLASS:
        raise unknown_choice("tracker", settings.tracker, map(str, LOGGER_TYPE_TO_CLASS))
    options: dict[str, Any] = {
        "mixed_precision": mixed,
        "cpu": True if settings.device == "cpu" else None,
        "log_with": settings.tracker,
        "project_dir": str(project) if project else None,
        # Steps are divided by this loop; accelerate would divide gradients once more where its launcher names a number.
        "gradient_accumulation_plugin": GradientAccumulationPlugin(num_steps=1),
        "kwargs_handlers": [InitProcessGroupKwargs(timeout=_PATIENCE)],
    }
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # a missing tracker is refused below
            accelerator = _fresh(Accelerator, options)
    except (ValueError, ImportError) as error:
        raise ConfigError(f"accelerate refuses: {first_line(error)}") from None
    kind = accelerator.distributed_type.value
    if kind in ("DEEPSPEED", "MEGATRON_LM") or (is_sharded(accelerator) and not accelerator.is_fsdp2):
        raise ConfigError(
            f"The engine {kind} is not supported.",
            "Type: accelerate launch --config_file configs/accelerate/fsdp2.yaml",
        )
    if settings.tracker and not accelerator.log_with:  # a name that accelerate knows
        raise ConfigError(
            f"tracker = {settings.tracker!r} is not possible: its package is not installed.",
            f"pip install {settings.tracker}",
        )
    return accelerator


def is_sharded(accelerator: Any) -> bool:
    """Returns whether each rank holds a part of the weights only."""
    return bool(accelerator.distributed_type.value == "FSDP")


def describe_engine(accelerator: Any) -> TrainingEngine:
    """Returns what a record says of an Accelerator."""
    precision = accelerator.mixed_precision if accelerator.mixed_precision != "no" else "fp32"
    return TrainingEngine(
        accelerator.distributed_type.value, accelerator.num_processes, accelerator.device.type, precision
    )


def _fresh(kind: Any, options: dict[str, Any]) -> Any:
    """Returns an Accelerator with these options, although an earlier run of this process may have had others."""
    from accelerate.state import AcceleratorState

    try:
        return kind(**options)
    except ValueError as error:
        if "already been initialized" not in str(error):
            raise
        # The processes stay connected. The engine has to be detected again too: FSDP is not detected a second time.
        AcceleratorState._reset_state(reset_partial_state=True)
        return kind(**options)
