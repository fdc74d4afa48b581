"""Which readings are compared: each table once, the meant one first, under the name of what went wrong."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from ropectl.checkpoint.verify.judgement import judge
from ropectl.checkpoint.verify.known_readings import known_readings
from ropectl.checkpoint.verify.passages import Passage, below_and_beyond, spread
from ropectl.hf.config.geometry import describe_rope
from ropectl.rope.methods.yarn import Yarn
from ropectl.rope.registry import parse_method
from ropectl.runtimes.facts import config_facts

CONFIG: dict[str, Any] = {
    "model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32, "num_hidden_layers": 2, "head_dim": 128,
    "max_position_embeddings": 32768, "rope_theta": 500_000.0,
    "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 8192},
}  # fmt: skip


def readings(config: dict[str, Any], lengths: tuple[int, ...] = (8192, 10_000)) -> list[Any]:
    rope = describe_rope(config)
    facts = config_facts(config, rope, "model")
    return known_readings(rope.method, rope.geometry, facts.target_length, lengths, facts)


def test_yarn() -> None:
    found = readings(CONFIG)
    codes = [reading.code for reading in found]
    assert codes[:2] == ["as-meant", "unscaled"] and len(codes) == len(set(codes))
    assert {"attention-factor-missing", "attention-factor-twice", "theta-dropped", "factor-twice"} <= set(codes)
    assert {"original-length-ignored", "type-pi", "type-ntk", "unscaled-theta-dropped"} <= set(codes)
    # What the rules of a runtime make of it is kept with the reading that rotates alike.
    assert any(each.startswith("transformers 5") for each in found[0].runtimes)
    assert "transformers 4.44" in next(each for each in found if each.code == "original-length-ignored").runtimes
    tables = [each.beyond.frequencies(10_000) for each in found]
    a = 0.1 * math.log(4) + 1
    by_code = dict(zip(codes, tables, strict=True))
    assert by_code["attention-factor-missing"].attention_factor == 1.0
    assert by_code["attention-factor-twice"].attention_factor == pytest.approx(a * a)
    assert by_code["unscaled"].inv_freq[5] == pytest.approx(500_000.0 ** (-10 / 128))
    assert by_code["unscaled-theta-dropped"].inv_freq[5] == pytest.approx(10_000.0 ** (-10 / 128))
    assert by_code["factor-twice"].inv_freq[-1] == pytest.approx(by_code["unscaled"].inv_freq[-1] / 16)
    assert all(one != other for k, one in enumerate(tables) for other in tables[:k])


def test_an_unscaled_model() -> None:
    """Nothing to lose but the base; a reading that rotates as the model does is no reading of its own."""
    config = {key: value for key, value in CONFIG.items() if key != "rope_scaling"}
    assert [each.code for each in readings(config, (10_000,))] == ["as-meant", "theta-dropped"]
    assert [each.code for each in readings({**config, "rope_theta": 1e4}, (10_000,))] == ["as-meant"]


def test_an_attention_factor_that_was_taken_away() -> None:
    """A = 1 is meant, and llama.cpp and sglang put YaRN's own in its place."""
    block = {**CONFIG["rope_scaling"], "attention_factor": 1.0}
    found = {each.code: each for each in readings({**CONFIG, "rope_scaling": block})}
    assert "attention-factor-missing" not in found
    factor = found["attention-factor-misread"].beyond.frequencies(10_000).attention_factor
    assert factor == pytest.approx(0.1 * math.log(4) + 1)


def test_lists_of_longrope() -> None:
    """The short list everywhere, the long one everywhere; below the trained length only what is asked there counts."""
    short, long = [1.0 + k / 64 for k in range(64)], [1.0 + k for k in range(64)]
    block = {"rope_type": "longrope", "short_factor": short, "long_factor": long, "factor": 4.0}
    block |= {"original_max_position_embeddings": 8192, "attention_factor": 1.1}
    config = {**CONFIG, "rope_scaling": block}
    static = [each for each in readings(config) if each.code == "static-per-server"]
    divisors = [500_000.0 ** (-2 / 128) / each.below.frequencies(8000).inv_freq[1] for each in static]
    assert {round(divisor, 6) for divisor in divisors} == {short[1], long[1]}
    codes = [each.code for each in readings(config, (4000,))]
    assert codes.count("static-per-server") <= 1


def test_latent_attention_keeps_its_softmax_scale() -> None:
    rope = describe_rope(CONFIG)
    found = known_readings(rope.method, rope.geometry, 32768, [8192, 10_000], is_latent=True)
    assert {type(each.beyond.method).__name__ for each in found} == {"Yarn", "NoScaling"}
    assert isinstance(parse_method("yarn:factor=4"), Yarn)


def test_passages() -> None:
    assert below_and_beyond(10, [1, 3, 4, 9], 4) == [Passage(4, (1, 3)), Passage(10, (4, 9))]
    assert below_and_beyond(10, [1, 9], 64) == [Passage(10, (1, 9))]
    assert spread(10, None) == list(range(1, 10)) and spread(100, 3) == [1, 50, 99]


NOISE = [((37 * k * k + 11 * k) % 101 - 50) / 50 for k in range(400)]
BEYOND = [k >= 200 for k in range(400)]


def shifted(size: float, step: int) -> list[float]:
    return [-2.0 + size * NOISE[(step * k) % 400] for k in range(400)]


MEANT, OTHER, NEAR = shifted(1.0, 1), shifted(1.0, 7), [x + 1e-5 for x in shifted(1.0, 1)]


def said(of: list[float], noise: float) -> list[float]:
    return [value + noise * NOISE[(13 * k + 5) % 400] for k, value in enumerate(of)]


def test_the_nearest_wins_by_its_margin() -> None:
    for noise in (0.0, 1e-3, 0.05, 0.3):
        for right, of in enumerate((MEANT, OTHER)):
            judged = judge(said(of, noise), [MEANT, OTHER], BEYOND)
            assert judged.winner == right and judged.margin is not None and judged.margin.low > 0
            assert judged.alike == [] and judged.reason == ""


def test_what_cannot_be_told_apart_is_not_claimed() -> None:
    judged = judge(said(MEANT, 0.05), [MEANT, NEAR, OTHER], BEYOND)
    assert judged.winner == 0 and judged.alike == [1]  # the difference is less than any arithmetic
    between = [(a + b) / 2 for a, b in zip(MEANT, OTHER, strict=True)]
    judged = judge(between, [MEANT, OTHER], BEYOND)
    assert judged.winner is None


def test_none_of_them() -> None:
    assert "more than the arithmetic" in judge(shifted(1.0, 3), [MEANT, OTHER], BEYOND).reason
    grown = [a + (0.5 if past else 0.01) * n for a, past, n in zip(MEANT, BEYOND, NOISE, strict=True)]
    assert "noise does not grow so" in judge(grown, [MEANT, OTHER], BEYOND).reason
    part = [a + 0.35 * (b - a) for a, b in zip(MEANT, OTHER, strict=True)]
    assert "lies between known readings" in judge(part, [MEANT, OTHER], BEYOND).reason
    # A cache in half precision errs more with the length, but far less than readings differ.
    little = [a + (0.02 if past else 0.002) * n for a, past, n in zip(MEANT, BEYOND, NOISE, strict=True)]
    assert judge(little, [MEANT, OTHER], BEYOND).winner == 0


def test_a_fault_is_not_named_where_it_explains_less_than_it_leaves() -> None:
    """An unknown change that lies nearer to a fault than to what was meant, and far from both."""
    generator = random.Random(5)
    unknown = [generator.gauss(0, 0.2) for _ in MEANT]
    theirs = [a + u for a, u in zip(MEANT, unknown, strict=True)]
    fault = [a + 0.5 * u + generator.gauss(0, 0.1) for a, u in zip(MEANT, unknown, strict=True)]
    judged = judge(theirs, [MEANT, fault], BEYOND)
    assert judged.nearest == 1 and not judged.fits[0].fits
    assert judged.winner is None and "leaves" in judged.reason
