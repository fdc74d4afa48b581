"""Chat templates: applied once, and nothing guessed."""

from __future__ import annotations

from typing import Any

import pytest

from ropectl.errors import ConfigError
from ropectl.tasks.chat import chat_turn
from ropectl.tasks.registry import all_tasks, parse_task
from tests.tasks.builders import chatting_tokenizer, make_builder
from tests.tasks.solvers import answers_in

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
    chatty = chatting_tokenizer(tokenizer, template)
    builder, task = make_builder(chatty, in_chat=True), parse_task(name)
    length = task.min_length(builder) + 300
    for depth in (0.0, 1.0) if task.has_depths else (None,):
        trial = task.build(builder, length, depth, 0)
        text = chatty.decode(trial.input_ids[: trial.answer_start])
        assert trial.seq_len == length and trial.input_ids[0] == 0 and trial.input_ids.count(0) == 1
        assert text.startswith(opening) and text.count(closing) == 1
        before, _, prefix = text.partition(closing)
        assert before.startswith(opening + task.instruction)
        assert before.endswith("?") and prefix and not prefix[0].isspace()
        rendered = chatty.apply_chat_template(
            [{"role": "user", "content": before.removeprefix(opening)}], tokenize=False, add_generation_prompt=True
        )
        assert text == rendered + prefix
        known = trial.references or [chatty.decode(trial.answer_ids).strip()]
        assert sorted(answers_in(name, f"{before} {prefix}", known)) == sorted(known)


def test_a_template_is_never_guessed(tokenizer: Any) -> None:
    with pytest.raises(ConfigError, match="no chat template"):
        chat_turn(tokenizer)


@pytest.mark.parametrize(
    "template", ["{{ messages[0]['content'][:5] }}", "{{ raise_exception('no') }}", "{{ 1 +", "{{ 1/0 }}"]
)
def test_templates_that_cannot_be_used_are_refused(tokenizer: Any, template: str) -> None:
    with pytest.raises(ConfigError, match="chat template"):
        chat_turn(chatting_tokenizer(tokenizer, template))
