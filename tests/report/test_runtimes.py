"""The matrix for people: 80 columns, and equal red lines once."""

from __future__ import annotations

from typing import Any

import pytest

from ropectl.report.tables.runtimes import deviation_text, runtime_parts
from ropectl.report.writers.terminal import terminal_lines
from ropectl.rope.registry import parse_method
from ropectl.runtimes.facts import patch_facts
from ropectl.runtimes.matrix import read_all
from tests.runtimes.cases import GEOMETRY, LISTS, LLAMA3, YARN, base_config, facts, scaled, v5_only


def rendered(meant: Any) -> str:
    parts = runtime_parts(read_all(meant))
    return "\n".join(line.plain for line in terminal_lines(parts, 80))


LONGROPE = "longrope:long_factor=" + ":".join(map(str, LISTS["long_factor"]))


@pytest.mark.parametrize(
    "meant",
    [
        patch_facts(base_config(), GEOMETRY, parse_method("yarn", 4.0, GEOMETRY), "./out"),
        facts(v5_only(scaled("llama3", **LLAMA3)), "llama3"),
        facts(scaled("dynamic", factor=2.0, original_max_position_embeddings=2048), "dynamic-ntk:inner_factor=2"),
        patch_facts(base_config(), GEOMETRY, parse_method(LONGROPE, 4.0, GEOMETRY), "./out"),
        facts({**scaled("proportional", factor=1.0), "max_position_embeddings": 1_048_576.0}, target=1_048_576),
        facts(scaled("some-very-long-type-of-rope"), target=1_048_576),
    ],
)
def test_fits_80_columns(meant: Any) -> None:
    text = rendered(meant)
    assert all(len(line) <= 80 for line in text.splitlines()) and "…" not in text
    assert all(name in text for name in ("transformers 4.44", "transformers 5.24", "vllm", "sglang", "llama.cpp"))


def test_equal_red_lines_of_several_versions_stand_once() -> None:
    text = " ".join(rendered(facts(v5_only(scaled("llama3", **LLAMA3)), "llama3")).split())
    assert text.count("[theta-dropped]") == 1
    assert "transformers 4.44, 4.48, 4.51, 4.53, 4.55, 4.57; vllm 0.9" in text


def test_says_what_is_only_a_matter_of_length() -> None:
    lines = rendered(facts({**scaled("yarn", **YARN), "max_position_embeddings": 4096}, "yarn")).splitlines()
    row = next(line for line in lines if line.strip().startswith("vllm 0.32"))
    assert row.split()[-3:] == ["4096", "length", "run"]


@pytest.mark.parametrize(("deviation", "text"), [(0.0, "0"), (4e-7, "0"), (0.66, "66.00%"), (176.8, "178x")])
def test_deviations(deviation: float, text: str) -> None:
    assert deviation_text(deviation) == text
