"""Passkey prompts, built in token space to the exact length asked for.

The task of Landmark Attention (arXiv 2305.16300), used unchanged by Position Interpolation
(2306.15595), YaRN (2309.00071), LongLoRA (2309.12307) and LongRoPE (2402.13753): a number is hidden
in filler text and asked for at the end.

A prompt is a splice of token fragments, each tokenized once::

    [BOS] task | filler ... | needle | filler ... | question | answer

and is never decoded and re-encoded, so its length, the position of the needle and the tokens of the
answer are exact. Everything up to the needle and the needle itself depend on ``(seed, needle
position, trial)`` alone: whatever else is run, a trial is the same prompt, and two prompts with the
needle at the same position share every token up to the end of the shorter one's filler. Distractors are
the exception: they are scattered over the whole length, so prompts of different lengths differ there.

For instruct models the chat template is put around it once: task, filler, needle and question are the
user's turn, and the assistant's begins with "The pass key is".
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ropectl.data.chat import chat_frame
from ropectl.data.distractors import hide
from ropectl.data.passkey_wording import KEY_RANGE, MAX_DISTRACTORS, NOMINAL_KEY, FillerStream, PasskeyWording
from ropectl.data.trials import Trial
from ropectl.errors import ConfigError

EVALUATION_NAMESPACE, TRAINING_NAMESPACE = "ropectl-passkey", "ropectl-passkey-training"

#: Tokens that a generated answer may take: a space, five digits, and some to see that the number ends there.
GENERATED_ROOM = 8

#: Tokens that an example shows around the needle, and behind the task.
_EXAMPLE_MARGIN = 16


@dataclass(frozen=True)
class PasskeyPrompt:
    """One trial.

    Attributes:
        input_ids: All tokens, the answer included; exactly as many as asked for. Without the answer where it
            is generated.
        answer_start: Index of the first answer token in ``input_ids``.
        needle_position: Index of the needle's first token.
        key: The number to retrieve.
        distractor_keys: The other numbers in the haystack.
        max_new_tokens: Tokens kept free for an answer that is generated; 0 where it is there.
    """

    input_ids: list[int]
    answer_start: int
    needle_position: int
    key: str
    distractor_keys: tuple[str, ...] = ()
    max_new_tokens: int = 0

    @property
    def trial(self) -> Trial:
        """The prompt as whoever scores it sees it."""
        references = (self.key,) if self.max_new_tokens else ()
        return Trial(self.input_ids, self.answer_start, references, self.max_new_tokens)


class PasskeyPromptBuilder:
    """Builds passkey prompts for one tokenizer; every fragment is tokenized once.

    Args:
        tokenizer: A Hugging Face tokenizer.
        bos_token_id: Put first in every prompt; None for none.
        seed: Chooses keys and filler, together with needle position and trial.
        num_distractors: Other labelled keys in the haystack, in ``[0, 9]``. With any, the asked
            key is labelled too, and a model that returns another key is wrong.
        filler: Replaces the published filler: ``filler(rng, n)`` returns ``n`` tokens.
        namespace: Seeds under another namespace are other seeds: what is trained on draws its keys and
            filler apart from what is measured, whatever the seeds.
        chat: Put the tokenizer's chat template around the prompt; it decides about the first token too.
        generated: Leave room for an answer that is generated, and read as text, instead of giving its tokens.

    Raises:
        ConfigError: If ``num_distractors`` is out of range, or there is no usable chat template.
    """

    def __init__(
        self,
        tokenizer: Any,
        bos_token_id: int | None = None,
        seed: int = 0,
        num_distractors: int = 0,
        filler: FillerStream | None = None,
        namespace: str = EVALUATION_NAMESPACE,
        chat: bool = False,
        generated: bool = False,
    ) -> None:
        if not 0 <= num_distractors <= MAX_DISTRACTORS:
            raise ConfigError(
                f"distractors = {num_distractors} is not possible: allowed are 0 to {MAX_DISTRACTORS}.",
                "Type for example: --distractors 3",
            )
        self._words = PasskeyWording(tokenizer, bos_token_id, num_distractors, chat_frame(tokenizer) if chat else None)
        self._generated = generated
        self._seed = f"{namespace}:{seed}"
        self._filler = filler or self._words.filler

    @classmethod
    def for_evaluation(
        cls, tokenizer: Any, bos_token_id: int | None, seed: int = 0, num_distractors: int = 0, chat: bool = False
    ) -> PasskeyPromptBuilder:
        """Returns a builder whose answers are given token by token where that can be, else generated.

        Raises:
            ConfigError: If ``num_distractors`` is out of range, or there is no usable chat template.
        """
        exact = cls(tokenizer, bos_token_id, seed, num_distractors, chat=chat)
        if exact._words.has_answer_tokens:
            return exact
        return cls(tokenizer, bos_token_id, seed, num_distractors, chat=chat, generated=True)

    @property
    def first_token(self) -> int:
        """The token that every prompt begins with."""
        return self._words.head[0]

    @property
    def prompt_format(self) -> str:
        """``raw`` for plain text, ``chat`` with the chat template around it."""
        return "chat" if self._words.chat else "raw"

    @property
    def answers(self) -> str:
        """``tokens`` where answers are known token by token, ``text`` where they are generated and read."""
        return "text" if self._generated else "tokens"

    def text(self, tokens: Sequence[int]) -> str:
        """Returns the text of some tokens, such as a generated answer."""
        return self._words.text(tokens)

    @property
    def min_length(self) -> int:
        """The shortest prompt that can be built: everything but filler [tokens]."""
        others = self._words.needle_lengths[1:]
        # One needle's room more than the distractors take: wherever the asked needle stands, there is
        # then always a side with room for the next one.
        room = sum(others) + max(others) if others else 0
        return len(self._words.head) + self._tail_length + room

    def needle_position(self, length: int, depth: float) -> int:
        """Returns where the needle starts in a prompt of ``length`` tokens.

        Depth is measured over the whole prompt and then moved inside it: 0 is directly behind the
        task, 1 directly before the question. So depth 1/2 of 2048 and depth 1/4 of 4096 tokens are
        the same position and the same trial.
        """
        return max(len(self._words.head), min(round(depth * length), length - self._tail_length))

    def distinct_depths(self, length: int, depths: Sequence[float]) -> list[float]:
        """Returns the depths that are different positions in a prompt of ``length`` tokens.

        In a short prompt several depths are moved to one position, and so are the same trials: counted
        twice they would only pretend to more evidence.
        """
        positions: dict[int, float] = {}
        for depth in depths:
            positions.setdefault(self.needle_position(length, depth), depth)
        return list(positions.values())

    def build(self, length: int, depth: float, trial: int) -> PasskeyPrompt:
        """Returns the prompt of one trial with exactly ``length`` tokens, answer included.

        Args:
            length: Tokens of prompt and answer together.
            depth: Relative position of the needle, in ``[0, 1]``.
            trial: Index of the trial; another trial has another key and another filler.

        Raises:
            ConfigError: If ``length`` leaves no room for task, needle, question and answer, or
                ``depth`` is outside ``[0, 1]``.
        """
        if not 0 <= depth <= 1:
            raise ConfigError(f"depth = {depth} is outside [0, 1].", "Type for example: --depths 5")
        if length < self.min_length:
            raise ConfigError(
                f"length = {length} tokens is too short for a passkey prompt: task, needle, question and "
                f"answer take {self.min_length} tokens with this tokenizer.",
                f"Use lengths of at least {self.min_length}.",
            )
        position = self.needle_position(length, depth)
        rng = random.Random(f"{self._seed}:{position}:{trial}")
        keys = self._draw_keys(rng)
        words = self._words
        needle, *others = [words.needle(key, label) for key, label in zip(keys, words.labels, strict=True)]
        answer = [] if self._generated else words.answer(keys[0])
        answer_start = length - self._answer_length

        before = self._filler(rng, position - len(words.head))
        after = self._filler(rng, answer_start - position - len(needle) - len(words.question))
        if others:
            before, after = hide(before, after, others, rng)
        input_ids = words.head + before + needle + after + words.question + answer
        room = self._answer_length if self._generated else 0
        return PasskeyPrompt(input_ids, answer_start, position, keys[0], tuple(keys[1:]), room)

    def example(self, length: int, depth: float) -> str:
        """Returns the text of a prompt, without its answer, shortened to what is asked and where it is hidden."""
        prompt = self.build(length, depth, 0)
        ids, margin = prompt.input_ids[: prompt.answer_start], _EXAMPLE_MARGIN
        words, start = self._words, prompt.needle_position
        shown = [
            (0, len(words.head) + margin),
            (start - margin, start + words.needle_lengths[0] + margin),
            (len(ids) - len(words.question) - margin, len(ids)),
        ]
        parts: list[list[int]] = []
        reached = 0
        for start, end in shown:
            if parts and start <= reached:
                parts[-1] += ids[reached:end]
            else:
                parts.append(ids[start:end])
            reached = max(reached, min(end, len(ids)))
        return " [...] ".join(map(words.text, parts))

    def fingerprint(self, lengths: Sequence[int], depths: Sequence[float], trials: int) -> str:
        """Returns a hash over all prompts of a grid: equal hashes mean the same trials.

        Raises:
            ConfigError: If a length is too short for a prompt.
        """
        points = [(length, depth) for length in lengths for depth in self.distinct_depths(length, depths)]
        return self.fingerprint_points(points, trials)

    def fingerprint_points(self, points: Sequence[tuple[int, float]], trials: int) -> str:
        """Returns a hash over all prompts at some (length, depth), in their order."""
        digest = hashlib.sha256()
        for length, depth in points:
            for trial in range(trials):
                digest.update(json.dumps(self.build(length, depth, trial).input_ids).encode())
        return digest.hexdigest()

    def _draw_keys(self, rng: random.Random) -> list[str]:
        """Draws a key for each label; they differ, and take as many tokens as the nominal one, so that lengths are exact."""
        keys: list[str] = []
        words, answer_length = self._words, self._answer_length
        for label, needle_length in zip(words.labels, words.needle_lengths, strict=True):
            while True:
                key = str(rng.randint(*KEY_RANGE))
                fits = len(words.needle(key, label)) == needle_length
                if key not in keys and fits and (self._generated or words.answer_length(key) == answer_length):
                    break
            keys.append(key)
        return keys

    @property
    def _tail_length(self) -> int:
        return self._words.needle_lengths[0] + len(self._words.question) + self._answer_length

    @cached_property
    def _answer_length(self) -> int:
        return GENERATED_ROOM if self._generated else len(self._words.answer(NOMINAL_KEY))
