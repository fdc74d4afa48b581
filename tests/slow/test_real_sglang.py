"""The rules for sglang against its real rotary classes, which need no GPU.

ROPECTL_SGLANG_WHEEL=FOLDER (the wheel of sglang, unpacked) python -m pytest -m slow tests/slow/test_real_sglang.py
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ropectl.runtimes.sglang import Sglang
from tests.runtimes.cases import CASES, facts
from tests.slow.real_model import named_by
from tests.tolerances import RUNTIME_TABLE

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).parents[2] / "scripts" / "runtimes" / "real_rotary_sglang.py"


@pytest.fixture(scope="module")
def real_results() -> dict[str, Any]:
    wheel = named_by("ROPECTL_SGLANG_WHEEL", "a folder with an unpacked wheel of sglang")
    task = json.dumps({"folder": str(wheel), "configs": CASES})
    done = subprocess.run([sys.executable, str(SCRIPT)], input=task, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return dict(json.loads(done.stdout.splitlines()[-1])["results"])


@pytest.mark.parametrize("name", CASES)
def test_rules_for_sglang(name: str, real_results: dict[str, Any]) -> None:
    real = real_results[name]
    beyond = 4 * int(CASES[name]["max_position_embeddings"])  # the long list of longrope
    ours = Sglang().readings(facts(CASES[name], target=beyond))[0]
    assert ours.loads == ("error" not in real), (real, ours.problems)
    if ours.loads:
        assert ours.inv_freq == pytest.approx(real["inv_freq"], rel=RUNTIME_TABLE)
        assert ours.attention_factor == pytest.approx(real["attention_factor"], rel=RUNTIME_TABLE)
