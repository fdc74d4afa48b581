"""The rules for vLLM against its real rotary classes and its real length rule, no weights needed.

ROPECTL_VLLM_PYTHON=/path/to/python python -m pytest -m slow tests/slow/test_real_vllm.py
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ropectl.runtimes.views import v5_view
from ropectl.runtimes.vllm import NEW, Vllm, table_rows
from tests.runtimes.cases import CASES, facts
from tests.slow.real_model import named_by
from tests.tolerances import RUNTIME_TABLE

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).parents[2] / "scripts" / "runtimes" / "real_rotary_vllm.py"


def target(config: dict[str, Any]) -> int:
    """Past the trained length, so that longrope serves its long list."""
    return int(config["max_position_embeddings"])


@pytest.fixture(scope="module")
def real_results() -> dict[str, Any]:
    python = named_by("ROPECTL_VLLM_PYTHON", "the python of an environment with vLLM")
    task = {"configs": CASES, "served": {name: target(config) for name, config in CASES.items()}}
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    environment |= {"HF_HUB_OFFLINE": "1", "VLLM_LOGGING_LEVEL": "ERROR"}
    done = subprocess.run(
        [python, SCRIPT], input=json.dumps(task), env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return dict(json.loads(done.stdout.splitlines()[-1])["results"])


@pytest.mark.parametrize("name", CASES)
def test_rules_for_vllm(name: str, real_results: dict[str, Any]) -> None:
    real, checkpoint = real_results[name], facts(CASES[name], target=target(CASES[name]))
    ours = Vllm().readings(checkpoint)[-1]
    assert ours.loads == ("error" not in real), (real, ours.problems)
    if ours.loads:
        assert ours.inv_freq == pytest.approx(real["inv_freq"], rel=RUNTIME_TABLE)
        assert ours.attention_factor == pytest.approx(real["attention_factor"], rel=RUNTIME_TABLE)
        assert ours.usable_length == real["length"]
        assert table_rows(v5_view(checkpoint), NEW, checkpoint.section) == real["rows"]
