"""Real servers over HTTP, with and without a fault: the reading that ``verify-runtime --endpoint`` names.

Needs the model (see ``real_model.py``) and ``ROPECTL_LLAMACPP_PYTHON`` or ``ROPECTL_VLLM_PYTHON``, as ``test_llamacpp.py`` and
``test_vllm.py`` say. All faults, on every type of weights: ``scripts/runtimes/endpoint_faults.py``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ropectl.checkpoint.endpoint.client import Client
from tests.slow.real_model import named_by, smollm2_file

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts" / "runtimes"))
from endpoint_faults import FAULTS, FEW_TOKENS, NUM_POSITIONS, Fault, free_port, prepare, start, wait

pytestmark = pytest.mark.slow

Run = Callable[..., tuple[int, str, str]]

#: A type of weights that is right, and one fault of each kind of server.
CHOSEN = [
    next(f for f in FAULTS if (f.server, f.expected) == (server, expected))
    for server in ("llama-server", "vllm")
    for expected in ("as-meant", "unscaled", "attention-factor-twice")
]


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("work")
    prepare(smollm2_file(), folder)
    return folder


@contextmanager
def running(fault: Fault, work: Path) -> Iterator[str]:
    variable = "ROPECTL_VLLM_PYTHON" if fault.server == "vllm" else "ROPECTL_LLAMACPP_PYTHON"
    python = named_by(variable, f"the python of an environment with {fault.server}")
    port = free_port()
    process = start(fault, work, {fault.server: python}, port)
    try:
        wait(Client(f"http://127.0.0.1:{port}"), process)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(60)


@pytest.mark.parametrize("fault", CHOSEN, ids=lambda fault: str(fault.name))
def test_the_reading_is_named(fault: Fault, work: Path, ropectl: Run) -> None:
    one_by_one = fault.server == "llama-server"
    more = ("--length", str(FEW_TOKENS), "--positions", str(NUM_POSITIONS)) if one_by_one else ("--length", "700")
    with running(fault, work) as url:
        code, out, err = ropectl("verify-runtime", work / "yarn4", "--endpoint", url, *more, "--format", "json")
    assert out, err
    record = json.loads(out)
    assert (code, record["verdict"]) == (int(fault.expected != "as-meant"), fault.expected)
    assert record["server"]["kind"] == fault.server and record["server"]["evidence"]["kind"] == "run"


def test_a_converted_file_in_bfloat16_is_scaled_rightly(work: Path, ropectl: Run) -> None:
    """What is arithmetic of the weights' type is no other reading, with the runtime that is started too."""
    python = named_by("ROPECTL_LLAMACPP_PYTHON", "the python of an environment with xllamacpp")
    arguments = ("--runtime", "llama.cpp", "--python", python, "--reference", work / "yarn4", "--length", "640")
    code, out, err = ropectl("verify-runtime", work / "BF16.gguf", *arguments, "--positions", "48", "--format", "json")
    assert code == 0, err
    record = json.loads(out)
    assert record["verdict"] == "as-meant" and not record["agrees"] and record["noise"] < 0.05


def test_the_untouched_file_is_unscaled(work: Path, ropectl: Run) -> None:
    python = named_by("ROPECTL_LLAMACPP_PYTHON", "the python of an environment with xllamacpp")
    arguments = ("--runtime", "llama.cpp", "--python", python, "--reference", work / "yarn4", "--length", "640")
    code, out, err = ropectl("verify-runtime", smollm2_file(), *arguments, "--positions", "48", "--format", "json")
    assert (code, json.loads(out)["verdict"]) == (1, "unscaled"), err
