"""Some of what sglang's model classes ask of its rotary classes again: what came out then comes out now.

ROPECTL_SGLANG_WHEEL=FOLDER (the wheel of sglang, unpacked) python -m pytest -m slow tests/slow/test_sglang_again.py
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ropectl.runtimes.evidence import Outcome, releases
from ropectl.runtimes.sglang import VERSION
from scripts.runtimes.collect_sglang import CONFIGS, outcome
from scripts.runtimes.forms import form_facts
from tests.slow.real_model import named_by

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).parents[2] / "scripts" / "runtimes" / "sglang_classes.py"
PAIRS = [
    ("llama", "yarn"),
    ("llama", "yarn:attention_factor=1"),
    ("gemma2", "pi"),
    ("mixtral", "llama3"),
    ("deepseek_v3", "mscale pair, equal"),
    ("cohere", "dynamic-yarn, frozen"),
]


@pytest.fixture(scope="module")
def answers() -> dict[str, Any]:
    wheel = named_by("ROPECTL_SGLANG_WHEEL", "a folder with an unpacked wheel of sglang")
    configs = json.loads(CONFIGS.read_text())
    found = {f"{family} {written}": form_facts(configs[family], written) for family, written in PAIRS}
    task = {"folder": str(wheel), "configs": {name: dict(facts.config) for name, facts in found.items() if facts}}
    done = subprocess.run(
        [sys.executable, str(SCRIPT)], input=json.dumps(task), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    results = json.loads(done.stdout.splitlines()[-1])["results"]
    return {name: outcome(results[name], facts) for name, facts in found.items() if facts}


@pytest.mark.parametrize(("family", "written"), PAIRS)
def test_a_run_again(answers: dict[str, Any], family: str, written: str) -> None:
    then, now = releases("sglang")[VERSION].runs[family][written], Outcome(**answers[f"{family} {written}"])
    assert (now.form, now.served, now.agrees) == (then.form, then.served, then.agrees)
    assert (now.stops is None) == (then.stops is None)
