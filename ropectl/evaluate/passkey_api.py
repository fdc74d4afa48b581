"""One measurement of passkey retrieval: configuration in, JSON document out.

What runs models is imported where it is first needed, as in :mod:`ropectl.evaluate.perplexity.evaluation`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ropectl.data.chat import check_bos
from ropectl.data.passkey import PasskeyPromptBuilder
from ropectl.errors import ConfigError
from ropectl.evaluate.config import PasskeyConfig
from ropectl.evaluate.passkey_plan import (
    PasskeyTree,
    count_tokens,
    default_positions,
    earliest_note,
    plan_passkey,
    plan_positions,
)
from ropectl.evaluate.request import header, manifest, method_and_lengths
from ropectl.evaluate.setup import Setup
from ropectl.evaluate.shared_config import USES_ACCURACY
from ropectl.evaluate.verdicts import longest_without_a_miss, uses_length
from ropectl.names import unknown_choice
from ropectl.records import MIN_TRIALS, PasskeyLength, to_json
from ropectl.reporter import Reporter
from ropectl.rope.method import ScalingMethod

GRIDS = ("depth", "position")

#: Chance of guessing five digits of which the first is not zero.
PASSKEY_CHANCE = 1 / 90_000

#: Accuracies of ``k_max``: Position Interpolation's, and one that is worth relying on.
K_MAX = (0.2, 0.8)


def evaluate_passkey(config: PasskeyConfig | None = None, reporter: Reporter | None = None) -> dict[str, Any]:
    """Returns passkey retrieval over lengths and needle positions of one model under one method.

    Args:
        config: What to measure; by default ``builtin:tiny`` as it is.
        reporter: Told about progress and notes.

    Raises:
        RopectlError: If the request cannot work; found before weights load.
    """
    config, reporter = config or PasskeyConfig(), reporter or Reporter()
    _check(config)
    setup = Setup.of(config)
    method, lengths, notes = method_and_lengths(setup, config.method, config.lengths)
    builder = PasskeyPromptBuilder.for_evaluation(
        setup.tokenizer, None if config.chat else setup.bos_token_id, config.seed, config.distractors, config.chat
    )
    trees = _plan(config, method, builder, lengths)
    if config.grid == "position":
        notes += earliest_note(builder, lengths, _positions(config, lengths))
    num_tokens = count_tokens(builder, trees, config.trials)
    if builder.answers == "text":
        notes.append(
            "This tokenizer gives the answer no tokens of its own behind the question: answers are generated and read."
        )
    for note in notes:
        reporter.note(note)
    from ropectl.evaluate.passkey import measure_trees
    from ropectl.evaluate.passkey_lengths import by_length

    model = setup.model
    reporter.start("measuring", num_tokens)
    reporter.cell(method.label, "passkey")
    cells = measure_trees(
        model, method, setup.geometry, builder, trees, config.trials,
        layers=setup.source.rope.layer_type, capacity=setup.source.rope.capacity(method),
        prefill_chunk=config.prefill_chunk, generate=config.generate, progress=reporter.advance,
    )  # fmt: skip
    results = by_length(cells)
    entries = [(result.length, result.accuracy, result.trials) for result in results]
    uses = uses_length(entries, USES_ACCURACY, setup.trained_length)
    found = [(result.length, result.accuracy) for result in results]
    points = sorted(point for tree in trees for point in tree.points)
    return {
        **header(setup, method),
        "grid": config.grid,
        "prompt_format": builder.prompt_format,
        "answers": builder.answers,
        "lengths": [to_json(result) for result in results],
        "cells": [to_json(cell) for result in results for cell in result.depths],
        "chance": PASSKEY_CHANCE,
        "k_max": {str(accuracy): longest_without_a_miss(found, accuracy) for accuracy in K_MAX},
        "reach": {"uses": uses},
        "verdict": verdict(results, uses),
        "num_differing": sum(result.num_differing or 0 for result in results) if _is_compared(results) else None,
        "prompt_example": builder.example(*points[len(points) // 2]),
        "manifest": {
            **manifest(setup),
            "bos_token_id": _first_special(setup, builder),
            "prompts_sha256": builder.fingerprint_points(points, config.trials),
            "tokens_computed": num_tokens,
            "prompt_tokens": sum(length for length, _ in points) * config.trials,
        },
    }


def verdict(results: Sequence[PasskeyLength], uses: int | None) -> str:
    """Returns what the lengths come to, in a sentence.

    Args:
        results: Retrieval by length, ascending.
        uses: Longest length that counts as used; 0 for none, None for no verdict.
    """
    if uses is None:
        trials = min(result.trials for result in results)
        return f"No verdict on use: {trials} prompts a length are too few ({MIN_TRIALS} wanted)."
    wanted = f"{USES_ACCURACY:.0%}"
    failing = next((result for result in results if result.length > uses), None)
    if uses == 0 and failing is not None:
        return f"Uses no evaluated length: {failing.accuracy:.0%} of the keys are found at {failing.length} tokens, {wanted} wanted."
    missed = [result.length for result in results if result.length < uses and result.accuracy < USES_ACCURACY]
    since = f", from {min(r.length for r in results if r.length > max(missed))} tokens on" if missed else ""
    if failing is None:
        return f"Uses {uses} tokens, the longest that was measured: at least {wanted} of the keys are found at every length{since}."
    return (
        f"Uses {uses} tokens: at least {wanted} of the keys are found up to there{since}, {failing.accuracy:.0%} at "
        f"{failing.length}."
    )


def failed_gate(record: dict[str, Any], min_accuracy: float | None) -> list[str]:
    """Returns a line for each length whose accuracy is below the wanted one; none without one."""
    if min_accuracy is None:
        return []
    return [
        f"{entry['length']} tokens: {entry['accuracy']:.1%} of {entry['trials']} keys found, "
        f"below --min-accuracy {min_accuracy:g}."
        for entry in record["lengths"]
        if entry["accuracy"] < min_accuracy
    ]


def _check(config: PasskeyConfig) -> None:
    if config.grid not in GRIDS:
        raise unknown_choice("grid", config.grid, GRIDS)
    if config.needle_positions and config.grid != "position":
        raise ConfigError("--position names needles of another grid.", "Type: --grid position --position N")
    if config.grid == "position" and "depths" in config.model_fields_set:
        raise ConfigError(
            "--depths is not possible with --grid position: its needles stand at fixed tokens.",
            "Name them instead, for example: --position 1k,2k",
        )
    if config.chat:
        check_bos(config.bos)


def _plan(
    config: PasskeyConfig, method: ScalingMethod, builder: PasskeyPromptBuilder, lengths: Sequence[int]
) -> list[PasskeyTree]:
    if config.grid == "position":
        return plan_positions(method, builder, lengths, _positions(config, lengths))
    return plan_passkey(method, builder, lengths, config.depth_values())


def _positions(config: PasskeyConfig, lengths: Sequence[int]) -> list[int]:
    return sorted(set(config.needle_positions)) or default_positions(lengths)


def _is_compared(results: Sequence[PasskeyLength]) -> bool:
    return any(result.num_differing is not None for result in results)


def _first_special(setup: Setup, builder: PasskeyPromptBuilder) -> int | None:
    """The beginning-of-sequence token that prompts begin with; None where they begin with another."""
    bos: int | None = setup.tokenizer.bos_token_id
    return bos if builder.first_token == bos else None
