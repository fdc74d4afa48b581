"""Passkeys measured on a grid of depths, from prompts to records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ropectl.evaluate.retrieval.measure import answer_passkeys
from ropectl.evaluate.retrieval.passkey_cells import by_length, passkey_cells
from ropectl.evaluate.retrieval.prompts import Prompt, build_prompts, depth_grid
from ropectl.records import PasskeyLength
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.method import ScalingMethod
from ropectl.tasks.kinds.passkey import Passkey
from ropectl.tasks.prompt_builder import PromptBuilder


def passkey_prompts(
    builder: PromptBuilder, lengths: Sequence[int], depths: Sequence[float], trials: int, distractors: int = 0
) -> list[Prompt]:
    """Passkey prompts on a grid of depths."""
    task = Passkey(distractors=distractors)
    return build_prompts(task, builder, depth_grid(task, builder, lengths, depths), trials)


def measure_passkey(
    model: Any,
    method: ScalingMethod,
    geometry: RopeGeometry,
    builder: PromptBuilder,
    lengths: Sequence[int],
    depths: Sequence[float],
    trials: int,
    *,
    distractors: int = 0,
    capacity: int | None = None,
    generate: bool = False,
    **options: Any,
) -> list[PasskeyLength]:
    """How often the key is retrieved, by length."""
    prompts = passkey_prompts(builder, lengths, depths, trials, distractors)
    answered = answer_passkeys(model, method, geometry, prompts, builder, generate=generate, **options)
    return by_length(passkey_cells(answered, builder, capacity, generate))
