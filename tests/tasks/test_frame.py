"""Chat templates: applied once, and nothing guessed."""

from __future__ import annotations

from typing import Any

import pytest
from transformers import AutoTokenizer

from ropectl.builtin import TINY_MODEL_DIR
from ropectl.errors import ConfigError
from ropectl.tasks.frame import RAW, chat_frame
from ropectl.tasks.registry import all_tasks, parse_task
from tests.tasks.kits import make_kit
from tests.tasks.solvers import SOLVERS

WITH_BOS = (
    "{{ bos_token }}{% for m in messages %}<|{{ m.role }}|>\n{{ m.content | trim }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
)
WITHOUT_BOS = "{% for m in messages %}[INST] {{ m.content }} [/INST]{% endfor %}"


@pytest.fixture
def chatty() -> Any:
    return AutoTokenizer.from_pretrained(TINY_MODEL_DIR)


@pytest.mark.parametrize("name", list(all_tasks()))
@pytest.mark.parametrize("template", [WITH_BOS, WITHOUT_BOS])
def test_question_ends_the_users_turn_and_the_answer_opens_the_other(chatty: Any, name: str, template: str) -> None:
    """D17, D15: one beginning-of-sequence token, whoever writes it."""
    chatty.chat_template = template
    kit, task = make_kit(chatty, frame=chat_frame(chatty)), parse_task(name)
    length = task.min_length(kit) + 300
    for depth in (0.0, 1.0) if task.has_depths else (None,):
        trial = task.build(kit, length, depth, 0)
        text = chatty.decode(trial.input_ids[: trial.answer_start])
        assert trial.seq_len == length and trial.input_ids[0] == 0 and trial.input_ids.count(0) == 1
        opening, closing = ("<|bos|><|user|>\n", "?<|end|>\n<|assistant|>\n")
        if template == WITHOUT_BOS:
            opening, closing = "<|bos|>[INST] ", "? [/INST] "
        closing = closing.replace("?", " in the list?") if name == "key-value" else closing
        assert text.startswith(opening + task.instruction) and text.count(closing) == 1
        expected = SOLVERS[name](text.replace("<|end|>\n<|assistant|>\n", " ").replace(" [/INST]", ""))
        assert sorted(expected) == sorted(trial.references or [chatty.decode(trial.answer_ids).strip()])
        prefix = text.rpartition(closing)[2]
        assert prefix and (prefix[0] != " ") and text.endswith(prefix)


def test_no_template_is_refused_in_words(tokenizer: Any) -> None:
    with pytest.raises(ConfigError, match=r"--chat needs a chat template.*\n.*base model"):
        chat_frame(tokenizer)


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{{ raise_exception('no') }}", "cannot be applied"),
        ("nothing", "exactly once"),
        ("{% for m in messages %}{{ m.content }}{{ m.content }}{% endfor %}", "exactly once"),
    ],
)
def test_a_template_that_loses_the_text_is_refused(chatty: Any, template: str, message: str) -> None:
    chatty.chat_template = template
    with pytest.raises(ConfigError, match=message):
        chat_frame(chatty)


def test_raw_is_the_default(tokenizer: Any) -> None:
    assert make_kit(tokenizer).frame is RAW and RAW.name == "raw"
