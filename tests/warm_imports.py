"""What nearly every process of the tests needs first: imported once, in the process that ``tests.processes`` forks from."""

from __future__ import annotations

import gc
import importlib

from transformers import AutoModelForCausalLM, AutoTokenizer

import ropectl
from ropectl.builtin import TINY_MODEL_DIR

#: What is imported late, by the few commands that need it.
LATE = ("datasets", "peft", "torch.distributed.checkpoint", "torch.distributed.fsdp", "ropectl.train.engine.engine")

for name in LATE:
    importlib.import_module(name)
for name in ropectl.__all__:
    getattr(ropectl, name)  # imports what it needs
AutoModelForCausalLM.from_pretrained(TINY_MODEL_DIR)  # transformers makes some tables for its first model
AutoTokenizer.from_pretrained(TINY_MODEL_DIR)
gc.collect()
gc.freeze()  # what is here is shared and never collected
