"""What single tasks promise beyond the contract."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from ropectl.tasks.kinds.common_words import CommonWords
from ropectl.tasks.kinds.frequent_words import FrequentWords
from ropectl.tasks.kinds.needles import MultiKey
from ropectl.tasks.prompt_builder import PromptBuilder
from ropectl.tasks.trial import contained_share
from ropectl.tasks.words import ADJECTIVES, NOUNS, WORDS, other_words
from tests.tasks.builders import make_builder
from tests.tasks.solvers import NOTE, counted


@pytest.fixture(scope="module")
def builder(tokenizer: Any) -> PromptBuilder:
    return make_builder(tokenizer)


@pytest.mark.process
@pytest.mark.parametrize("count", [1, 3, 12])
def test_distractors_are_other_names_with_other_numbers(builder: PromptBuilder, count: int) -> None:
    """Who returns a distractor is wrong."""
    task = MultiKey(distractors=count)
    for extra in (0, 1, 40, 500):
        for depth in (0.0, 0.4, 1.0):
            for number in range(3):
                trial = task.build(builder, task.min_length(builder) + extra, depth, number)
                notes = NOTE.findall(builder.tokenizer.decode(trial.input_ids))
                assert len(notes) == count + 1
                assert len({name for name, _ in notes}) == len({value for _, value in notes}) == count + 1
    assert task.chance == 1 / (count + 1)


@pytest.mark.parametrize("length", [500, 1500, 6000])
def test_common_words_stand_out(builder: PromptBuilder, length: int) -> None:
    task = CommonWords()
    trial = task.build(builder, length, None, 1)
    counts = counted(builder.tokenizer.decode(trial.input_ids))
    common = [counts[word] for word in trial.references]
    others = [count for word, count in counts.items() if word not in trial.references]
    assert len(set(common)) == 1 and 3 <= common[0] <= 30 and len(common) == 10
    assert max(others) <= max(1, common[0] // 3) and len(others) >= 10
    if length == 6000:
        assert common[0] == 30 and Counter(others).most_common(1)[0][0] == 3


@pytest.mark.parametrize("alpha", [1.1, 2.0, 3.5])
@pytest.mark.parametrize("num_words", [200, 1000, 20_000])
def test_frequencies_follow_the_law(alpha: float, num_words: int) -> None:
    counts = FrequentWords(alpha=alpha).counts(num_words)
    norm = sum(rank**-alpha for rank in range(1, 10_001))
    assert sum(counts) == num_words and counts[:-1] == sorted(counts[:-1], reverse=True)
    for rank in range(1, min(11, len(counts) - 1)):
        assert counts[rank - 1] == pytest.approx(max(1, num_words * rank**-alpha / norm), abs=0.5001)


@pytest.mark.process
@pytest.mark.parametrize("alpha", [1.1, 1.5, 2.0, 3.5])
def test_the_three_most_frequent_are_no_tie(builder: PromptBuilder, alpha: float) -> None:
    task = FrequentWords(alpha=alpha)
    for extra in (0, 1, 5, 100):
        trial = task.build(builder, task.min_length(builder) + extra, None, 0)
        ranked = [*counted(builder.tokenizer.decode(trial.input_ids)).most_common(4), ("", 0)]
        assert [word for word, _ in ranked[:3]] == list(trial.references)
        assert ranked[0][1] > ranked[1][1] > ranked[2][1] > ranked[3][1]


def test_no_word_stands_inside_another() -> None:
    assert len(set(WORDS)) == len(WORDS) == len(ADJECTIVES) + len(NOUNS)
    assert not [(one, other) for one in WORDS for other in WORDS if one != other and one in other]


def test_words_never_run_out_and_never_contain_a_common_one() -> None:
    import random

    taken = {"lemon", "cedar", "quiet"}
    supply = other_words(random.Random(0), taken)
    words = [next(supply) for _ in range(20_000)]
    assert len(set(words)) == 20_000
    assert not [word for word in words if any(part in word for part in taken)]


@pytest.mark.parametrize(
    ("text", "references", "expected"),
    [
        ("1234567", ["1234567"], 1.0),
        ("", ["1234567"], 0.0),
        ("The numbers are 11, 22 and 44.", ["11", "22", "33", "44"], 0.75),
        ("44 33 22 11", ["11", "22", "33", "44"], 1.0),
        ("LEMON and Cedar", ["lemon", "cedar"], 1.0),
        ("abcde", ["ABCDE", "FGHIJ"], 0.5),
        ("12345678", ["1234567"], 1.0),
        ("123 4567", ["1234567"], 0.0),
        ("lemon lemon lemon", ["lemon", "cedar", "pony"], 1 / 3),
    ],
)
def test_share_of_references(text: str, references: list[str], expected: float) -> None:
    """The rule of RULER on strings made by hand."""
    assert contained_share(text, references) == expected
