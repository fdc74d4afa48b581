"""The answers of a model under a method to prompts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ropectl.evaluate.cost import Progress, no_progress
from ropectl.evaluate.retrieval.answers import Stop, TrialScore
from ropectl.evaluate.retrieval.prompts import Prompt, computed_together
from ropectl.evaluate.retrieval.row_groups import MAX_BATCH_TOKENS
from ropectl.evaluate.retrieval.walk import walk
from ropectl.hf.model.patch import apply_rope
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.method import ScalingMethod
from ropectl.tasks.prompt_builder import PromptBuilder
from ropectl.tasks.trial import Trial, first_number

#: Tokens that the text of a passkey may have beyond the key: words before it, and what shows that it ends. They come
#: after the measured length, which holds prompt and key.
ROOM_FOR_WORDS = 32


@dataclass(frozen=True)
class AnsweredPrompt:
    """A prompt, and the model's answer to it."""

    prompt: Prompt
    result: TrialScore


def answer_passkeys(
    model: Any,
    method: ScalingMethod,
    geometry: RopeGeometry,
    prompts: Sequence[Prompt],
    builder: PromptBuilder,
    **options: Any,
) -> list[AnsweredPrompt]:
    """Returns the answers to passkey prompts; where text is generated, up to the end of its first number.

    Args:
        model: As for :func:`answer_prompts`.
        method: As there.
        geometry: As there.
        prompts: Passkey prompts.
        builder: The builder that made them.
        options: As there.
    """

    def stop(trial: Trial, tokens: Sequence[int]) -> bool:
        return first_number(builder.text(list(tokens)), is_cut=True) is not None

    return answer_prompts(model, method, geometry, prompts, stop=stop, words=ROOM_FOR_WORDS, **options)


def answer_prompts(
    model: Any,
    method: ScalingMethod,
    geometry: RopeGeometry,
    prompts: Sequence[Prompt],
    *,
    layers: str | None = None,
    prefill_chunk: int | None = None,
    max_batch_tokens: int = MAX_BATCH_TOKENS,
    generate: bool = False,
    stop: Stop | None = None,
    words: int = 0,
    progress: Progress = no_progress,
) -> list[AnsweredPrompt]:
    """Returns the answer to each prompt, group by group of those that are computed together.

    A known answer is scored by teacher forcing: the most likely token at every answer position, given the true answer
    before it, is the answer's. By induction that is exactly "greedy decoding produces the answer", without decoding.

    Args:
        model: A causal language model of transformers.
        method: Applied for each group, frozen at its length if it depends on it, and undone after it.
        geometry: The geometry that the model was trained with.
        prompts: The prompts.
        layers: The layer type that is scaled, where each has its own rotary table.
        prefill_chunk: Most tokens of a prompt per forward pass; None lets the walk choose.
        max_batch_tokens: Most tokens that the rows of a cache hold together.
        generate: Decode known answers greedily too.
        stop: Ends generated texts early.
        words: Tokens that a text may have beyond the known answer, or beyond the trial's own budget.
        progress: Called after each forward pass.

    Raises:
        MeasurementError: If the model computes no usable probabilities.
    """
    answered: list[AnsweredPrompt] = []
    for group in computed_together(method, prompts):
        seq_len = max(prompt.point.length for prompt in group)
        with apply_rope(model, method, geometry=geometry, seq_len=seq_len, layers=layers):
            results = walk(
                model, [prompt.trial for prompt in group], prefill_chunk=prefill_chunk,
                max_batch_tokens=max_batch_tokens, generate=generate, stop=stop, words=words, progress=progress,
            )  # fmt: skip
        answered += map(AnsweredPrompt, group, results)
    return answered
