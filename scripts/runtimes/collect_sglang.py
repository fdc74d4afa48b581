"""Asks sglang's own model classes for their rotary tables, for every family and form, and keeps what came of it as data.

    pip download --no-deps sglang==0.5.23 && unzip -d ~/sglang sglang-0.5.23-*.whl
    python scripts/runtimes/collect_sglang.py --folder ~/sglang [--python PYTHON]

``--python`` names a Python with the transformers release that sglang asks for, and torch; by default this one. Nothing is resumed: it
takes a minute or two. What differs from the frequencies that were meant is a finding about sglang, what stops is one too; a family
whose layer cannot be made without a GPU is left out. Writes ``ropectl/runtimes/runs/sglang.json``.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES as CLASSES

from ropectl.runs import write_json
from ropectl.runtimes.evidence import RUNS, form_of
from ropectl.runtimes.judge import DEVIATION_TOLERANCE, NORMALIZED, relative_difference
from ropectl.runtimes.runtime import CheckpointFacts
from ropectl.runtimes.views import v5_block
from scripts.model_types import census
from scripts.runtimes import forms
from scripts.runtimes.collect_vllm import base_config

ROW = "0.5.23"
#: The unscaled configs that were run, for the test that replays them.
CONFIGS = Path(__file__).parents[2] / "tests" / "runtimes" / "sglang_configs.json"


def tasks(model_types: list[str]) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, CheckpointFacts]]]:
    """Returns the unscaled configs, and what is asked of each: facts by form."""
    configs, asked = {}, {}
    for model_type in model_types:
        names = CLASSES[model_type]
        try:
            config = base_config(model_type)
        except Exception as error:  # no small config of that type
            print(f"{model_type}: {type(error).__name__}", file=sys.stderr)
            continue
        config["architectures"] = [names if isinstance(names, str) else names[0]]
        facts = {name: forms.form_facts(config, name) for name in forms.names()}
        configs[model_type] = config
        asked[model_type] = {name: each for name, each in facts.items() if each is not None}
    return configs, asked


def outcome(answer: dict[str, Any], facts: CheckpointFacts) -> dict[str, Any] | None:
    """Returns what came of one form; None where sglang has no class, or its layer was not made without a GPU."""
    result: dict[str, Any] = {"form": form_of(v5_block(facts))}
    if "error" in answer:
        is_ours = (
            answer.get("where") == "registry" or "no layer asked" in answer["error"] or "sglang" in answer["error"]
        )
        return None if is_ours else {**result, "stops": answer["error"][:300]}
    kinds = facts.section.get("layer_types") or []
    tables = [
        table
        for table in answer["tables"]
        if facts.layer_type is None or len(kinds) <= table["layer"] or kinds[table["layer"]] == facts.layer_type
    ]
    errors = [table["error"] for table in tables if "error" in table]
    if errors or not tables:
        return {**result, "stops": errors[0][:300]} if errors else None
    found = tables[0]["found"]
    trained, target = facts.lengths[0], facts.target_length
    worst = 0.0
    for which, length in (("short", trained), ("long", target)):
        table, meant = found.get(which) or found["all"], facts.meant(length)
        if len(table["inv_freq"]) != len(meant.inv_freq):
            return {**result, "deviation": 1.0, "served": answer["length"]}
        factor = abs(table["attention_factor"] / meant.attention_factor - 1)
        worst = max(worst, relative_difference(table["inv_freq"], meant.inv_freq))
        worst = worst if facts.model_type in NORMALIZED else max(worst, factor)
    return {**result, "deviation": float(f"{worst:.2e}"), "served": answer["length"]}


def own_configs(folder: Path) -> set[str]:
    """Returns the model types that sglang reads by a config class of its own, and not by that of transformers."""
    files = (folder / "sglang/srt/configs").glob("*.py")
    return {found for file in files for found in re.findall(r"model_type = [\"']([\w.-]+)", file.read_text())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model_types", nargs="*", help="default: all that can be scaled")
    parser.add_argument("--folder", type=Path, required=True, help="an unpacked wheel of sglang")
    parser.add_argument("--python", type=Path, default=Path(sys.executable))
    arguments = parser.parse_args()
    configs, asked = tasks(arguments.model_types or census().supported)
    task = {
        f"{model_type} {name}": dict(facts.config) for model_type, each in asked.items() for name, facts in each.items()
    }
    done = subprocess.run(
        [arguments.python, Path(__file__).with_name("sglang_classes.py")],
        input=json.dumps({"folder": str(arguments.folder), "configs": task}), capture_output=True, text=True, check=True,
    )  # fmt: skip
    answers = json.loads(done.stdout.splitlines()[-1])["results"]
    runs, classes = {}, {}
    own = own_configs(arguments.folder)
    for model_type, each in asked.items():
        unscaled = answers.get(f"{model_type} none", {"error": "no such form"})
        if model_type != "gpt_oss" and "tables" not in unscaled:
            print(f"{model_type}: {unscaled.get('error', '')[:200]}", file=sys.stderr)
            continue
        if model_type in own:
            print(f"{model_type}: read by a config class of sglang, which was not run", file=sys.stderr)
            continue
        outcomes = {name: outcome(answers[f"{model_type} {name}"], facts) for name, facts in each.items()}
        kept = {name: found for name, found in outcomes.items() if found is not None}
        if kept.get("none", {}).get("deviation", 0.0) > DEVIATION_TOLERANCE:
            print(f"{model_type}: differs unscaled, which no scaling is to blame for", file=sys.stderr)
            continue
        if kept:
            runs[model_type], classes[model_type] = kept, unscaled.get("class", "")
    how = "its own model and rotary classes, without a GPU"
    data = {ROW: {"version": ROW, "date": date.today().isoformat(), "source": how, "classes": classes, "runs": runs}}
    write_json(RUNS / "sglang.json", data)
    CONFIGS.write_text(
        json.dumps({model_type: configs[model_type] for model_type in runs}, indent=1, sort_keys=True) + "\n"
    )


if __name__ == "__main__":
    main()
