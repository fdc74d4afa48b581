"""Makes the Accelerator of a run: precision, tracker, and engines that are not supported."""

from __future__ import annotations

import os
import warnings
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch

from ropectl.errors import ConfigError
from ropectl.names import unknown_choice
from ropectl.train.settings import FinetuneSettings

_PRECISIONS = {"fp32": "no", "bf16": "bf16", "fp16": "fp16"}
#: How long ranks wait for each other: one reads all text before the others do, and NCCL gives up after ten minutes.
_PATIENCE = timedelta(hours=6)


def make_accelerator(settings: FinetuneSettings, project: Path | None = None) -> Any:
    """Returns the Accelerator of a run; how many devices there are, its launcher decided.

    Args:
        settings: What was asked for.
        project: Where trackers write.

    Raises:
        ConfigError: If the engine, precision or tracker cannot be had.
    """
    from accelerate import Accelerator
    from accelerate.utils import GradientAccumulationPlugin, InitProcessGroupKwargs

    mixed = None if settings.precision == "auto" else _PRECISIONS[settings.precision]
    if mixed is None and "ACCELERATE_MIXED_PRECISION" not in os.environ:
        usable = torch.accelerator.is_available() and settings.device != "cpu"
        mixed = "bf16" if usable else "no"
    _check_tracker(settings.tracker)
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
        raise ConfigError(f"accelerate refuses: {error}") from None
    kind = accelerator.distributed_type.value
    if kind in ("DEEPSPEED", "MEGATRON_LM") or (kind == "FSDP" and not accelerator.is_fsdp2):
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


def _check_tracker(name: str | None) -> None:
    from accelerate.tracking import LOGGER_TYPE_TO_CLASS

    if name is not None and name not in LOGGER_TYPE_TO_CLASS:
        raise unknown_choice("tracker", name, map(str, LOGGER_TYPE_TO_CLASS))


def _fresh(kind: Any, options: dict[str, Any]) -> Any:
    """An Accelerator with these options, though an earlier run of this process may have had others."""
    from accelerate.state import AcceleratorState

    try:
        return kind(**options)
    except ValueError as error:
        if "already been initialized" not in str(error):
            raise
        # The processes stay connected. Which engine it is has to be found anew too: having been found, FSDP is not again.
        AcceleratorState._reset_state(reset_partial_state=True)
        return kind(**options)
