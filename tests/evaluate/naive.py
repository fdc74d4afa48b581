"""Each prompt by itself, whole and without a cache: what a walk is compared with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from ropectl.tasks.trial import Trial


@torch.no_grad()
def answer(model: Any, trial: Trial) -> tuple[bool, float]:
    """Whether the most likely tokens are the answer, and the answer's log-probability [nats]."""
    logits = model(input_ids=torch.tensor([trial.input_ids]), use_cache=False).logits[0].double().log_softmax(-1)
    places = range(trial.answer_start, len(trial.input_ids))
    right = all(int(logits[place - 1].argmax()) == trial.input_ids[place] for place in places)
    return right, sum(float(logits[place - 1, trial.input_ids[place]]) for place in places)


@torch.no_grad()
def continuation(model: Any, prompt: list[int], count: int) -> tuple[int, ...]:
    """Greedy tokens, the whole sequence computed again for each."""
    ids = list(prompt)
    for _ in range(count):
        ids.append(int(model(input_ids=torch.tensor([ids]), use_cache=False).logits[0, -1].argmax()))
    return tuple(ids[len(prompt) :])


@contextmanager
def counted(model: Any) -> Iterator[list[int]]:
    """Tokens that each call of the model is given, by its embedding."""
    tokens: list[int] = []
    hook = model.get_input_embeddings().register_forward_hook(lambda _m, inputs, _out: tokens.append(inputs[0].numel()))
    try:
        yield tokens
    finally:
        hook.remove()
