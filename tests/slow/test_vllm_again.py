"""A handful of the runs behind vLLM's row again: what came out then comes out now.

ROPECTL_VLLM_PYTHON=/path/to/python python -m pytest -m slow tests/slow/test_vllm_again.py
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ropectl.runtimes.evidence import AGREEMENT, Outcome, releases
from scripts.runtimes.collect_vllm import ENGINE, ENGINE_ROW, Server, run_form, write_base
from tests.slow.real_model import named_by

pytestmark = pytest.mark.slow

PAIRS = [
    ("llama", "yarn:attention_factor=1"),
    ("qwen3", "dynamic-yarn, frozen"),
    ("gemma3_text", "pi"),
    ("llama", "longrope:short_factor={short},long_factor={long}"),
    ("gpt_oss", "pi"),
    ("ministral3", "llama 4 scaling"),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    python = named_by("ROPECTL_VLLM_PYTHON", "the python of an environment with vLLM")
    found = Server(python, ENGINE, tmp_path_factory.mktemp("log") / "log")
    found.start()
    yield found
    found.stop()


@pytest.mark.parametrize(("model_type", "written"), PAIRS)
def test_a_run_again(server: Server, tmp_path: Path, model_type: str, written: str) -> None:
    base = tmp_path / model_type
    write_base(model_type, base)
    then = releases("vllm")[ENGINE_ROW].runs[model_type][written]
    now = run_form(server, base, written, tmp_path)
    assert now is not None and now["form"] == then.form
    again = Outcome(now["form"], now.get("stops"), now.get("mean"), now.get("largest"))
    assert (again.stops is None) == (then.stops is None) and again.agrees == then.agrees
    if again.stops is None and then.mean is not None and then.mean > AGREEMENT:
        assert again.mean == pytest.approx(then.mean, rel=0.1)
