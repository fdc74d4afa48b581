"""One measurement of one method: configuration in, JSON document out.

What runs models is imported where it is first needed: loading torch takes seconds, and a typing error is
told without it.
"""

from __future__ import annotations

from typing import Any

from ropectl.data.passkey import PasskeyPromptBuilder
from ropectl.evaluate.config import PasskeyConfig
from ropectl.evaluate.perplexity_api import evaluate_perplexity
from ropectl.evaluate.reporter import Reporter, SilentReporter
from ropectl.evaluate.request import header, manifest, method_and_lengths
from ropectl.evaluate.setup import Setup
from ropectl.records import to_json

__all__ = ["PASSKEY_CHANCE", "evaluate_passkey", "evaluate_perplexity"]

#: Chance of guessing five digits of which the first is not zero.
PASSKEY_CHANCE = 1 / 90_000


def evaluate_passkey(config: PasskeyConfig | None = None, reporter: Reporter | None = None) -> dict[str, Any]:
    """Returns passkey retrieval over lengths and depths of one model under one method.

    Args:
        config: What to measure; by default ``builtin:tiny`` as it is.
        reporter: Told about progress and notes.

    Raises:
        RopectlError: If the request cannot work; found before weights load.
    """
    config, reporter = config or PasskeyConfig(), reporter or SilentReporter()
    setup = Setup.of(config)
    method, lengths, notes = method_and_lengths(setup, config.method, config.lengths)
    from ropectl.evaluate.passkey import measure_passkey

    builder = PasskeyPromptBuilder(setup.tokenizer, setup.bos_token_id, config.seed, config.distractors)
    depths = config.depth_values()
    prompts_sha256 = builder.fingerprint(lengths, depths, config.trials)  # raises where a length is too short
    for note in notes:
        reporter.note(note)
    model = setup.model
    num_depths = [len(builder.distinct_depths(length, depths)) for length in lengths]
    reporter.start(sum(n * length for n, length in zip(num_depths, lengths, strict=True)) * config.trials)
    results = []
    for length in lengths:
        reporter.cell(method.label, f"passkey {length}")
        measured = measure_passkey(
            model, method, setup.geometry, builder, length, depths, config.trials,
            layers=setup.source.rope.layer_type, capacity=setup.source.rope.capacity(method),
            prefill_chunk=config.prefill_chunk, progress=reporter.advance,
        )  # fmt: skip
        results.append(to_json(measured))
    return {
        **header(setup, method),
        "lengths": results,
        "cells": [cell for result in results for cell in result["depths"]],
        "chance": PASSKEY_CHANCE,
        "manifest": {**manifest(setup), "prompts_sha256": prompts_sha256},
    }
