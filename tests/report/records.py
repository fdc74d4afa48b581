"""Records as the commands write them, with numbers of every size, names of every length, and everything that may be missing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ropectl.records import to_json
from ropectl.records.reading import read_record
from ropectl.rope.derived import derived_values
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.registry import parse_method

LONG = "yarn:factor=16,beta_fast=48,beta_slow=2,attention_factor=1.25"
GEOMETRY = {"rotary_dim": 32, "rope_theta": 10_000.0, "original_max_position_embeddings": 512}
METHODS = ("none", "pi:factor=4", "yarn:factor=4", "yarn:factor=8,beta_fast=16", LONG, "dynamic-ntk")
LENGTHS = (256, 512, 1024, 2048)


def made(json: dict[str, Any]) -> Any:
    """The record that JSON values are."""
    return read_record(json, "The record of a test")


def point(length: int, value: float | None, beyond: bool = False, documents: int = 12) -> dict[str, Any]:
    """One perplexity, with all that a record says about it; texts differ by far more than methods do in them."""
    loss = math.log(value or 1.0)
    sums = [length * (loss + 0.1 * math.cos(k) + 0.002 * math.sin(100 * loss + k)) for k in range(documents)]
    return {
        "context_length": length, "perplexity": value, "nll_sum": math.fsum(sums), "num_tokens": documents * length,
        "num_documents": documents, "beyond_capacity": beyond, "num_windows": documents,
        "document_nll_sums": sums, "document_num_tokens": [length] * documents,
        "ci_low": None if value is None else value * 0.75, "ci_high": None if value is None else value * 1.25,
        "bits_per_byte": None if value is None or value <= 1 else math.log2(value) / 2,
        "window_mean_perplexity": value, "positions": [], "gain_over_trained": None, "gain_ci_low": None,
        "gain_ci_high": None, "short_context": None, "num_candidates": None, "candidates_perplexity": None,
    }  # fmt: skip


def retrieval(length: int, correct: Sequence[int], trials: int = 5, beyond: bool = False) -> dict[str, Any]:
    """One length of passkeys; ``correct`` by depth."""
    shared = {"ci_low": 0.125, "ci_high": 0.875, "answer_logprob": -1.25, "beyond_capacity": beyond}
    depths = [
        {**shared, "length": length, "depth": i / max(len(correct) - 1, 1), "needle_position": 40 + 7 * i,
         "prompt_tokens": length - 6, "answer_tokens": 6, "correct": n, "trials": trials, "accuracy": n / trials,
         "num_differing": None, "outcomes": [1] * n + [0] * (trials - n)}
        for i, n in enumerate(correct)
    ]  # fmt: skip
    whole = {"correct": sum(correct), "trials": trials * len(correct), "accuracy": sum(correct) / trials / len(correct)}
    return {**shared, **whole, "length": length, "depths": depths, "num_differing": None}


def comparison(
    methods: Sequence[str] = METHODS, lengths: Sequence[int] = LENGTHS, trained: int = 512, model: str = "builtin:tiny"
) -> dict[str, Any]:
    """A comparison in which every row and length differs."""
    rows = []
    for i, method in enumerate(methods):
        values = [9.8789 + 0.317 * i + (j + 1) ** (i % 3) + 0.0137 * j for j in range(len(lengths))]
        found = [[5, 5 - i % 3, max(0, 5 - i - j), 4 if j else 5, 5] for j in range(len(lengths))]
        rows.append(
            {
                "model": model,
                "method": method,
                "perplexity": [point(n, v, n > trained and not i) for n, v in zip(lengths, values, strict=True)],
                "tail": [point(n, v / 2) for n, v in zip(lengths, values, strict=True)],
                "passkey": [retrieval(n, c, beyond=n > trained and not i) for n, c in zip(lengths, found, strict=True)],
                "reach": {
                    "computes": None if i == 5 else 4 * trained - i,
                    "models": [trained, 0, None][i % 3],
                    "uses": lengths[i % len(lengths)],
                },
                "short_delta": [0.0, 4.9203, -0.0336, 0.0001, 0.0561, 0.1123][i % 6],
                "seconds": 12.34 + i,
                "errors": [],
                "training": None,
            }
        )
    pick = {"model": model, "method": methods[-1], "reasons": ["uses 2048 tokens: the longest"], "training": None}
    return {
        "schema_version": 1, "model": model, "models": [model], "lengths": list(lengths), "rows": rows, "pick": pick,
        "target_length": max(lengths), "geometry": {**GEOMETRY, "original_max_position_embeddings": trained},
        "text": "builtin:stdlib",
        "verdict": [f"Of the {max(lengths)} tokens asked for, the pick computes all."], "same_tokens": True,
    }  # fmt: skip


def several_models() -> dict[str, Any]:
    """A comparison with models of other tokens, trained rows and failures."""
    record = comparison()
    tuned = {**record["rows"][1], "training": {"id": "0123456789abcdef"}}
    other = {**record["rows"][2], "model": "/data/checkpoints/an-organisation/a-model-with-a-long-name-7b"}
    failed = {
        **other, "model": "other-8b", "perplexity": [point(256, 7.125), point(512, None)], "tail": [], "passkey": [],
        "reach": {"computes": 8192, "models": None, "uses": None}, "short_delta": None,
        "errors": ["passkey 256: out of memory"],
    }  # fmt: skip
    record["rows"] = [*record["rows"][:2], tuned, *record["rows"][2:], {**other, "short_delta": None}, failed]
    record["models"] = [record["model"], other["model"], "other-8b"]
    record["same_tokens"] = False
    return record


def strange_numbers() -> dict[str, Any]:
    """A comparison with possible numbers that a sane run does not give."""
    record = comparison(("none", "pi:factor=4", "abf:factor=4"))
    values = (1e308, 5e-324, 1e30, 1e-9, None, 1.0, 0.5, 99_999.96)
    for row in record["rows"]:
        row["perplexity"] = [point(n, v) for n, v in zip(LENGTHS, values, strict=False)]
        values = values[4:] + values[:4]
    record["rows"][0]["short_delta"], record["rows"][1]["short_delta"] = None, 12_345.678
    record["rows"][2]["passkey"] = []
    record["pick"], record["verdict"] = None, []
    return record


def perplexity(protocol: str = "prefix", preset: str | None = None) -> dict[str, Any]:
    """A record of ``eval-perplexity`` with large numbers."""
    points = [point(n, 10.31 * 7 ** (2 * i), i > 1) for i, n in enumerate((256, 512, 131_072, 1_048_576))]
    points.append(point(2_097_152, None))
    points[1]["positions"] = [
        {"start": s, "end": e, "nll_sum": 3.25 * (e - s), "num_tokens": e - s} for s, e in ((1, 2), (2, 16), (16, 512))
    ]
    if protocol == "tail":
        for i, each in enumerate(points[:4]):
            each |= {"gain_over_trained": 0.1 * i - 0.2, "gain_ci_low": 0.1 * i - 0.25, "gain_ci_high": 0.1 * i - 0.15}
    if protocol == "key-tokens":
        for each in points:
            each |= {"short_context": 128, "num_candidates": 9 * each["num_tokens"], "candidates_perplexity": 17.25}
    return {
        "model": "an/organisation", "method": LONG, "protocol": protocol, "preset": preset,
        "stride": 256 if protocol in ("sliding", "overlapping") else None, "text": "hf:some/name:train#text",
        "bos": {"policy": "auto", "token_id": 1, "token": "<|begin_of_text|>"}, "points": points,
        "geometry": GEOMETRY, "manifest": {"documents": ["d"] * 100},
        "reach": {"models": 512}, "short_delta": 0.105, "verdict": ["models up to 512 tokens."],
    }  # fmt: skip


def passkey(grid: str = "depth", num_depths: int = 5) -> dict[str, Any]:
    """A record of ``eval-passkey``; of a grid of positions, short prompts lack the later ones."""
    results = [retrieval(n, [i % 6 for i in range(j, j + num_depths)], 6, j > 1) for j, n in enumerate(LENGTHS)]
    if grid == "position":
        results = [{**r, "depths": r["depths"][: j + 2]} for j, r in enumerate(results)]
    return {
        "model": "builtin:tiny", "method": "none", "geometry": GEOMETRY, "cells": [], "grid": grid, "lengths": results, "k_max": {"0.2": 2048, "0.8": 0},
        "num_differing": 3 if grid == "position" else None, "reach": {"uses": 512}, "verdict": "Uses 512 tokens.",
    }  # fmt: skip


def tasks(num_lengths: int = 6) -> dict[str, Any]:
    """A record of ``eval-tasks``."""
    counts = {"prompt_tokens": 1000, "answer_tokens": 24, "scores": []}
    names = ["needle", "variable-tracking:chains=3,hops=2", "common-words"]
    results = []
    for i, name in enumerate(names):
        lengths = []
        for j in range(num_lengths):
            score = ((7 * i + 3 * j) % 11) / 10
            cell = {
                "score": score,
                "ci_low": score / 2,
                "ci_high": (1 + score) / 2,
                "trials": 25,
                "answer_logprob": -0.5,
            }
            depths = [{**cell, "depth": d / 2, "position": d, "score": d / 2} for d in range(3)] if i == 0 else []
            lengths.append({**cell, "length": 1024 * 2**j, "beyond_capacity": j > 2, "depths": depths, **counts})
        entry = {
            "task": name,
            "metric": "contained",
            "chance": (2e-37, 0.25, None)[i],
            "uses": (None, 0, 4096)[i],
            "prompts_sha256": "",
        }
        results.append({**entry, "lengths": lengths})
    average = [
        {"length": 1024 * 2**j, "score": 0.5, "tasks": 3, "trials": 25, "beyond_capacity": j > 2}
        for j in range(num_lengths)
    ]
    return {
        "model": "builtin:tiny", "method": "yarn:factor=4", "text": "builtin:stdlib",
        "geometry": {**GEOMETRY, "original_max_position_embeddings": 4096},
        "tasks": results, "average": average, "reach": {"uses": None, "used_score": 0.9},
    }  # fmt: skip


def estimate() -> dict[str, Any]:
    """A record of ``compare-methods --dry-run``."""
    kinds = [
        {"kind": kind, "cells": 9, "tokens": 123_456_789, "flops": 1.23e20} for kind in ("prefix", "tail", "passkey")
    ]
    time = {
        "seconds": 363_960.0, "seconds_low": 300_000.0, "seconds_high": 720_000.0, "left_out": ["loading the weights"],
        "kinds": {"prefix": 59.4, "tail": 3599.0, "passkey": 360_300.0}, "busy": True, "load": 3.42, "cores": 2,
        "kinds_low": {"prefix": 50.0, "tail": 3000.0, "passkey": 296_950.0}, "gain_of_one_thread": 1.8,
        "kinds_high": {"prefix": 118.8, "tail": 7198.0, "passkey": 712_683.0},
        "calibration": {"passes": [{"seconds": [0.8, 2.1, 1.7]}, {"seconds": [0.01, 0.011]}, {"seconds": [5.0]}]},
    }  # fmt: skip
    memory = {"total": 76 * 2**30, "free": 39 * 2**30, "parts": {"weights": 51 * 2**30, "key-value cache": 25 * 2**30}}
    geometry = RopeGeometry(**GEOMETRY)
    derived = {
        spec: {
            name: to_json(value)
            for name, value in derived_values(
                parse_method(spec), geometry, None, 8192 if spec == "dynamic-yarn" else None
            ).items()
        }
        for spec in ("none", "abf:rope_theta=1000000", "dynamic-yarn", "llama3:factor=16,high_freq_factor=8", LONG)
    }
    model = {
        "model": "/data/checkpoints/an-organisation/a-model-with-a-rather-long-name-7b", "methods": list(METHODS),
        "cells": 27, "finished": 3, "derived": derived, "kinds": kinds, "time": time, "memory": memory,
    }  # fmt: skip
    refused = {**model, "model": "b", "time": {"seconds": None, "reason": "too small"}, "memory": None}
    sentence = (
        "20 of 48 cells are left out: tail of yarn:factor=4, llama3:factor=16; passkey of 9 methods, 2 to 3 h more."
    )
    budget = {"seconds": 5400.0, "cells": 48, "left_out": 20, "sentence": sentence}
    return {"models": [model, {**model, "model": "c"}, refused], "budget": budget}


def finetuning() -> dict[str, Any]:
    """A record of ``finetune`` after training."""
    before = {"perplexity": {n: 10.31 + i for i, n in enumerate(LENGTHS)}, "passkey": dict.fromkeys(LENGTHS, 0.25)}
    after = {"perplexity": {n: 8.21 + i for i, n in enumerate(LENGTHS)}, "passkey": dict.fromkeys(LENGTHS, 1.0)}
    training = {
        "steps": 400, "step": 350, "tokens": 1_677_721_600, "seq_len": 65_536, "epochs": 1.25, "seconds": 108_600.0,
        "first_loss": 3.125, "last_loss": 2.875, "validation_before": before,
        "validation": {**after, "short_delta": -0.0336},
    }  # fmt: skip
    return {
        "source": {"name": "an/organisation"}, "seq_len": None, "target_length": 262_144, "training": training,
        "geometry": {"rotary_dim": 128, "rope_theta": 10_000.0, "original_max_position_embeddings": 4096},
        "before": {"method": "none", "max_position_embeddings": 4096}, "method": LONG, "verified": None,
        "rope_parameters": {"rope_type": "yarn", "factor": 16.0}, "max_position_embeddings": 262_144, "output": "/data/out",
    }  # fmt: skip


def harness() -> dict[str, Any]:
    """A record of ``harness --run``."""
    return {
        "model": "m", "method": "as it is", "n-samples": {"arc_easy": {"effective": 2376}},
        "results": {"arc_easy": {"acc,none": 0.25, "acc_stderr,none": 0.0125, "alias": "arc_easy"}},
    }  # fmt: skip
