"""Which rotary keys and tensors of a GGUF file llama.cpp reads, and which it ignores: two files, one answer or two.

Needs ``ROPECTL_LLAMACPP_PYTHON``, as ``test_llamacpp.py``; no model.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from ropectl.gguf.architectures import DIVISOR_TENSORS_READ
from tests.gguf.loadable_gguf import CONTEXT, HEADS, HIDDEN, VOCABULARY, write_loadable
from tests.slow.test_llamacpp import llamacpp, mean_difference
from tests.slow.test_llamacpp import python as python
from tests.tolerances import RUNTIME

pytestmark = pytest.mark.slow

PAIRS = HIDDEN // HEADS // 2
IDS = [(37 * i + i * i) % (VOCABULARY - 3) + 3 for i in range(120)]
POSITIONS = list(range(5, 120, 6))
FREQS = "rope_freqs.weight"
YARN = {"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.original_context_length": 128}
LINEAR = {"rope.scaling.type": "linear", "rope.scaling.factor": 4.0}

Contents = tuple[dict[str, Any], dict[str, list[float]]]


def scores(python: str, folder: Path, architecture: str, contents: Contents) -> list[float]:
    file = write_loadable(folder / "model.gguf", architecture, *contents)
    return llamacpp(python, file, IDS, POSITIONS, folder)


@pytest.mark.parametrize("architecture", ["llama", "qwen2"])
@pytest.mark.parametrize(
    ("left", "right"),
    [
        pytest.param(({"rope.scaling.factor": 4.0}, {}), (LINEAR, {}), id="a missing type is linear"),
        pytest.param(({"rope.scale_linear": 4.0}, {}), (LINEAR, {}), id="the old name of the factor"),
        pytest.param(({**LINEAR, "rope.scaling.type": "none"}, {}), ({}, {}), id="type none ignores the factor"),
        pytest.param(({**YARN, "rope.scaling.yarn_beta_fast": 8.0}, {}), (YARN, {}), id="betas are not read"),
        pytest.param(
            ({**YARN, "rope.scaling.yarn_attn_factor": 3.0}, {}), (YARN, {}), id="yarn_attn_factor is overwritten"
        ),
        pytest.param(
            ({**YARN, "rope.scaling.original_context_length": CONTEXT}, {}),
            ({"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0}, {}),
            id="the declared length is the trained one where no key says it",
        ),
    ],
)
def test_the_same(python: str, tmp_path: Path, architecture: str, left: Contents, right: Contents) -> None:
    results = [scores(python, tmp_path, architecture, contents) for contents in (left, right)]
    assert results[0] == results[1]


@pytest.mark.parametrize("architecture", ["llama", "qwen2"])
@pytest.mark.parametrize(
    ("left", "right"),
    [
        pytest.param((LINEAR, {}), ({}, {}), id="linear"),
        pytest.param((YARN, {}), (LINEAR, {}), id="yarn"),
        pytest.param(({**YARN, "rope.scaling.attn_factor": 2.0}, {}), (YARN, {}), id="attn_factor with yarn"),
        pytest.param(
            ({"rope.scaling.type": "none", "rope.scaling.attn_factor": 2.0}, {}),
            ({"rope.scaling.type": "none"}, {}),
            id="attn_factor with none",
        ),
    ],
)
def test_different(python: str, tmp_path: Path, architecture: str, left: Contents, right: Contents) -> None:
    results = [scores(python, tmp_path, architecture, contents) for contents in (left, right)]
    assert mean_difference(*results) > 10 * RUNTIME


def test_divisors_divide(python: str, tmp_path: Path) -> None:
    divided = scores(python, tmp_path, "llama", ({"rope.scaling.type": "none"}, {FREQS: [4.0] * PAIRS}))
    assert mean_difference(divided, scores(python, tmp_path, "llama", (LINEAR, {}))) < RUNTIME


def test_divisors_and_a_factor_multiply(python: str, tmp_path: Path) -> None:
    both = scores(python, tmp_path, "llama", ({"rope.scaling.factor": 2.0}, {FREQS: [2.0] * PAIRS}))
    assert mean_difference(both, scores(python, tmp_path, "llama", (LINEAR, {}))) < RUNTIME


def test_a_huge_divisor_stops_a_pair(python: str, tmp_path: Path) -> None:
    """As a base so large that nothing but the first pair turns."""
    stopped = scores(python, tmp_path, "llama", ({}, {FREQS: [1.0] + [1e30] * (PAIRS - 1)}))
    other = scores(python, tmp_path, "llama", ({"rope.freq_base": 1e38}, {FREQS: [1.0, *[1e20] * (PAIRS - 1)]}))
    assert all(map(math.isfinite, stopped)) and mean_difference(stopped, other) < RUNTIME


def test_a_file_with_divisors_does_not_load_where_no_graph_reads_them(python: str, tmp_path: Path) -> None:
    assert "qwen2" not in DIVISOR_TENSORS_READ and "llama" in DIVISOR_TENSORS_READ
    with pytest.raises(AssertionError, match="Failed to init"):
        scores(python, tmp_path, "qwen2", ({}, {FREQS: [1.0] * PAIRS}))
