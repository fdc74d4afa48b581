"""Verdicts of three outcomes: how far a method models and uses text, and what it costs."""

from __future__ import annotations

import math
import random

import pytest

from ropectl.evaluate.judging.statistics import wilson_interval
from ropectl.evaluate.judging.verdict_sentences import open_sentences, perplexity_verdict
from ropectl.evaluate.judging.verdicts import (
    ScoredLength,
    longest_without_a_miss,
    models_verdicts,
    qualified_length,
    reached,
    short_delta,
    short_lengths,
    uses_verdicts,
)
from ropectl.records import PerplexityPoint


def scored(length: int, correct: int, trials: int) -> ScoredLength:
    return length, correct / trials, trials, *wilson_interval(correct, trials)


def tail(length: int, *sums: float) -> PerplexityPoint:
    return PerplexityPoint(length, 1.0, sum(sums), 100 * len(sums), len(sums), list(sums))


@pytest.mark.parametrize(
    ("qualifying", "expected"),
    [
        ({512: True, 1024: True, 2048: False}, 1024),
        ({512: True, 1024: False, 2048: True}, 512),  # a length that fails is not jumped over
        ({256: False, 512: True, 1024: True}, 1024),  # shorter than trained: never counts against it
        ({128: True, 256: False, 512: True, 1024: False}, 512),
        ({256: True, 512: False, 1024: True}, 256),  # the trained length fails
        ({256: False, 512: False, 1024: True}, 0),
        ({1024: True, 2048: True}, 2048),  # the trained length was not measured
        ({128: False, 256: True}, 256),  # nor anything above it
        ({128: True, 256: False}, 128),
        ({256: False}, 0),
    ],
)
def test_every_length_from_the_trained_one_on_has_to_qualify(qualifying: dict[int, bool], expected: int) -> None:
    """Both ``models`` and ``uses``; the trained length is 512."""
    entries = list(qualifying.items())
    assert qualified_length(entries, 512) == qualified_length(entries[::-1], 512) == expected
    baseline = tail(512, *[200.0] * 8)
    points = [tail(length, *[200.0 if good else 250.0] * 8) for length, good in entries]
    assert reached(models_verdicts(points, baseline, 0.02), 512)[:2] == (expected, expected)
    scores = [scored(length, 40 if good else 10, 40) for length, good in entries]
    assert reached(uses_verdicts(scores, 0.9), 512)[:2] == (expected, expected)


def test_models_compares_the_same_targets() -> None:
    baseline = tail(512, *[200.0] * 8)
    points = [tail(512, *[200.0] * 8), tail(1024, *[201.5] * 8), tail(2048, *[203.0] * 8)]
    assert reached(models_verdicts(points, baseline, 0.02), 512).certain == 1024
    assert reached(models_verdicts(points, baseline, 0.05), 512).certain == 2048
    assert models_verdicts([], baseline, 0.02) == models_verdicts(points, None, 0.02) == []
    assert reached([], 512) == (None, None, [])


def test_models_has_three_outcomes() -> None:
    """The whole interval within the tolerance, beyond it, or holding it; never a lucky mean."""
    rng = random.Random(0)
    noise = [rng.gauss(0, 1) for _ in range(12)]
    noise = [one - sum(noise) / 12 for one in noise]
    baseline = tail(512, *[200.0] * 12)

    def outcome(rise: float, spread: float) -> tuple[str, int | None]:
        [found] = models_verdicts([tail(1024, *[200 + 100 * rise + spread * one for one in noise])], baseline, 0.02)
        assert found.value == pytest.approx(rise) and found.units == 12
        return found.outcome, found.units_needed

    assert outcome(0.0, 1.0) == ("yes", None) and outcome(0.05, 1.0) == ("no", None)
    for rise in (-0.1, 0.0, 0.03):
        label, needed = outcome(rise, 30.0)
        assert label == "not resolved" and needed is not None
        # As many documents of the same spread have an interval that ends at the tolerance, by the normal distribution.
        deviation = 0.3 * math.sqrt(sum(one**2 for one in noise) / 11)
        assert needed == pytest.approx((1.96 * deviation / (rise - 0.02)) ** 2, rel=0.35)
    assert outcome(0.02, 30.0) == ("not resolved", None)  # no number of documents parts them


def test_one_document_resolves_nothing() -> None:
    [found] = models_verdicts([tail(1024, 100.0)], tail(512, 200.0), 0.02)
    assert (found.outcome, found.ci_low, found.units, found.units_needed) == ("not resolved", None, 1, None)
    assert reached([found], 512)[:2] == (0, 1024)


@pytest.mark.parametrize(
    ("correct", "trials", "outcome", "needed"),
    [
        (40, 40, "yes", None),
        (35, 35, "yes", None),
        (34, 34, "not resolved", 35),
        (25, 25, "not resolved", 35),
        (20, 25, "not resolved", 35),
        (24, 25, "not resolved", 97),
        (10, 25, "no", None),
        (9, 10, "not resolved", None),  # exactly the limit
    ],
)
def test_uses_has_three_outcomes(correct: int, trials: int, outcome: str, needed: int | None) -> None:
    [found] = uses_verdicts([scored(512, correct, trials)], 0.9)
    assert (found.outcome, found.units_needed) == (outcome, needed)
    if needed is not None:  # so many of the same share are enough, and one fewer is not
        low, high = wilson_interval(correct / trials * needed, needed)
        assert low >= 0.9 or high < 0.9
        low, high = wilson_interval(correct / trials * (needed - 1), needed - 1)
        assert low < 0.9 <= high


def test_what_is_not_resolved_is_said_with_what_would() -> None:
    found = reached(uses_verdicts([scored(512, 40, 40), scored(1024, 38, 40), scored(2048, 5, 40)], 0.9), 512)
    assert found[:2] == (512, 1024)
    [sentence] = open_sentences("Use", found, "prompts", 512)
    assert sentence.startswith("Use at 1024 tokens: not resolved") and "about 139 prompts would tell (40" in sentence
    certain = reached(uses_verdicts([scored(512, 40, 40), scored(1024, 5, 40)], 0.9), 512)
    assert open_sentences("Use", certain, "prompts", 512) == []


def prefix(length: int, perplexity: float | None) -> PerplexityPoint:
    if perplexity is None:
        return PerplexityPoint(length)
    sums = [100 * math.log(perplexity)] * 3
    return PerplexityPoint(length, perplexity, sum(sums), 300, 3, sums, document_num_tokens=[100] * 3)


def test_short_delta_is_the_worst_up_to_the_trained_length() -> None:
    baseline = [prefix(256, 10.0), prefix(512, 8.0), prefix(1024, 20.0)]
    ours = [prefix(256, 10.5), prefix(512, 8.8), prefix(1024, 100.0)]
    found = short_delta(ours, baseline, 512)
    assert found is not None and found.length == 512
    assert (found.value, found.ci_low, found.ci_high) == pytest.approx((0.1, 0.1, 0.1))
    assert short_delta([prefix(512, None)], baseline, 512) is None


def test_the_verdict_names_the_lengths_that_were_measured() -> None:
    """At 256 and 512 tokens of a model that was trained at 32768, of which nothing is said."""
    baseline = [prefix(256, 10.0), prefix(512, 8.0), prefix(32_768, None)]
    ours = [prefix(256, 10.5), prefix(512, 8.8), prefix(1024, 9.0), prefix(32_768, None)]
    at = short_lengths(ours, baseline, 32_768)
    assert at == [256, 512]
    [sentence] = perplexity_verdict(reached([], 32_768), None, short_delta(ours, baseline, 32_768), at, 32_768, 0.02)
    assert sentence == (
        "Perplexity at 256 and 512 tokens against the unscaled model: +10.0% at worst, at 512 "
        "(95 % interval +10.0% to +10.0%)."
    )
    [sentence] = perplexity_verdict(reached([], 512), None, short_delta(ours[:1], baseline, 512), [256], 512, 0.02)
    assert sentence.startswith("Perplexity at 256 tokens against the unscaled model: +5.0% (95 %")
    judged = reached(models_verdicts([tail(256, 1.0, 1.0), tail(512, 1.0, 1.0)], tail(512, 1.0, 1.0), 0.02), 512)
    [sentence] = perplexity_verdict(judged, tail(512, 1.0, 1.0), None, [], 512, 0.02)
    assert sentence.startswith("models up to 512 tokens") and "judged at 256 and 512 tokens" in sentence


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ([25, 20, 6, 5], (4096, 1024)),
        ([25, 25, 25, 25], (4096, 4096)),
        ([4, 25, 25, 25], (0, 0)),
        ([25, 4, 25, 25], (512, 512)),
    ],
)
def test_k_max_needs_every_shorter_length(found: list[int], expected: tuple[int, int]) -> None:
    """k_max at 20 and 80 %."""
    values = [(512 * 2**i, correct / 25) for i, correct in enumerate(found)]
    assert (longest_without_a_miss(values[::-1], 0.2), longest_without_a_miss(values, 0.8)) == expected
