"""Records as tidy values, for data frames and spreadsheets: one measured number a row, unrounded."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

#: The columns. What does not apply is empty, and so is the value of what could not be measured.
#:
#: - ``model``, ``method``, ``tuned``: what was measured; ``tuned`` where the method was trained first.
#: - ``task``: of ``eval-tasks``.
#: - ``measure``, ``protocol``, ``unit``: what the value is.
#: - ``length``: context [tokens]; ``depth``: of the fact that is asked for, in [0, 1]; ``position``: of that fact, or of
#:   the first target of a bin of positions [tokens].
#: - ``ci_low``, ``ci_high``: ends of the 95 % interval; ``n``: of how many ``n_of`` (tokens, trials, tasks) the value is.
#: - ``beyond_capacity``: whether the length passes what the method is made for.
FIELDS = (
    "model", "method", "tuned", "task", "measure", "protocol", "length", "depth", "position",
    "value", "unit", "ci_low", "ci_high", "n", "n_of", "beyond_capacity",
)  # fmt: skip

Values = Iterator[Mapping[str, Any]]
Fields = dict[str, Any]


def comparison_values(record: Mapping[str, Any]) -> Values:
    """Returns the values of a comparison."""
    for row in record["rows"]:
        about: Fields = {
            "model": row.get("model") or record["model"],
            "method": row["method"],
            "tuned": bool(row.get("training")),
        }
        for protocol in ("perplexity", "tail"):
            kind = "prefix" if protocol == "perplexity" else "tail"
            yield from _points({**about, "protocol": kind}, row[protocol])
        yield from _passkeys(about, row["passkey"])
        for sense, value in row["reach"].items():
            shown = math.inf if sense == "computes" and value is None else value
            yield {**about, "measure": f"reach_{sense}", "value": shown, "unit": "tokens"}
        yield {**about, "measure": "short_delta", "value": row["short_delta"], "unit": "1"}
        yield {**about, "measure": "seconds", "value": row["seconds"], "unit": "s"}


def perplexity_values(record: Mapping[str, Any]) -> Values:
    """Returns the values of ``eval-perplexity``."""
    about = {**_about(record), "protocol": record["protocol"]}
    yield from _points(about, record["points"])
    if "models" in record.get("reach", {}) and record["protocol"] == "tail":
        yield {**about, "measure": "reach_models", "value": record["reach"]["models"], "unit": "tokens"}
    if record.get("short_delta") is not None:
        yield {**about, "measure": "short_delta", "value": record["short_delta"], "unit": "1"}


def passkey_values(record: Mapping[str, Any]) -> Values:
    """Returns the values of ``eval-passkey``."""
    about = _about(record)
    yield from _passkeys(about, record["lengths"])
    for accuracy, length in record["k_max"].items():
        yield {**about, "measure": f"k_max_{accuracy}", "value": length, "unit": "tokens"}
    yield {**about, "measure": "reach_uses", "value": record["reach"]["uses"], "unit": "tokens"}


def tasks_values(record: Mapping[str, Any]) -> Values:
    """Returns the values of ``eval-tasks``."""
    about = _about(record)
    for result in record["tasks"]:
        named = {**about, "task": result["task"]}
        for entry in result["lengths"]:
            at = {**named, "length": entry["length"], "beyond_capacity": entry["beyond_capacity"]}
            for cell, place in ((entry, {}), *((cell, _place(cell)) for cell in entry["depths"])):
                yield {**at, **place, "measure": "score", "value": cell["score"], **_trials(cell)}
                if cell.get("answer_logprob") is not None:
                    yield {**at, **place, **_logprob(cell)}
        yield {**named, "measure": "reach_uses", "value": result["uses"], "unit": "tokens"}
    for entry in record["average"]:
        shared = {"task": "average", "length": entry["length"], "beyond_capacity": entry["beyond_capacity"]}
        yield {
            **about,
            **shared,
            "measure": "score",
            "value": entry["score"],
            "unit": "1",
            "n": entry["tasks"],
            "n_of": "tasks",
        }
    yield {**about, "task": "average", "measure": "reach_uses", "value": record["reach"]["uses"], "unit": "tokens"}


def _about(record: Mapping[str, Any]) -> Fields:
    return {"model": record["model"], "method": record["method"], "tuned": False}


def _points(about: Fields, points: Sequence[Mapping[str, Any]]) -> Values:
    for point in points:
        at = {**about, "length": point["context_length"], "beyond_capacity": point["beyond_capacity"]}
        counted = {"n": point["num_tokens"], "n_of": "tokens"}
        interval = {"ci_low": point.get("ci_low"), "ci_high": point.get("ci_high")}
        yield {**at, "measure": "perplexity", "value": point["perplexity"], "unit": "1", **interval, **counted}
        if point.get("bits_per_byte") is not None:
            yield {**at, "measure": "bits_per_byte", "value": point["bits_per_byte"], "unit": "bits/byte", **counted}
        if point.get("num_windows", 0) > point.get("num_documents", 0):  # else it is the mean over documents
            mean = point["window_mean_perplexity"]
            yield {**at, "measure": "window_mean_perplexity", "value": mean, "unit": "1", **counted}
        if point.get("gain_over_trained") is not None:
            interval = {"ci_low": point["gain_ci_low"], "ci_high": point["gain_ci_high"]}
            gain = {"measure": "gain_over_trained", "value": point["gain_over_trained"], "unit": "nats/token"}
            yield {**at, **gain, **interval, **counted}
        if point.get("num_candidates"):
            counted = {"n": point["num_candidates"], "n_of": "tokens"}
            value = point["candidates_perplexity"]
            yield {**at, "measure": "candidates_perplexity", "value": value, "unit": "1", **counted}
        for part in point.get("positions", ()):
            counted = {"n": part["num_tokens"], "n_of": "tokens"}
            loss = part["nll_sum"] / part["num_tokens"] if part["num_tokens"] else None
            yield {
                **at,
                "measure": "nll_by_position",
                "position": part["start"],
                "value": loss,
                "unit": "nats/token",
                **counted,
            }


def _passkeys(about: Fields, results: Sequence[Mapping[str, Any]]) -> Values:
    for result in results:
        at = {**about, "length": result["length"], "beyond_capacity": result["beyond_capacity"]}
        for cell, place in ((result, {}), *((cell, _place(cell)) for cell in result.get("depths", ()))):
            yield {**at, **place, "measure": "passkey", "value": cell["correct"] / cell["trials"], **_trials(cell)}
            if cell.get("answer_logprob") is not None:
                yield {**at, **place, **_logprob(cell)}


def _place(cell: Mapping[str, Any]) -> Fields:
    return {"depth": cell["depth"], "position": cell.get("needle_position", cell.get("position"))}


def _trials(cell: Mapping[str, Any]) -> Fields:
    interval = {"ci_low": cell.get("ci_low"), "ci_high": cell.get("ci_high")}
    return {"unit": "1", **interval, "n": cell["trials"], "n_of": "trials"}


def _logprob(cell: Mapping[str, Any]) -> Fields:
    value = cell["answer_logprob"]
    return {"measure": "answer_logprob", "value": value, "unit": "nats", "n": cell["trials"], "n_of": "trials"}
