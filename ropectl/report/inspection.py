"""What ``inspect`` shows to people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ropectl.report.runtimes import runtime_parts
from ropectl.report.sheet import Part, Row, Sentence, Sheet, cells, columns
from ropectl.rope.geometry import describe_rotary_dim
from ropectl.rope.method import short_spec

#: More pairs than this are thinned out in the table; JSON always has all of them.
MAX_ROWS = 16


def inspection_parts(record: Mapping[str, Any]) -> list[Part]:
    """Returns the facts, then one line per rotary pair (at most 16 of them, evenly chosen)."""
    geometry, reach = record["geometry"], record["reach"]
    trained = geometry["original_max_position_embeddings"]
    num_pairs = len(record["inv_freq"])
    turning = geometry.get("num_turning") or num_pairs
    critical = record["critical_dimension"]
    facts = [
        f"{describe_rotary_dim(geometry)}, rope_theta {geometry['rope_theta']:g}, trained length {trained}",
        f"method {short_spec(record['method'])}, attention factor {record['attention_factor']:.6f}",
        f"critical pairs (never a full turn in training): {critical} to {turning - 1}"
        if critical < turning
        else "no critical pairs",
        f"computes up to {'any length' if reach is None else f'{reach} tokens'} with rotations seen in training",
    ]
    base = record["rope_parameters"].get("rope_theta", geometry["rope_theta"])
    if base != geometry["rope_theta"]:
        facts.insert(2, f"rope_theta becomes {base:.1f}")
    facts[1:1] = _model_facts(record)
    parts: list[Part] = [Sentence(line) for line in facts]
    parts.append(_pairs_table(record, num_pairs))
    if record["runtimes"]:
        parts.extend(runtime_parts(record["runtimes"]))
    parts.extend(Sentence(f"warning: {warning}") for warning in record["warnings"])
    return parts


def _model_facts(record: Mapping[str, Any]) -> list[str]:
    """What only a config says: how it is scaled now, which layers are meant, what they can see."""
    if "model" not in record:
        return []
    lines = [
        f"{record['model']}: scaling {short_spec(record['existing'])}, declares {record['max_position_embeddings']} tokens, "
        f"{record['pairing']} pairs"
    ]
    if record["layer_type"]:
        others = [kind for kind in record["layer_types"] if kind != record["layer_type"]]
        lines.append(f"layers {record['layer_type']}; not looked at: {', '.join(others) or 'none'}")
    if record["window"]:
        lines.append(f"attention window {record['window']} tokens")
    return lines


def _pairs_table(record: Mapping[str, Any], num_pairs: int) -> Sheet:
    rows = []
    shown = (
        range(num_pairs)
        if num_pairs <= MAX_ROWS
        else sorted({round(k * (num_pairs - 1) / (MAX_ROWS - 1)) for k in range(MAX_ROWS)})
    )
    for pair in shown:
        wavelength, divisor = record["wavelengths"][pair], record["divisors"][pair]
        texts = (
            f"{record['inv_freq'][pair]:.6g}",
            "stands still" if wavelength is None else f"{wavelength:,.2f}",
            f"{record['rotations'][pair]:.3f}",
            "-" if divisor is None else f"{divisor:.4f}",
        )
        rows.append(Row(f"{pair:>{len('pair')}}", cells(texts)))
    heads = columns(("inv_freq [rad/token]", "wavelength [tokens]", "turns in L", "divisor"))
    return Sheet("", "pair", heads, rows)
