"""The rules for old versions of transformers against their real functions.

scripts/runtimes/install_old_transformers.sh DIR
ROPECTL_OLD_TRANSFORMERS=DIR python -m pytest -m slow tests/slow/test_old_transformers.py
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.runtimes.cases import CASES, lengths_of
from tests.runtimes.test_transformers import assert_same
from tests.slow.real_model import named_by

pytestmark = pytest.mark.slow

VERSIONS = {"4.44": "4.44.2", "4.48": "4.48.3", "4.51": "4.51.3", "4.57": "4.57.6"}
SCRIPT = Path(__file__).parent.parent / "runtimes" / "real_rotary.py"


@cache
def real_results(release: str) -> dict[str, Any]:
    """One process per version, over all cases."""
    folder = (
        named_by("ROPECTL_OLD_TRANSFORMERS", "a folder of scripts/runtimes/install_old_transformers.sh")
        / f"tf{release}"
    )
    task = {"configs": CASES, "lengths": {name: lengths_of(config) for name, config in CASES.items()}}
    environment = {**os.environ, "PYTHONPATH": str(folder), "TRANSFORMERS_VERBOSITY": "error"}
    command = [sys.executable, str(SCRIPT)]
    done = subprocess.run(command, input=json.dumps(task), env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout.splitlines()[-1])
    assert answer["version"] == release
    return dict(answer["results"])


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("version", VERSIONS)
def test_rules_for_transformers_4(version: str, name: str) -> None:
    assert_same(CASES[name], version, real_results(VERSIONS[version])[name])
