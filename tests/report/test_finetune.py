"""An estimate as people read it: every number, at 80 columns."""

from __future__ import annotations

from typing import Any

from ropectl.report.views.estimates import estimate_parts
from ropectl.report.writers.terminal import terminal_lines

GIB = 2**30


def record() -> dict[str, Any]:
    return {
        "model": "org/a-model-with-a-rather-long-name-7b-instruct",
        "method": "yarn:factor=16,beta_fast=48,beta_slow=2",
        "derived": {
            "attention_factor": {"value": 1.277259, "unit": "1", "meaning": "A, on cos and sin"},
            "ramp_pairs": {"value": [18, 41], "unit": "pairs", "meaning": "as trained up to the first"},
        },
        "seq_len": 65_536,
        "parameters": {
            "total": 6_738_415_616,
            "trained": 6_738_415_616,
            "trained_parts": {"embeddings": 262_144_000, "matrices": 6_476_005_376, "norms and biases": 266_240},
        },
        "data": {
            "steps": 400, "sequences": 25_600, "sequences_per_step": 64, "tokens": 1_677_721_600,
            "tokens_per_step": 4_194_304, "epochs": 1.25, "blocks": 20_480,
        },
        "flops": {"total": 1.23e20, "per_token": 7.35e10, "per_step": 3.1e17},
        "memory": {
            "devices": 8,
            "parts": {"weights": 25 * GIB, "optimizer": 51 * GIB, "host_activations": 3 * GIB // 2},
            "total": 76 * GIB,
            "free": 39 * GIB + GIB // 4,
            "fits": False,
            "levers": [
                {"flags": "--activation-checkpointing on", "total": 60 * GIB, "fits": False},
                {
                    "flags": "--activation-checkpointing on --loss-chunk 130 --micro-batch 1 --positions pose "
                    "--seq-len 4096 --strategy lora",
                    "total": 12 * GIB + GIB // 2,
                    "fits": True,
                },
            ],
        },
        "time": {
            "seconds_per_step": 271.5, "seconds": 108_600.0, "seconds_low": 90_000.0, "seconds_high": 144_000.0,
            "tokens_per_second": 15_449.0, "busy": False,
            "left_out": ["validation", "saving", "exchange between devices"],
        },
        "rough": ["layers differ (full_attention, sliding_attention)"],
    }  # fmt: skip


def render(content: dict[str, Any]) -> str:
    return "\n".join(line.plain for line in terminal_lines(estimate_parts(content), 80))


def test_every_number_is_there_and_no_line_is_too_long() -> None:
    text = render(record())
    assert all(len(line) <= 80 for line in text.splitlines()) and "\u2026" not in text
    words = " ".join(text.split())
    for expected in (
        "6,738,415,616; trained 6,738,415,616 (100.00%)", "1,677,721,600 tokens (4,194,304 a step), 1.25 epochs",
        "attention factor 1.277259 (A, on cos and sin)", "ramp pairs 18 to 41 (as trained up to the first)",
        "1.23e+20 operations", "25 to 40 h,", "5 min a step", "15,449 tokens/s", "exchange between devices",
        "weights 25.00", "host activations 1.50", "all, at most 76.00", "free 39.25", "each of 8 devices",
        "--activation-checkpointing on 60.00 does not fit", "12.50 fits", "It does not fit.", "sliding_attention",
    ):  # fmt: skip
        assert expected in words, expected
    assert "GiB" in text and "MiB" not in text


def test_small_models_are_told_in_smaller_units() -> None:
    content = record()
    content["memory"] |= {
        "levers": [],
        "parts": {"weights": 2**20 * 3 // 2},
        "total": 2**20 * 3 // 2,
        "free": 5 * GIB,
        "fits": True,
    }
    text = render(content)
    assert "MiB" in text and "GiB" not in text
    assert "weights 1.50" in " ".join(text.split()) and "5,120.00" in text and "It fits." in text


def test_what_fits_nowhere_needs_more_devices() -> None:
    content = record()
    assert "more devices" not in render(content)
    content["memory"]["levers"][1]["fits"] = False
    assert "It needs more devices" in render(content)


def test_time_that_could_not_be_measured_says_why() -> None:
    content = record() | {"time": {"seconds": None, "reason": "memory is too small for two layers"}}
    assert "n/a: memory is too small for two layers" in " ".join(render(content).split())
