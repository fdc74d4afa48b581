"""Predicts what each runtime will really compute from a checkpoint's config.json, and how to start it. Arithmetic only."""

from ropectl.records import NextStep, Problem, RuntimeReading
from ropectl.runtimes.facts import config_facts, llama_config, patch_facts, source_facts
from ropectl.runtimes.matrix import next_steps, read_all
from ropectl.runtimes.runtime import CheckpointFacts, Runtime

__all__ = [
    "CheckpointFacts",
    "NextStep",
    "Problem",
    "Runtime",
    "RuntimeReading",
    "config_facts",
    "llama_config",
    "next_steps",
    "patch_facts",
    "read_all",
    "source_facts",
]
