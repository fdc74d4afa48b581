"""The view of ``verify-runtime``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ropectl.report.document import BAD, GOOD, Part, Sentence, facts
from ropectl.rope.method import short_spec


def runtime_check_parts(record: Mapping[str, Any]) -> list[Part]:
    """Returns the comparison as a table, and the verdict."""
    past = record["mean_difference_past_trained_length"]
    trained = record["geometry"]["original_max_position_embeddings"]
    rows = [
        ("checkpoint", record["model"]),
        ("method", f"{short_spec(record['method'])}, trained length {trained}"),
        ("runtime", record["runtime_version"]),
        ("text", f"{record['num_tokens']} tokens, {record['num_compared']} compared"),
        ("transformers", f"{record['nll_transformers']:.5f} nats a token"),
        (record["runtime"], f"{record['nll_runtime']:.5f} nats a token"),
        ("mean difference", f"{record['mean_difference']:.1e} nats a token (allowed {record['allowed']:g})"),
        (
            "past trained length",
            "no token" if past is None else f"{past:.1e}, {record['num_past_trained_length']} tokens",
        ),
        ("largest difference", f"{record['max_difference']:.1e} nats on one token"),
    ]
    agrees = record["agrees"]
    verdict = "computes the same as transformers" if agrees else "computes something else"
    return [facts("", rows), Sentence(f"{record['runtime']} {verdict}.", GOOD if agrees else BAD)]
