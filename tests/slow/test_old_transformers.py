"""Old versions of transformers against the rules, and against what was kept of running them.

bash scripts/runtimes/install_old_transformers.sh DIR
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

from ropectl.runtimes.evidence import releases
from scripts.runtimes.collect_transformers import LENGTHS, collect
from scripts.runtimes.rope_files import FamilyFiles, families, family_files
from tests.runtimes.cases import CASES, lengths_of
from tests.runtimes.test_transformers import assert_same
from tests.runtimes.test_transformers_runs import golden
from tests.slow.real_model import named_by
from tests.tolerances import PARITY

pytestmark = pytest.mark.slow

#: The version of a row -> the release that was run; the last is the installed one, which the default tests ask.
VERSIONS = {name: release.version for name, release in list(releases("transformers").items())[:-1]}
SCRIPT = Path(__file__).parent.parent / "runtimes" / "real_rotary.py"


def installed(release: str) -> Path:
    folder = named_by("ROPECTL_OLD_TRANSFORMERS", "a folder of scripts/runtimes/install_old_transformers.sh")
    return folder / f"tf{release}"


@cache
def real_results(release: str) -> dict[str, Any]:
    """One process per version, over all cases."""
    task = {"configs": CASES, "lengths": {name: lengths_of(config) for name, config in CASES.items()}}
    environment = {**os.environ, "PYTHONPATH": str(installed(release)), "TRANSFORMERS_VERBOSITY": "error"}
    command = [sys.executable, str(SCRIPT)]
    done = subprocess.run(command, input=json.dumps(task), env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout.splitlines()[-1])
    assert answer["version"] == release
    return dict(answer["results"])


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("version", VERSIONS)
def test_the_llama_of_an_old_version(version: str, name: str) -> None:
    assert_same(CASES[name], version, real_results(VERSIONS[version])[name])


@cache
def subjects() -> list[FamilyFiles]:
    return [family_files(model_type) for model_type in families()]


@pytest.mark.parametrize("version", VERSIONS)
def test_every_family_computes_what_was_kept(version: str, tmp_path: Path) -> None:
    """The whole collection again, from nothing."""
    release, kept = VERSIONS[version], golden()
    found = collect(tmp_path, release, installed(release), subjects())["results"]
    assert found.keys() == kept["runs"][version].keys() and kept["lengths"] == LENGTHS
    for family, results in found.items():
        for (name, result), numbers in zip(results.items(), kept["runs"][version][family], strict=True):
            assert isinstance(result, str) == (numbers is None), (family, name, result)
            for (inv_freq, factor), number in zip(result if numbers else (), numbers or (), strict=True):
                before, factor_before = kept["tables"][number]
                assert inv_freq == pytest.approx(before, rel=PARITY), (family, name)
                assert factor == pytest.approx(factor_before, rel=PARITY), (family, name)
