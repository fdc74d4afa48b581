"""The view of ``patch``: the plan or the result in one table, then what to type next."""

from __future__ import annotations

from typing import Any

from ropectl.records import PatchRecord, WrittenFiles
from ropectl.report.document import Part, facts
from ropectl.report.tables.derived import derived_rows
from ropectl.report.tables.words import size_text
from ropectl.rope.geometry import describe_rotary_dim
from ropectl.rope.method import short_spec


def patch_parts(record: PatchRecord) -> list[Part]:
    """Returns all facts as one table."""
    return [facts("", patch_rows(record))]


def step_lines(record: PatchRecord) -> list[str]:
    """Returns the next step of every runtime as plain lines, never wrapped."""
    lines: list[str] = []
    for step in record.next_steps:
        lines.append(f"{step.runtime}: {'' if step.command else f'not possible. {step.refusal}'}".rstrip())
        lines += [f"  {line}" for line in (step.command or "").splitlines()]
        lines += [f"  ({note})" for note in step.notes]
    return lines


def patch_rows(record: PatchRecord) -> list[tuple[str, str]]:
    """Returns the facts of a patched or tuned checkpoint, each with its name."""
    geometry, before = record.geometry, record.before
    frozen = f", frozen at {record.seq_len} tokens" if record.seq_len else ""
    trained = f"{geometry.original_max_position_embeddings} tokens, rope_theta {geometry.rope_theta:g}"
    rows = [
        ("source", record.source.name),
        ("trained", f"{trained}, {describe_rotary_dim(geometry.to_json())}"),
        ("scaling", f"{short_spec(before.method)} -> {short_spec(record.method)}{frozen}"),
    ]
    if record.layer_type:
        rows.append(("layers", record.layer_type))
    rows.append(("meant for", f"{record.target_length} tokens"))
    rows += derived_rows(record.derived, said=("trained_length", "target_length", "frozen_at"))
    if record.gguf_keys is None:
        rows.append(("rope_parameters", _named(record.rope_parameters)))
    rows.append(("max_position_embeddings", f"{before.max_position_embeddings} -> {record.max_position_embeddings}"))
    if record.gguf_keys is not None:
        rows.append(("gguf keys", _named(record.gguf_keys)))
        rows += [(f"tensor {name}", _value(values)) for name, values in (record.gguf_tensors or {}).items()]
    if record.files is not None:
        rows.append(("files", _files(record.files)))
    if record.verified:
        rows.append(("verified", _verified(record.verified)))
    return [*rows, ("output", record.output or "nothing is written")]


def _named(values: dict[str, Any]) -> str:
    return ", ".join(f"{key} {_value(value)}" for key, value in values.items())


def _value(value: Any) -> str:
    if isinstance(value, list):
        return f"[{len(value)} numbers from {min(value):g} to {max(value):g}]"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _files(files: WrittenFiles) -> str:
    size = size_text(files.num_bytes or 0)
    if files.num_tensors is not None:
        return f"{files.num_tensors} trained or merged tensors, {size}, validated"
    if files.rewritten:
        return "weights are loaded and saved"
    how = "weights hard linked" if files.linked else "copied byte for byte"
    left_out = f"; left out: {', '.join(files.left_out)}" if files.left_out else ""
    return f"{files.num_files} files, {size}, {how}{left_out}"


def _verified(verified: dict[str, Any]) -> str:
    if "gguf" in verified:
        return str(verified["gguf"])
    deviation = verified["max_frequency_deviation"]
    text = f"read back by transformers {verified['transformers']}: frequencies within {deviation:.1g}"
    if "logits" in verified:
        logits = verified["logits"]
        difference, last = logits["max_relative_difference"], logits["last_position"]
        text += f"; logits of a fresh process within {difference:.1g} up to position {last}"
    return text
