"""The tables of ``eval-perplexity``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ropectl.evaluate.perplexity.presets import PRESETS
from ropectl.report.layout import NOT_AVAILABLE, beyond_legend, beyond_mark
from ropectl.report.sheet import BAD, GOOD, Cell, Part, Row, Sentence, Sheet, cells, columns
from ropectl.report.tables import perplexity_text

#: Bins of positions shown in one line until this one [tokens]: short contexts differ between texts, not methods.
FIRST_SHOWN_POSITION = 16


def perplexity_parts(record: Mapping[str, Any]) -> list[Part]:
    """Returns what ``eval-perplexity`` prints for people."""
    points = record["points"]
    parts: list[Part] = [_main_table(record)]
    parts.extend(Sentence(line) for line in _conditions(record))
    parts.extend(beyond_legend(point["beyond_capacity"] for point in points))
    if record["protocol"] == "key-tokens":
        parts.append(_key_table(points))
    if any(point["gain_over_trained"] is not None for point in points):
        parts.append(_gain_table(points, record["geometry"]["original_max_position_embeddings"]))
    parts.extend([_position_table(point) for point in points if point["positions"]][-1:])
    parts.extend(Sentence(sentence) for sentence in record["verdict"])
    return parts


def _main_table(record: Mapping[str, Any]) -> Sheet:
    stride = f", stride {record['stride']}" if record["stride"] else ""
    preset = f", preset {record['preset']}" if record["preset"] else ""
    shows_mean = bool(record["preset"]) and PRESETS[record["preset"]].shows_window_mean
    means = ["window mean"] if shows_mean else []
    heads = ["perplexity", *means, "95 % interval", "bits/byte", "tokens"]
    rows = []
    for point in record["points"]:
        mean = [perplexity_text(point["window_mean_perplexity"])] if shows_mean else []
        numbers = cells(
            [
                perplexity_text(point["perplexity"]),
                *mean,
                _interval(point["ci_low"], point["ci_high"]),
                NOT_AVAILABLE if point["bits_per_byte"] is None else f"{point['bits_per_byte']:.4f}",
                str(point["num_tokens"]),
            ]
        )
        rows.append(Row(f"{point['context_length']}{beyond_mark(point['beyond_capacity'])}", numbers))
    return Sheet(f"Perplexity, protocol {record['protocol']}{stride}{preset}", "context", columns(heads), rows)


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
    return lines


def _gain_table(points: Sequence[Mapping[str, Any]], trained: int) -> Sheet:
    rows = []
    for point in points:
        low, high = point["gain_ci_low"], point["gain_ci_high"]
        interval = NOT_AVAILABLE if low is None else f"{low:+.4f} to {high:+.4f}"
        gain = point["gain_over_trained"]
        text = NOT_AVAILABLE if gain is None else f"{gain + 0.0:+.4f}"
        rows.append(Row(str(point["context_length"]), [_signed(text, low, high), Cell(interval)]))
    return Sheet(f"Gain over {trained} tokens [nats a token]", "context", columns(["gain", "95 % interval"]), rows)


def _signed(text: str, low: float | None, high: float | None) -> Cell:
    """A gain whose interval lies on one side of zero is coloured."""
    if low is None or high is None:
        return Cell(text)
    return Cell(text, tone=GOOD if low > 0 else BAD if high < 0 else "")


def _key_table(points: Sequence[Mapping[str, Any]]) -> Sheet:
    heads = ["short context", "candidates", "key tokens", "share", "perplexity of all"]
    rows = []
    for point in points:
        candidates = point["num_candidates"]
        texts = [
            str(point["short_context"] or NOT_AVAILABLE),
            str(candidates or NOT_AVAILABLE),
            str(point["num_tokens"]),
            f"{point['num_tokens'] / candidates:.2%}" if candidates else NOT_AVAILABLE,
            perplexity_text(point["candidates_perplexity"]),
        ]
        rows.append(Row(str(point["context_length"]), cells(texts)))
    return Sheet("Key tokens", "context", columns(heads), rows)


def _position_table(point: Mapping[str, Any]) -> Sheet:
    """An octave a line, from the two bins of each in the record."""
    octaves: dict[int, list[float]] = {}
    for part in point["positions"]:
        octave = max(FIRST_SHOWN_POSITION // 2, 1 << (part["start"].bit_length() - 1))
        first = 1 if octave < FIRST_SHOWN_POSITION else octave
        row = octaves.setdefault(first, [0, 0.0, 0])
        row[0], row[1], row[2] = part["end"] - 1, row[1] + part["nll_sum"], row[2] + part["num_tokens"]
    rows = [
        Row(f"{first} to {last:.0f}", cells([f"{nll_sum / num_tokens:.4f}", f"{num_tokens:.0f}"]))
        for first, (last, nll_sum, num_tokens) in octaves.items()
    ]
    heads = columns(["nats a token", "tokens"])
    return Sheet(f"Loss by position in {point['context_length']} tokens", "position", heads, rows)
