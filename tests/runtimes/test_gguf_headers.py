"""The rules of llama.cpp read incomplete and contradictory configs as its converter did (``collect_gguf_headers.py``)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ropectl.json_reading import read_object
from ropectl.rope.frequencies import base_inv_freq
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.methods.yarn import blend_by_index
from ropectl.runtimes.llama_cpp import LlamaCpp
from tests.runtimes.cases import facts, files_in_the_wild
from tests.tolerances import GGUF_FLOAT32

HEADERS = read_object(Path(__file__).with_name("gguf_headers.json"))
FILES = files_in_the_wild()


def table(header: dict[str, Any]) -> list[float]:
    """What llama.cpp computes from these keys of a file."""
    theta = header["rope.freq_base"]
    divisors, kind = header.get("divisors"), header.get("rope.scaling.type")
    if divisors:
        return [value / divisor for value, divisor in zip(base_inv_freq(64, theta), divisors, strict=True)]
    if kind == "yarn":
        geometry = RopeGeometry(64, theta, header["rope.scaling.original_context_length"])
        return list(blend_by_index(geometry, header["rope.scaling.factor"], 32.0, 1.0, True))
    scale = header["rope.scaling.factor"] if kind == "linear" else 1.0
    return [value / scale for value in base_inv_freq(64, theta)]


@pytest.mark.parametrize("name", HEADERS)
def test_a_config_is_read_as_the_converter_reads_it(name: str) -> None:
    header, reading = HEADERS[name], LlamaCpp().readings(facts(FILES[name]))[0]
    assert bool(reading.loads) == ("stops" not in header), reading.problems
    if reading.loads:
        assert reading.inv_freq == pytest.approx(table(header), rel=GGUF_FLOAT32)
        assert reading.usable_length == header["context_length"]


def test_every_file_was_converted() -> None:
    assert HEADERS.keys() == FILES.keys() and sum("stops" in header for header in HEADERS.values()) >= 2
