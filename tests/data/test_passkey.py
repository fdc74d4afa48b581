"""Prompts are exact in tokens, seeded, and share what they can share."""

from __future__ import annotations

import copy
import subprocess
import sys
from typing import Any

import pytest

from ropectl.data.passkey import PasskeyPromptBuilder
from ropectl.data.passkey_wording import TASK
from ropectl.errors import ConfigError

DEPTHS = (0.0, 0.25, 0.5, 0.75, 1.0)
LENGTHS = (128, 129, 255, 256, 512, 2048)


@pytest.fixture
def builder(tokenizer: Any) -> PasskeyPromptBuilder:
    return PasskeyPromptBuilder(tokenizer, tokenizer.bos_token_id)


def position_of(needle: list[int], haystack: list[int]) -> list[int]:
    return [i for i in range(len(haystack)) if haystack[i : i + len(needle)] == needle]


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("depth", DEPTHS)
def test_prompt_is_exact(builder: PasskeyPromptBuilder, tokenizer: Any, length: int, depth: float) -> None:
    """The length includes the answer; the key is there; one BOS, first."""
    prompt = builder.build(length, depth, trial=3)
    assert len(prompt.input_ids) == length
    assert prompt.input_ids.count(tokenizer.bos_token_id) == 1 and prompt.input_ids[0] == tokenizer.bos_token_id
    needle = tokenizer.encode(
        f"\nThe pass key is {prompt.key}. Remember it. {prompt.key} is the pass key.\n", add_special_tokens=False
    )
    assert position_of(needle, prompt.input_ids) == [prompt.needle_position]
    text = tokenizer.decode(prompt.input_ids)
    assert text.startswith(f"<|bos|>{TASK}")
    assert text.endswith(f"\nWhat is the pass key? The pass key is {prompt.key}")
    assert tokenizer.decode(prompt.input_ids[prompt.answer_start :]) == f" {prompt.key}"
    assert text.count(prompt.key) == 3 and len(prompt.key) == 5


@pytest.mark.parametrize("length", LENGTHS)
def test_depth_runs_from_the_task_to_the_question(builder: PasskeyPromptBuilder, length: int) -> None:
    positions = [builder.needle_position(length, depth) for depth in DEPTHS]
    head, tail = positions[0], length - builder.min_length
    assert positions[-1] == head + tail, "depth 1 leaves no filler behind the needle"
    assert positions == sorted(positions)
    for depth, position in zip(DEPTHS, positions, strict=True):
        assert position in (round(depth * length), head, positions[-1])


def test_same_position_means_same_prompt_up_to_the_shorter_end(builder: PasskeyPromptBuilder) -> None:
    short, long = builder.build(1024, 0.5, trial=1), builder.build(2048, 0.25, trial=1)
    assert short.needle_position == long.needle_position == 512 and short.key == long.key
    question = 1024 - (len(short.input_ids) - short.answer_start) - len(builder._words.question)
    assert short.input_ids[:question] == long.input_ids[:question]


def test_trials_and_seeds_differ(tokenizer: Any, builder: PasskeyPromptBuilder) -> None:
    keys = [builder.build(256, 0.5, trial).key for trial in range(20)]
    assert len(set(keys)) == 20
    other = PasskeyPromptBuilder(tokenizer, tokenizer.bos_token_id, seed=1)
    assert [other.build(256, 0.5, trial).key for trial in range(20)] != keys


@pytest.mark.process
def test_prompts_are_the_same_in_another_process(builder: PasskeyPromptBuilder) -> None:
    """Nothing depends on hash seeds or on what ran before."""
    code = (
        "from transformers import AutoTokenizer; from ropectl.builtin import TINY_MODEL_DIR;"
        "from ropectl.data.passkey import PasskeyPromptBuilder;"
        "t = AutoTokenizer.from_pretrained(TINY_MODEL_DIR);"
        "print(PasskeyPromptBuilder(t, 0).fingerprint([256, 512], [0.0, 0.5], 3))"
    )
    result = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert result.stdout.strip() == builder.fingerprint([256, 512], [0.0, 0.5], 3)


@pytest.mark.parametrize("length", [2, 97])
def test_too_short_is_refused_with_the_shortest_possible(builder: PasskeyPromptBuilder, length: int) -> None:
    """Never truncated."""
    with pytest.raises(ConfigError, match=rf"{length}.*{builder.min_length}"):
        builder.build(length, 0.5, 0)
    assert len(builder.build(builder.min_length, 0.5, 0).input_ids) == builder.min_length


@pytest.mark.parametrize("count", [1, 3, 9])
@pytest.mark.parametrize("extra", [0, 1, 40, 500])
@pytest.mark.parametrize("depth", DEPTHS)
def test_distractors_are_whole_and_labelled(tokenizer: Any, count: int, extra: int, depth: float) -> None:
    builder = PasskeyPromptBuilder(tokenizer, 0, num_distractors=count)
    length = builder.min_length + extra
    for trial in range(5):
        prompt = builder.build(length, depth, trial)
        text = tokenizer.decode(prompt.input_ids)
        assert len(prompt.input_ids) == length and len({prompt.key, *prompt.distractor_keys}) == count + 1
        for label, key in zip("ABCDEFGHIJ", [prompt.key, *prompt.distractor_keys], strict=False):
            assert text.count(f"\nThe pass key {label} is {key}. Remember it. {key} is the pass key {label}.\n") == 1
        assert text.endswith(f"What is the pass key A? The pass key A is {prompt.key}")


def test_filler_is_tokenized_once(tokenizer: Any) -> None:
    """200 prompts of 32k tokens cost a few tokenizer calls each, none of them long."""

    class Counting:
        characters = calls = 0
        bos_token_id = tokenizer.bos_token_id

        def encode(self, text: str, **kwargs: Any) -> list[int]:
            self.characters += len(text)
            self.calls += 1
            return list(tokenizer.encode(text, **kwargs))

    counting = Counting()
    builder = PasskeyPromptBuilder(counting)
    prompts = [builder.build(32_768, 0.5, trial) for trial in range(200)]
    assert sum(len(prompt.input_ids) for prompt in prompts) == 200 * 32_768
    assert counting.characters < 200 * 1000


@pytest.mark.parametrize("depth", [-0.1, 1.1])
def test_depth_outside_is_refused(builder: PasskeyPromptBuilder, depth: float) -> None:
    with pytest.raises(ConfigError, match="depth"):
        builder.build(256, depth, 0)


def test_a_tokenizer_that_adds_a_leading_space_is_spliced_cleanly() -> None:
    """SentencePiece style: whatever is encoded gets a space in front; a splice must not collect them."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = [chr(code) for code in range(32, 127)] + ["\u2581", "\n"]
    inner = Tokenizer(models.BPE(vocab={char: i for i, char in enumerate(alphabet)}, merges=[]))
    inner.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    inner.decoder = decoders.Metaspace(prepend_scheme="always")
    prompt = PasskeyPromptBuilder(PreTrainedTokenizerFast(tokenizer_object=inner)).build(1500, 0.5, 0)
    text = "".join(alphabet[token] for token in prompt.input_ids).replace("\u2581", " ")
    assert len(prompt.input_ids) == 1500 and "  " not in text
    assert f"\nThe pass key is {prompt.key}. Remember it. {prompt.key} is the pass key.\n" in text


TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}<|user|>\n{{ m['content'] | trim }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n{% if enable_thinking is defined and not enable_thinking %}"
    "<think></think>{% endif %}{% endif %}"
)


@pytest.fixture
def chatting(tokenizer: Any) -> Any:
    """The built-in tokenizer with a chat template."""
    copied = copy.deepcopy(tokenizer)
    copied.chat_template = TEMPLATE
    return copied


@pytest.mark.parametrize("distractors", [0, 2])
@pytest.mark.parametrize("depth", DEPTHS)
def test_chat_prompts(chatting: Any, distractors: int, depth: float) -> None:
    """The template once, one BOS, the question in the user's turn, the answer begun in the assistant's; still exact."""
    builder = PasskeyPromptBuilder(chatting, None, num_distractors=distractors, chat=True)
    assert builder.prompt_format == "chat"
    prompt = builder.build(400, depth, 1)
    label = " A" if distractors else ""
    text = chatting.decode(prompt.input_ids)
    assert len(prompt.input_ids) == 400 and prompt.input_ids.count(chatting.bos_token_id) == 1
    assert text.startswith(f"<|bos|><|user|>\n{TASK}")
    assert text.endswith(
        f"\nWhat is the pass key{label}?<|end|>\n<|assistant|>\n<think></think>The pass key{label} is {prompt.key}"
    )
    assert [text.count(mark) for mark in ("<|user|>", "<|end|>", "<|assistant|>")] == [1, 1, 1]
    assert text.count(f"\nThe pass key{label} is {prompt.key}. Remember it.") == 1
    rendered = chatting.apply_chat_template(
        [{"role": "user", "content": text.split("<|user|>\n")[1].split("<|end|>")[0]}],
        tokenize=False, add_generation_prompt=True, enable_thinking=False,
    )  # fmt: skip
    assert text == f"{rendered}The pass key{label} is {prompt.key}"


def test_chat_needs_a_template(tokenizer: Any) -> None:
    """Never guessed."""
    with pytest.raises(ConfigError, match="no chat template"):
        PasskeyPromptBuilder(tokenizer, None, chat=True)


@pytest.mark.parametrize(
    "template", ["{{ messages[0]['content'][:5] }}", "{{ raise_exception('no') }}", "{{ 1 +", "{{ 1/0 }}"]
)
def test_templates_that_cannot_be_used_are_refused(chatting: Any, template: str) -> None:
    chatting.chat_template = template
    with pytest.raises(ConfigError, match="chat template"):
        PasskeyPromptBuilder(chatting, None, chat=True)


def merging_tokenizer() -> Any:
    """One that keeps a space with the word before it: the end of the question changes when the key follows."""
    from tokenizers import Tokenizer, decoders, models
    from transformers import PreTrainedTokenizerFast

    alphabet = [chr(code) for code in range(32, 127)] + ["\n", "s "]
    inner = Tokenizer(models.BPE(vocab={char: i for i, char in enumerate(alphabet)}, merges=[("s", " ")]))
    inner.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(tokenizer_object=inner)


def test_answers_that_have_no_tokens_of_their_own_are_generated() -> None:
    """The room for the answer is part of the length, and none of it is filled."""
    tokenizer = merging_tokenizer()
    with pytest.raises(ConfigError, match="merges"):
        PasskeyPromptBuilder(tokenizer).build(900, 0.5, 0)
    builder = PasskeyPromptBuilder.for_evaluation(tokenizer, None)
    assert builder.answers == "text"
    for length in (builder.min_length, 900):
        for depth in DEPTHS:
            prompt = builder.build(length, depth, 1)
            assert prompt.answer_start == len(prompt.input_ids) == length - prompt.max_new_tokens
            text = tokenizer.decode(prompt.input_ids)
            assert text.endswith("What is the pass key? The pass key is") and text.count(prompt.key) == 2
            trial = prompt.trial
            assert trial.references == (prompt.key,) and not trial.answer_ids and trial.seq_len == length


def test_answers_with_tokens_are_not_generated(tokenizer: Any) -> None:
    builder = PasskeyPromptBuilder.for_evaluation(tokenizer, 0, seed=3)
    assert builder.answers == "tokens" and builder.prompt_format == "raw"
    prompt = builder.build(200, 0.5, 0)
    assert prompt == PasskeyPromptBuilder(tokenizer, 0, seed=3).build(200, 0.5, 0)
    assert prompt.trial.answer_ids == prompt.input_ids[prompt.answer_start :] and prompt.trial.seq_len == 200


@pytest.mark.parametrize("length", [98, 130, 700])
@pytest.mark.parametrize("depth", DEPTHS)
def test_an_example_shows_what_was_asked(tokenizer: Any, length: int, depth: float) -> None:
    """The beginning, the needle and the question, nothing twice."""
    builder = PasskeyPromptBuilder(tokenizer, 0)
    example, prompt = builder.example(length, depth), builder.build(length, depth, 0)
    assert example.startswith(f"<|bos|>{TASK}") and example.endswith("What is the pass key? The pass key is")
    assert example.count(f"The pass key is {prompt.key}. Remember it.") == 1 and example.count("What is the") == 1
    whole = tokenizer.decode(prompt.input_ids[: prompt.answer_start])
    assert all(part in whole for part in example.split(" [...] "))
    if " [...] " not in example:
        assert example == whole
