"""Chat templates: applied once, and nothing guessed."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from ropectl.data.chat import chat_frame
from ropectl.data.passkey import PasskeyPromptBuilder
from ropectl.tasks.puzzle import PuzzleTask
from ropectl.tasks.registry import all_tasks, parse_task
from tests.tasks.kits import make_kit
from tests.tasks.solvers import SOLVERS

WITH_BREAKS = (
    "{{ bos_token }}{% for m in messages %}<|{{ m.role }}|>\n{{ m.content | trim }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
)
WITHOUT = "{{ bos_token }}{% for m in messages %}[INST] {{ m.content }} [/INST]{% endfor %}"


@pytest.mark.parametrize("name", list(all_tasks()))
@pytest.mark.parametrize(
    ("template", "opening", "closing"),
    [(WITH_BREAKS, "<|bos|><|user|>\n", "<|end|>\n<|assistant|>\n"), (WITHOUT, "<|bos|>[INST] ", " [/INST]")],
)
def test_question_ends_the_users_turn_and_the_answer_opens_the_other(
    tokenizer: Any, name: str, template: str, opening: str, closing: str
) -> None:
    """The template once, one beginning-of-sequence token, and still the exact length."""
    chatty = copy.deepcopy(tokenizer)
    chatty.chat_template = template
    kit, task = make_kit(chatty, chat=chat_frame(chatty)), parse_task(name)
    length = task.min_length(kit) + 300
    for depth in (0.0, 1.0) if task.has_depths else (None,):
        trial = task.build(kit, length, depth, 0)
        text = chatty.decode(trial.input_ids[: trial.answer_start])
        assert trial.seq_len == length and trial.input_ids[0] == 0 and trial.input_ids.count(0) == 1
        assert text.startswith(opening) and text.count(closing) == 1
        before, _, prefix = text.partition(closing)
        if isinstance(task, PuzzleTask):
            assert before.startswith(opening + task.instruction)
        assert before.endswith("?") and prefix and not prefix[0].isspace()
        rendered = chatty.apply_chat_template(
            [{"role": "user", "content": before.removeprefix(opening)}], tokenize=False, add_generation_prompt=True
        )
        assert text == rendered + prefix
        expected = SOLVERS[name](f"{before} {prefix}")
        assert sorted(expected) == sorted(trial.references or [chatty.decode(trial.answer_ids).strip()])


def test_passkeys_are_those_of_eval_passkey(tokenizer: Any) -> None:
    chatty = copy.deepcopy(tokenizer)
    chatty.chat_template = WITH_BREAKS
    kit, builder = make_kit(chatty, seed=2, chat=chat_frame(chatty)), PasskeyPromptBuilder(chatty, None, 2, chat=True)
    assert parse_task("passkey").build(kit, 500, 0.5, 1) == builder.build(500, 0.5, 1).trial
