"""Passkey prompts word for word; what they share with other tasks is in ``test_contract``."""

from __future__ import annotations

from typing import Any

import pytest

from ropectl.tasks.kinds.passkey import Passkey
from ropectl.tasks.prompt_builder import PromptBuilder
from tests.tasks.builders import chatting_tokenizer, make_builder

DEPTHS = (0.0, 0.25, 0.5, 0.75, 1.0)
LENGTHS = (128, 129, 255, 256, 512, 2048)
TASK = Passkey()


@pytest.fixture
def builder(tokenizer: Any) -> PromptBuilder:
    return PromptBuilder(tokenizer, tokenizer.bos_token_id)


def places_of(needle: list[int], haystack: list[int]) -> list[int]:
    return [i for i in range(len(haystack)) if haystack[i : i + len(needle)] == needle]


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("depth", DEPTHS)
def test_the_words_are_the_published_ones(builder: PromptBuilder, tokenizer: Any, length: int, depth: float) -> None:
    trial = TASK.build(builder, length, depth, 3)
    key = tokenizer.decode(trial.answer_ids).strip()
    needle = tokenizer.encode(
        f"\nThe pass key is {key}. Remember it. {key} is the pass key.\n", add_special_tokens=False
    )
    assert places_of(needle, trial.input_ids) == [TASK.position(builder, length, depth)]
    text = tokenizer.decode(trial.input_ids)
    assert text.startswith(f"<|bos|>{TASK.instruction}")
    assert text.endswith(f"\nWhat is the pass key? The pass key is {key}")
    assert text.count(key) == 3 and len(key) == 5 and key.isdigit() and key[0] != "0"


@pytest.mark.parametrize("length", LENGTHS)
def test_depth_runs_from_the_task_to_the_question(builder: PromptBuilder, length: int) -> None:
    positions = [TASK.position(builder, length, depth) for depth in DEPTHS]
    head, room = positions[0], length - TASK.min_length(builder)
    assert positions[-1] == head + room, "depth 1 leaves no filler behind the needle"
    assert positions == sorted(positions)
    for depth, position in zip(DEPTHS, positions, strict=True):
        assert position in (round(depth * length), head, positions[-1])


@pytest.mark.parametrize("count", [1, 3, 9])
@pytest.mark.parametrize("extra", [0, 1, 40, 500])
@pytest.mark.parametrize("depth", DEPTHS)
def test_distractors_are_whole_and_labelled(
    builder: PromptBuilder, tokenizer: Any, count: int, extra: int, depth: float
) -> None:
    task = Passkey(distractors=count)
    length = task.min_length(builder) + extra
    for number in range(5):
        trial = task.build(builder, length, depth, number)
        text = tokenizer.decode(trial.input_ids)
        keys = []
        for label in "ABCDEFGHIJ"[: count + 1]:
            key = text.split(f"\nThe pass key {label} is ")[1][:5]
            keys.append(key)
            assert text.count(f"\nThe pass key {label} is {key}. Remember it. {key} is the pass key {label}.\n") == 1
        assert len(trial.input_ids) == length and len(set(keys)) == count + 1
        assert text.endswith(f"What is the pass key A? The pass key A is {keys[0]}")


@pytest.mark.process
def test_filler_is_tokenized_once(tokenizer: Any) -> None:
    """200 prompts of 32k tokens cost a few tokenizer calls each, none of them long."""

    class Counting:
        characters = 0
        bos_token_id = tokenizer.bos_token_id

        def encode(self, text: str, **kwargs: Any) -> list[int]:
            self.characters += len(text)
            return list(tokenizer.encode(text, **kwargs))

    counting = Counting()
    builder = PromptBuilder(counting)
    assert sum(len(TASK.build(builder, 32_768, 0.5, number).input_ids) for number in range(200)) == 200 * 32_768
    assert counting.characters < 200 * 1000


@pytest.mark.parametrize("distractors", [0, 2])
@pytest.mark.parametrize("depth", DEPTHS)
def test_in_a_chat_the_answer_is_begun_without_thinking(tokenizer: Any, distractors: int, depth: float) -> None:
    chatting = chatting_tokenizer(tokenizer)
    trial = Passkey(distractors=distractors).build(make_builder(chatting, in_chat=True), 400, depth, 1)
    label, text = " A" if distractors else "", chatting.decode(trial.input_ids)
    assert text.startswith(f"<|bos|><|user|>\n{TASK.instruction}")
    assert f"\nWhat is the pass key{label}?<|end|>\n<|assistant|>\n<think></think>The pass key{label} is " in text
