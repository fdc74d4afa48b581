"""The section of the model card that says what was done, between two markers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ropectl.rope.geometry import describe_rotary_dim

BEGIN, END = "<!-- ropectl:begin -->", "<!-- ropectl:end -->"


def with_section(card: str, record: Mapping[str, Any]) -> str:
    """Returns a model card with the section of this patch in it, in place of an earlier patch's.

    Args:
        card: The text of README.md as it was; empty if there was none.
        record: What ``patch`` reports.
    """
    end_of_line = "\r\n" if "\r\n" in card else "\n"
    section = _section(record).replace("\n", end_of_line)
    between = re.compile(f"{BEGIN}(?:(?!{BEGIN}).)*?{END}", re.DOTALL)  # a marker left alone ends nothing
    if between.search(card):
        return between.sub(lambda _: section, card, count=1)
    gap = 2 * end_of_line
    return f"{card.rstrip()}{gap}{section}{end_of_line}".lstrip() if card else f"{section}\n"


def _section(record: Mapping[str, Any]) -> str:
    geometry = record["geometry"]
    frozen = f", frozen at {record['seq_len']} tokens" if record["seq_len"] else ""
    weights = "weights were loaded and saved anew" if record["files"].get("rewritten") else "weights are unchanged"
    if record.get("training"):
        weights = "weights were fine-tuned"
    lines = [
        BEGIN,
        "## Context extension",
        "",
        f"The rotary position embedding of `{record['source']['name']}` was scaled with ropectl; {weights}.",
        "",
        f"- method: `{_short(record['method'])}`{frozen}",
        f"- trained: {geometry['original_max_position_embeddings']} tokens, rope_theta {geometry['rope_theta']:g}, "
        f"{describe_rotary_dim(geometry)}",
        f"- meant for: {record['target_length']} tokens",
        *_training(record.get("training")),
        "",
        "How to run it:",
        "",
    ]
    for step in record["next_steps"]:
        if step["command"]:
            lines += [f"{step['runtime']}:", "", "```", step["command"], "```", ""]
        else:
            lines += [f"{step['runtime']}: not possible. {step['refusal']}", ""]
    lines += ["Positions can be computed that far; how well the model works there is a matter of measurement.", END]
    return "\n".join(lines)


def _training(training: Mapping[str, Any] | None) -> list[str]:
    if training is None:
        return []
    settings = training["settings"]
    chosen = f", the weights of step {training['step']}" if training["step"] != training["steps"] else ""
    return [
        f"- fine-tuning: {settings['strategy']}, {training['steps']} steps of {settings['batch_size']} sequences of "
        f"{training['seq_len']} tokens (`{settings['text']}`), positions {settings['positions']}, peak learning rate "
        f"{training['learning_rate']:g}{chosen}"
    ]


def _short(spec: str, width: int = 200) -> str:
    return spec if len(spec) <= width else spec[:width] + "..."
