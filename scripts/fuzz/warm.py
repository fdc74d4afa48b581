"""Imports in advance what commands import when they run, so that a forked process measures the command alone."""

from __future__ import annotations

import gc
import importlib
import pkgutil
from collections.abc import Callable

#: What libraries import late.
LATE = (
    *("datasets", "peft", "gguf", "accelerate", "torch.distributed.checkpoint", "torch.distributed.fsdp"),
    *("matplotlib.figure", "matplotlib.backends.backend_agg", "matplotlib.backends.backend_svg", "rich.console"),
)


def warm_main() -> Callable[[], None]:
    """Returns the program, with everything that it may need imported."""
    import torch

    torch.set_num_threads(1)
    import ropectl

    for module in pkgutil.walk_packages(ropectl.__path__, "ropectl."):
        if ".probes." not in module.name and not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    for name in LATE:
        try:
            importlib.import_module(name)
        except ImportError:  # an optional one
            continue
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from ropectl.builtin import TINY_MODEL_DIR
    from ropectl.cli.app import COMMANDS, full_command, main

    AutoModelForCausalLM.from_pretrained(TINY_MODEL_DIR)  # transformers makes some tables for its first model
    AutoTokenizer.from_pretrained(TINY_MODEL_DIR)
    for command in COMMANDS:
        full_command(command.name)
    gc.collect()
    gc.freeze()  # what is here is shared and never collected
    return main
