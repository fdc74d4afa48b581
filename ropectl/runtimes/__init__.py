"""What each runtime will really compute from a checkpoint's config.json, and how to start it. Arithmetic only."""

from ropectl.runtimes.facts import config_facts, patch_facts
from ropectl.runtimes.matrix import next_steps, read_all
from ropectl.runtimes.runtime import CheckpointFacts, NextStep, Problem, Runtime, RuntimeReading

__all__ = [
    "CheckpointFacts",
    "NextStep",
    "Problem",
    "Runtime",
    "RuntimeReading",
    "config_facts",
    "next_steps",
    "patch_facts",
    "read_all",
]
