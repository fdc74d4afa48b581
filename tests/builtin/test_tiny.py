"""The shipped model does what it is for: it uses its window, fails past it, and scaling repairs that."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from safetensors import safe_open

from ropectl.builtin import TINY_MODEL_DIR
from ropectl.evaluate.config import PerplexityConfig
from ropectl.evaluate.setup import Setup
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.registry import parse_method
from ropectl.tasks.prompt_builder import PromptBuilder
from tests.evaluate.measured import prefix_points, tail_points
from tests.evaluate.retrieval.measuring import measure_passkey

pytestmark = pytest.mark.process

DEPTHS = (0.0, 0.25, 0.5, 0.75, 1.0)


@pytest.fixture(scope="module")
def tiny() -> Setup:
    return Setup.of(PerplexityConfig(documents=12, device="cpu"))


def passkeys(tiny: Setup, spec: str, length: int, trials: int, **options: Any) -> list[float]:
    builder = PromptBuilder(tiny.tokenizer, tiny.bos_token_id, seed=123)
    [measured] = measure_passkey(
        tiny.model, parse_method(spec), tiny.geometry, builder, [length], DEPTHS, trials, **options
    )
    return [cell.accuracy for cell in measured.depths]


def test_is_small_and_described(tiny: Setup) -> None:
    assert (TINY_MODEL_DIR / "model.safetensors").stat().st_size < 8_000_000
    with safe_open(TINY_MODEL_DIR / "model.safetensors", "pt") as weights:
        assert {weights.get_slice(name).get_dtype() for name in weights.keys()} == {"BF16"}  # noqa: SIM118
    assert tiny.geometry == RopeGeometry(32, 10_000.0, 512)
    card = (TINY_MODEL_DIR / "README.md").read_text()
    assert all(word in card for word in ("Steps: ", "training time", "final training loss", "standard-library"))


def test_retrieves_at_every_depth_of_its_trained_length(tiny: Setup) -> None:
    assert min(passkeys(tiny, "none", 512, trials=8)) >= 0.95


def test_more_context_helps_inside_the_window(tiny: Setup) -> None:
    lengths = [64, 128, 256, 512]
    documents = tiny.documents(lengths)
    points = tail_points(tiny.model, parse_method("none"), tiny.geometry, documents, lengths, 32)
    losses = [point.nll_sum / point.num_tokens for point in points]
    assert losses[0] > losses[1] > losses[3] and losses[0] - losses[-1] > 0.08


def test_fails_past_the_window_and_is_repaired(tiny: Setup) -> None:
    lengths = [512, 2048]
    documents = tiny.documents(lengths)
    documents = replace(documents, documents=documents.documents[:2], clusters=[])
    measured = {
        spec: prefix_points(tiny.model, parse_method(spec), tiny.geometry, documents, lengths)
        for spec in ("none", "yarn:factor=4")
    }
    perplexity = {spec: [point.perplexity or 0.0 for point in points] for spec, points in measured.items()}
    assert perplexity["none"][1] > 2 * perplexity["none"][0]
    assert perplexity["yarn:factor=4"][1] < perplexity["none"][1] / 2
    assert max(passkeys(tiny, "none", 2048, trials=1)) == 0.0
    assert min(passkeys(tiny, "yarn:factor=4", 2048, trials=2)) >= 0.5
