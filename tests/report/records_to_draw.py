"""Small records of every kind, as the commands write them, for tests of figures and pages."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

GEOMETRY = {"rotary_dim": 32, "rope_theta": 10000.0, "original_max_position_embeddings": 512}
LENGTHS = [256, 512, 1024, 2048]
DEPTHS = [0.0, 0.5, 1.0]


def point(length: int, perplexity: float, beyond: bool = False, with_positions: bool = False) -> dict[str, Any]:
    """A point of perplexity; its interval is a tenth to either side."""
    edges = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048]
    bins = [
        {"start": a, "end": b, "nll_sum": (b - a) * (2.0 + perplexity / 100 + b / 2048), "num_tokens": b - a}
        for a, b in pairwise(edges)
        if b <= length
    ]
    return {
        "context_length": length,
        "perplexity": perplexity,
        "ci_low": 0.9 * perplexity,
        "ci_high": 1.1 * perplexity,
        "num_documents": 12,
        "num_tokens": 12 * (length - 1),
        "bits_per_byte": perplexity / 10,
        "beyond_capacity": beyond,
        "positions": bins if with_positions else [],
    }


def points(perplexities: list[float], capacity: int = 2048) -> list[dict[str, Any]]:
    """Points at LENGTHS; the longest has losses by position."""
    pairs = zip(LENGTHS, perplexities, strict=True)
    return [point(length, value, length > capacity, length == LENGTHS[-1]) for length, value in pairs]


def passkeys(shares: list[float], capacity: int = 2048) -> list[dict[str, Any]]:
    """Passkeys at LENGTHS: the same share at every depth."""
    return [
        {
            "length": length,
            "correct": round(share * 30),
            "trials": 30,
            "accuracy": share,
            "ci_low": max(0.0, share - 0.1),
            "ci_high": min(1.0, share + 0.1),
            "beyond_capacity": length > capacity,
            "depths": [
                {"length": length, "depth": depth, "needle_position": round(depth * length), "accuracy": share}
                for depth in DEPTHS
            ],
        }
        for length, share in zip(LENGTHS, shares, strict=True)
    ]


def row(
    method: str,
    perplexities: list[float],
    shares: list[float],
    short_delta: float,
    uses: int,
    capacity: int = 2048,
    training: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """A row of a comparison."""
    return {
        "model": "m",
        "method": method,
        "perplexity": points(perplexities, capacity),
        "tail": points([value / 2 for value in perplexities], capacity),
        "passkey": passkeys(shares, capacity),
        "reach": {"computes": 2048, "models": 512, "uses": uses},
        "short_delta": short_delta,
        "seconds": 1.0,
        "errors": [],
        "training": training,
    }


def comparison() -> dict[str, Any]:
    """The unscaled model, a method that fails, one that works, and the failing one after training."""
    trained = {"id": "0123", "steps": 10, "tokens": 81920, "seconds": 12.5, "last_loss": 2.0, "checkpoint": "c"}
    return {
        "schema_version": 1,
        "model": "m",
        "models": ["m"],
        "geometry": dict(GEOMETRY),
        "factor": 4.0,
        "target_length": 2048,
        "text": "builtin:stdlib",
        "protocol": "prefix",
        "lengths": list(LENGTHS),
        "rows": [
            row("none", [9.9, 9.1, 11.7, 26.3], [1.0, 1.0, 0.5, 0.0], 0.0, 512, capacity=512),
            row("pi:factor=4", [53.8, 53.9, 52.6, 53.7], [0.0, 0.0, 0.0, 0.0], 4.92, 0),
            row("yarn:factor=4", [10.9, 10.0, 9.4, 8.9], [1.0, 1.0, 1.0, 0.9], 0.108, 2048),
            row("pi:factor=4", [10.6, 9.8, 8.8, 8.3], [0.6, 0.5, 0.5, 0.5], 0.074, 0, training=trained),
        ],
        "pick": None,
        "verdict": [],
        "same_tokens": True,
        "manifest": {"tokens_sha256": "ab", "config": {"factor": 4.0}},
    }


def perplexity_record(method: str = "yarn:factor=4", protocol: str = "prefix") -> dict[str, Any]:
    """A record of ``eval-perplexity``."""
    return {
        "schema_version": 1,
        "model": "m",
        "method": method,
        "geometry": dict(GEOMETRY),
        "protocol": protocol,
        "points": points([10.9, 10.0, 9.4, 8.9]),
        "unscaled": points([9.9, 9.1, 11.7, 26.3])[:2],
        "short_delta": 0.1,
        "manifest": {"tokens_sha256": "ab", "config": {"factor": 4.0}},
    }


def passkey_record(grid: str = "depth") -> dict[str, Any]:
    """A record of ``eval-passkey``; with positions, only the shorter ones exist in a shorter prompt."""
    lengths = passkeys([1.0, 1.0, 0.5, 0.0])
    if grid == "position":
        for entry in lengths:
            entry["depths"] = [
                {"depth": 0.0, "needle_position": position, "accuracy": entry["accuracy"]}
                for position in (49, 128, 256, 1024)
                if position < entry["length"]
            ]
    return {"model": "m", "method": "ntk:factor=4", "geometry": dict(GEOMETRY), "grid": grid, "lengths": lengths}


def tasks_record() -> dict[str, Any]:
    """A record of ``eval-tasks``."""
    scores = {"needle": [1.0, 1.0, 0.9, 0.3], "multi-key:keys=4": [0.6, 0.4, 0.2, 0.0]}
    tasks = [
        {
            "task": task,
            "metric": "exact",
            "lengths": [
                {
                    "length": length,
                    "score": score,
                    "trials": 20,
                    "ci_low": max(0.0, score - 0.2),
                    "ci_high": min(1.0, score + 0.2),
                    "beyond_capacity": False,
                }
                for length, score in zip(LENGTHS, values, strict=True)
            ],
        }
        for task, values in scores.items()
    ]
    return {"model": "m", "method": "yarn:factor=4", "geometry": dict(GEOMETRY), "tasks": tasks}


def metrics(steps: int = 60) -> list[dict[str, Any]]:
    """Lines of a training with validations every 20 steps, of which that at step 40 was the best."""
    lines: list[dict[str, Any]] = []
    for step in range(steps + 1):
        if step:
            lines.append({"step": step, "loss": 1.0 + 2.0 / step, "learning_rate": 1e-3, "tokens": 8192 * step})
        if step % 20 == 0:
            found = {"512": 30.0 / (1 + step), "2048": 60.0 / (1 + step)}
            keys = {"512": step / steps, "2048": step / (2 * steps)}
            measured = {"perplexity": found, "passkey": keys, "short_delta": 0.1}
            lines.append({"step": step, "validation": measured, "best": step in (20, 40)})
    return lines


def every_record() -> dict[str, dict[str, Any]]:
    """One of each kind."""
    return {
        "comparison": comparison(),
        "perplexity": perplexity_record(),
        "tail": perplexity_record(protocol="tail"),
        "passkey": passkey_record(),
        "positions": passkey_record("position"),
        "tasks": tasks_record(),
    }
