"""A record of every kind that a report can be made of, in all shapes that tests know, with ordinary names and with hostile ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ropectl.advise.inspection import inspect_rope
from ropectl.records import MetricsLine, ReadingFit, RuntimeCheckRecord, to_json
from ropectl.records.reading import AnyRecord, read_as, read_record
from ropectl.report.record_views import ShownRecord, view_of
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.registry import parse_method
from tests.report import records, records_to_draw

STORED = Path(__file__).parents[2] / "docs" / "records"

#: Everything that is markup somewhere, ligatures, scripts that fonts lack, and characters that do something.
HOSTILE = (
    "\\input{/etc/passwd} $x_1^2$ 100% #1 & ~ {a} \"q\" 'r' ''s'' `t` ,, << >> -- --- [u] <v> |w| * - + \\\\ \\end{table} "
    "_{} \u4e2d\u6587 caf\u00e9 \u0142\u0153 \U0001f389 \u03b1 \u202e \x00 \ufb01 e\u0301"
)

#: Keys whose texts are names of the user's, or messages.
NAMES = ("model", "models", "text", "errors", "verdict", "reasons", "task", "documents", "name", "reason")


def runtime_check(meant: bool = True) -> dict[str, Any]:
    """A record of ``verify-runtime``."""
    readings = [
        _fit("as-meant", "as the checkpoint means it", 1.5e-3, meant),
        _fit("unscaled", "without any scaling, over the whole of the declared length", 0.4, not meant),
    ]
    record = RuntimeCheckRecord(
        model="my-model-yarn4", method="yarn:factor=4", geometry=RopeGeometry(**records.GEOMETRY), runtime="vllm",
        runtime_version="vllm 0.32", num_tokens=4095, num_compared=4094, num_past_trained_length=3583,
        nll_transformers=2.5, nll_runtime=2.501, mean_difference=1.5e-3, mean_difference_past_trained_length=1.6e-3,
        max_difference=0.02, allowed=1e-3, agrees=False, verdict="as-meant" if meant else "unscaled", as_meant=meant,
        noise=1.5e-3, margin=0.4, margin_low=0.3, margin_high=0.5, target_length=2048, readings=readings,
        skipped={"ntk": "not for this family"}, device="cuda:0", dtype="float32",
    )  # fmt: skip
    return to_json(record)


def _fit(code: str, text: str, far: float, fits: bool) -> ReadingFit:
    beyond = None if code == "unscaled" else 2 * far
    return ReadingFit(
        code=code, text=text, runtimes=["vllm 0.9", "sglang 0.4"], nll=2.5, distance=far, distance_below=far / 2,
        distance_beyond=beyond, largest=10 * far, behind=far, behind_low=far / 2, behind_high=2 * far, fits=fits,
    )  # fmt: skip


def every_json() -> dict[str, dict[str, Any]]:
    """Records as commands write them, by name."""
    geometry = RopeGeometry(**records.GEOMETRY)
    return {
        "quickstart": json.loads((STORED / "quickstart.json").read_text()),
        "smollm2": json.loads((STORED / "smollm2.json").read_text()),
        "comparison": records.comparison(),
        **{f"small {name}": json for name, json in records_to_draw.every_record().items()},
        "twenty lengths": records.comparison(lengths=[1000 * n for n in range(1, 21)]),
        "forty methods": records.comparison([*records.METHODS, *(f"yarn:factor={n}" for n in range(2, 36))]),
        "several models": records.several_models(),
        "strange": records.strange_numbers(),
        "one length": records.comparison(lengths=(512,)),
        **{f"perplexity {name}": records.perplexity(name) for name in ("prefix", "sliding", "tail", "key-tokens")},
        "perplexity yarn": records.perplexity("prefix", "yarn"),
        "passkey": records.passkey(),
        "passkey depths": records.passkey(num_depths=17),
        "passkey position": records.passkey("position"),
        "tasks": records.tasks(),
        "tasks one length": records.tasks(1),
        "inspection": to_json(inspect_rope(geometry, parse_method("yarn:factor=4"))),
        "finetune": records.finetuning(),
        "harness": records.harness(),
        "runtime check": runtime_check(),
        "runtime fault": runtime_check(meant=False),
        "unfinished training": {"settings": {"model": "m", "method": "pi", "steps": 60, "text": "a_b"}, "versions": {}},
    }


def shown(json: dict[str, Any], run: str = "") -> ShownRecord:
    """A record as writers take it; trainings with their metrics."""
    record: AnyRecord = read_record(json, "The record of a test")
    metrics = [read_as(MetricsLine, line, "metrics", "finetune") for line in records_to_draw.metrics()]
    return ShownRecord(view_of(record), record, metrics if record.kind in ("finetune", "run") else (), run)


def renamed(value: Any, text: str, key: str = "") -> Any:
    """The same record with every name and message replaced, methods too where no number depends on them."""
    if isinstance(value, dict):
        return {name: renamed(item, text, name) for name, item in value.items()}
    if isinstance(value, list):
        return [renamed(item, text, key) for item in value]
    return text if isinstance(value, str) and key in NAMES else value
