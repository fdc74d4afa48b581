"""Small records of every kind, as the commands write them, for tests of figures; and their figures."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from ropectl.records import MetricsLine
from ropectl.records.reading import read_as, read_record
from ropectl.report.figures import catalog
from tests.report import records
from tests.report.records import GEOMETRY

LENGTHS = list(records.LENGTHS)
DEPTHS = [0.0, 0.5, 1.0]


def point(length: int, perplexity: float, beyond: bool = False, with_positions: bool = False) -> dict[str, Any]:
    """A point of perplexity; its interval is a tenth to either side."""
    edges = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048]
    bins = [
        {"start": a, "end": b, "nll_sum": (b - a) * (2.0 + perplexity / 100 + b / 2048), "num_tokens": b - a}
        for a, b in pairwise(edges)
        if b <= length
    ]
    return records.point(length, perplexity, beyond) | {
        "ci_low": 0.9 * perplexity, "ci_high": 1.1 * perplexity, "num_tokens": 12 * (length - 1),
        "bits_per_byte": perplexity / 10, "positions": bins if with_positions else [],
    }  # fmt: skip


def points(perplexities: list[float], capacity: int = 2048) -> list[dict[str, Any]]:
    """Points at LENGTHS; the longest has losses by position."""
    pairs = zip(LENGTHS, perplexities, strict=True)
    return [point(length, value, length > capacity, length == LENGTHS[-1]) for length, value in pairs]


def passkeys(shares: list[float], capacity: int = 2048) -> list[dict[str, Any]]:
    """Passkeys at LENGTHS: the same share at every depth; its interval is a tenth to either side."""
    return [
        records.retrieval(length, [round(share * 10)] * len(DEPTHS), 10, length > capacity)
        | {"ci_low": max(0.0, share - 0.1), "ci_high": min(1.0, share + 0.1)}
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
        "model": "m", "method": method, "perplexity": points(perplexities, capacity),
        "tail": points([value / 2 for value in perplexities], capacity), "passkey": passkeys(shares, capacity),
        "reach": {"computes": 2048, "models": 512, "uses": uses}, "short_delta": short_delta, "seconds": 1.0,
        "errors": [], "training": training,
    }  # fmt: skip


def comparison() -> dict[str, Any]:
    """The unscaled model, a method that fails, one that works, and the failing one after training."""
    trained = {"id": "0123", "steps": 10, "tokens": 81920, "seconds": 12.5, "last_loss": 2.0, "checkpoint": "c"}
    rows = [
        row("none", [9.9, 9.1, 11.7, 26.3], [1.0, 1.0, 0.5, 0.0], 0.0, 512, capacity=512),
        row("pi:factor=4", [53.8, 53.9, 52.6, 53.7], [0.0, 0.0, 0.0, 0.0], 4.92, 0),
        row("yarn:factor=4", [10.9, 10.0, 9.4, 8.9], [1.0, 1.0, 1.0, 0.9], 0.108, 2048),
        row("pi:factor=4", [10.6, 9.8, 8.8, 8.3], [0.6, 0.5, 0.5, 0.5], 0.074, 0, training=trained),
    ]
    own = {"model": "m", "models": ["m"], "factor": 4.0, "protocol": "prefix", "pick": None, "verdict": []}
    return {**records.comparison(), **own, "rows": rows, "manifest": manifest()}


def manifest() -> dict[str, Any]:
    """What tells that two runs scored the same tokens."""
    return {"tokens_sha256": "ab", "config": {"factor": 4.0}}


def perplexity_record(method: str = "yarn:factor=4", protocol: str = "prefix") -> dict[str, Any]:
    """A record of ``eval-perplexity``."""
    found = {"points": points([10.9, 10.0, 9.4, 8.9]), "unscaled": points([9.9, 9.1, 11.7, 26.3])[:2]}
    about = {"model": "m", "method": method, "text": "builtin:stdlib", "manifest": manifest()}
    return {**records.perplexity(protocol), **about, **found}


def passkey_record(grid: str = "depth") -> dict[str, Any]:
    """A record of ``eval-passkey``; with positions, only the shorter ones exist in a shorter prompt."""
    lengths = passkeys([1.0, 1.0, 0.5, 0.0])
    if grid == "position":
        for entry in lengths:
            places = [place for place in (49, 128, 256, 1024) if place < entry["length"]]
            entry["depths"] = [{**entry["depths"][0], "depth": 0.0, "needle_position": place} for place in places]
    return {**records.passkey(grid), "model": "m", "method": "ntk:factor=4", "lengths": lengths}


def tasks_record() -> dict[str, Any]:
    """A record of ``eval-tasks``."""

    def cell(length: int, score: float) -> dict[str, Any]:
        return {
            "length": length, "score": score, "trials": 20, "ci_low": max(0.0, score - 0.2),
            "ci_high": min(1.0, score + 0.2), "prompt_tokens": length - 6, "answer_tokens": 6, "answer_logprob": -0.5,
            "scores": [],
        }  # fmt: skip

    scores = {"needle": [1.0, 1.0, 0.9, 0.3], "multi-key:keys=4": [0.6, 0.4, 0.2, 0.0]}
    about = {"metric": "exact", "chance": None, "uses": None, "prompts_sha256": ""}
    tasks = [
        {"task": task, **about, "lengths": [cell(*pair) for pair in zip(LENGTHS, values, strict=True)]}
        for task, values in scores.items()
    ]
    return {**records.tasks(), "model": "m", "geometry": dict(GEOMETRY), "tasks": tasks, "average": []}


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


def drawings_of(record: dict[str, Any]) -> list[catalog.Drawing]:
    """The figures of a record as a command writes it."""
    return catalog.drawings_of(read_record(record, "record"))


def drawings_of_runs(records: dict[str, dict[str, Any]]) -> list[catalog.Drawing]:
    """The figures of several together."""
    return catalog.drawings_of_runs({name: read_record(record, name) for name, record in records.items()})


def training_drawings(lines: list[dict[str, Any]], settings: dict[str, Any]) -> list[catalog.Drawing]:
    """The figures of a training's metrics."""
    return catalog.training_drawings([read_as(MetricsLine, line, "metrics", "finetune") for line in lines], settings)
