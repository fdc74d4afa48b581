"""What ``patch`` shows to people: the plan or the result in one table, then what to type next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ropectl.report.sheet import Part, facts
from ropectl.rope.geometry import describe_rotary_dim
from ropectl.rope.method import short_spec

_UNITS = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


def patch_parts(record: Mapping[str, Any]) -> list[Part]:
    """Returns what there is to say, as one table."""
    return [facts("", patch_rows(record))]


def step_lines(record: Mapping[str, Any]) -> list[str]:
    """Returns the next step of every runtime as plain lines, never wrapped."""
    lines: list[str] = []
    for step in record["next_steps"]:
        lines.append(
            f"{step['runtime']}: {'' if step['command'] else 'not possible. ' + str(step['refusal'])}".rstrip()
        )
        lines += [f"  {line}" for line in (step["command"] or "").splitlines()]
        lines += [f"  ({note})" for note in step["notes"]]
    return lines


def patch_rows(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Returns names and what there is to say about each."""
    geometry, before, block = record["geometry"], record["before"], record["rope_parameters"]
    frozen = f", frozen at {record['seq_len']} tokens" if record["seq_len"] else ""
    trained = geometry["original_max_position_embeddings"]
    rows = [
        ("source", str(record["source"]["name"])),
        ("trained", f"{trained} tokens, rope_theta {geometry['rope_theta']:g}, {describe_rotary_dim(geometry)}"),
        ("scaling", f"{short_spec(before['method'])} -> {short_spec(record['method'])}{frozen}"),
        ("meant for", f"{record['target_length']} tokens"),
        ("rope_parameters", ", ".join(f"{key} {_value(value)}" for key, value in block.items())),
        ("max_position_embeddings", f"{before['max_position_embeddings']} -> {record['max_position_embeddings']}"),
    ]
    if record.get("layer_type"):
        rows.insert(3, ("layers", record["layer_type"]))
    if "gguf_keys" in record:
        rows.append(("gguf keys", ", ".join(f"{key} {_value(value)}" for key, value in record["gguf_keys"].items())))
        rows += [(f"tensor {name}", _value(values)) for name, values in record["gguf_tensors"].items()]
        rows = [row for row in rows if row[0] != "rope_parameters"]
    files = record.get("files")
    if files:
        rows.append(("files", _files(files)))
    rows += [("verified", _verified(record["verified"]))] if record["verified"] else []
    rows.append(("output", str(record["output"] or "nothing is written")))
    return rows


def _value(value: Any) -> str:
    if isinstance(value, list):
        return f"[{len(value)} numbers from {min(value):g} to {max(value):g}]"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _files(files: Mapping[str, Any]) -> str:
    if "num_tensors" in files:
        return f"{files['num_tensors']} trained or merged tensors, {size(files['num_bytes'])}, validated"
    if files.get("rewritten"):
        return "weights are loaded and saved"
    how = "weights hard linked" if files["linked"] else "copied byte for byte"
    left_out = f"; left out: {', '.join(files['left_out'])}" if files["left_out"] else ""
    return f"{files['num_files']} files, {size(files['num_bytes'])}, {how}{left_out}"


def size(num_bytes: int) -> str:
    """Returns a number of bytes as people read it."""
    for unit, name in _UNITS:
        if num_bytes >= unit:
            return f"{num_bytes / unit:.1f} {name}"
    return f"{num_bytes} bytes"


def _verified(verified: Mapping[str, Any]) -> str:
    if "gguf" in verified:
        return str(verified["gguf"])
    deviation = verified["max_frequency_deviation"]
    text = f"read back by transformers {verified['transformers']}: frequencies within {deviation:.1g}"
    if "logits" in verified:
        logits = verified["logits"]
        text += f"; logits of a fresh process within {logits['max_relative_difference']:.1g} up to position {logits['last_position']}"
    return text
