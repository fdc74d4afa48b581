"""The tables of ``eval-perplexity``; they fit 80 columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from ropectl.evaluate.presets import PRESETS
from ropectl.report.layout import BEYOND_MARK, NOT_AVAILABLE
from ropectl.report.tables import perplexity_text

Part = Table | Text

#: Bins of positions shown in one line until this one [tokens]: short contexts differ between texts, not methods.
FIRST_SHOWN_POSITION = 16


def perplexity_parts(record: Mapping[str, Any]) -> list[Part]:
    """Returns what ``eval-perplexity`` prints for people."""
    points = record["points"]
    parts: list[Part] = [_main_table(record)]
    parts.extend(Text(line) for line in _conditions(record))
    if record["protocol"] == "key-tokens":
        parts.append(_key_table(points))
    if any(point["gain_over_trained"] is not None for point in points):
        parts.append(_gain_table(points, record["geometry"]["original_max_position_embeddings"]))
    parts.extend([_position_table(point) for point in points if point["positions"]][-1:])
    parts.extend(Text(sentence) for sentence in record["verdict"])
    return parts


def _table(title: str, columns: Sequence[str]) -> Table:
    form: dict[str, Any] = {
        "box": box.SIMPLE_HEAD,
        "pad_edge": False,
        "padding": (0, 1, 0, 0),
    }  # six columns of any number fit
    table = Table(title=Text(title), title_justify="left", title_style="bold", **form)
    for column in columns:
        table.add_column(column, justify="right" if table.columns else "left", no_wrap=True)
    return table


def _main_table(record: Mapping[str, Any]) -> Table:
    stride = f", stride {record['stride']}" if record["stride"] else ""
    preset = f", preset {record['preset']}" if record["preset"] else ""
    shows_mean = bool(record["preset"]) and PRESETS[record["preset"]].shows_window_mean
    means = ["window mean"] if shows_mean else []
    columns = ["context", "perplexity", *means, "95 % interval", "bits/byte", "tokens"]
    table = _table(f"Perplexity, protocol {record['protocol']}{stride}{preset}", columns)
    for point in record["points"]:
        mean = [perplexity_text(point["window_mean_perplexity"])] if shows_mean else []
        table.add_row(
            f"{point['context_length']}{BEYOND_MARK if point['beyond_capacity'] else ''}",
            perplexity_text(point["perplexity"]),
            *mean,
            _interval(point["ci_low"], point["ci_high"]),
            NOT_AVAILABLE if point["bits_per_byte"] is None else f"{point['bits_per_byte']:.4f}",
            str(point["num_tokens"]),
        )
    return table


def _interval(low: float | None, high: float | None) -> str:
    return NOT_AVAILABLE if low is None or high is None else f"{perplexity_text(low)} to {perplexity_text(high)}"


def _conditions(record: Mapping[str, Any]) -> list[str]:
    """What the numbers depend on, in words."""
    bos, documents = record["bos"], record["manifest"]["documents"]
    begins = f"begins with {bos['token']}, never scored" if bos["token"] else "begins without a BOS token"
    lines = [
        f"{len(documents)} document{'s' if len(documents) != 1 else ''} of {record['text']}; every window {begins} "
        f"(--bos {bos['policy']})."
    ]
    if record["preset"] and PRESETS[record["preset"]].shows_window_mean:
        lines.append(
            f"window mean: exp of the mean of each window's mean loss, as in {PRESETS[record['preset']].reference}; "
            "perplexity: weighted by token."
        )
    if any(point["beyond_capacity"] for point in record["points"]):
        lines.append(f"{BEYOND_MARK} past the length that the method is made for")
    return lines


def _gain_table(points: Sequence[Mapping[str, Any]], trained: int) -> Table:
    table = _table(f"Gain over {trained} tokens [nats a token]", ["context", "gain", "95 % interval"])
    for point in points:
        low, high = point["gain_ci_low"], point["gain_ci_high"]
        interval = NOT_AVAILABLE if low is None else f"{low:+.4f} to {high:+.4f}"
        gain = point["gain_over_trained"]
        table.add_row(str(point["context_length"]), NOT_AVAILABLE if gain is None else f"{gain + 0.0:+.4f}", interval)
    return table


def _key_table(points: Sequence[Mapping[str, Any]]) -> Table:
    columns = ["context", "short context", "candidates", "key tokens", "share", "perplexity of all"]
    table = _table("Key tokens", columns)
    for point in points:
        candidates = point["num_candidates"]
        table.add_row(
            str(point["context_length"]),
            str(point["short_context"] or NOT_AVAILABLE),
            str(candidates or NOT_AVAILABLE),
            str(point["num_tokens"]),
            f"{point['num_tokens'] / candidates:.2%}" if candidates else NOT_AVAILABLE,
            perplexity_text(point["candidates_perplexity"]),
        )
    return table


def _position_table(point: Mapping[str, Any]) -> Table:
    """An octave a line, from the two bins of each in the record."""
    rows: dict[int, list[float]] = {}
    for part in point["positions"]:
        octave = max(FIRST_SHOWN_POSITION // 2, 1 << (part["start"].bit_length() - 1))
        first = 1 if octave < FIRST_SHOWN_POSITION else octave
        row = rows.setdefault(first, [0, 0.0, 0])
        row[0], row[1], row[2] = part["end"] - 1, row[1] + part["nll_sum"], row[2] + part["num_tokens"]
    table = _table(f"Loss by position in {point['context_length']} tokens", ["position", "nats a token", "tokens"])
    for first, (last, nll_sum, num_tokens) in rows.items():
        table.add_row(f"{first} to {last:.0f}", f"{nll_sum / num_tokens:.4f}", f"{num_tokens:.0f}")
    return table
