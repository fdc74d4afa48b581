"""Passkey grids: one walk over the tree of shared prefixes against one `generate` per trial, on the same prompts.

Two grids: needles at five quarter depths of six doubling lengths, and needles at fixed positions, every length
beyond them measured. For each, prints tokens that went through the model, seconds and their ratios, and which
share of the walk's time is spent inside the model. Asserts that every trial ends the same way, and that the walk
computes exactly the distinct prefixes of the prompts. The repetitions of both ways are interleaved.

    python scripts/bench/passkey_grid.py [--model builtin:tiny] [--method yarn:factor=8]
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch

from ropectl.evaluate.config import PasskeyConfig
from ropectl.evaluate.forward import Forward
from ropectl.evaluate.retrieval.prompts import (
    GridPoint,
    Prompt,
    build_prompts,
    count_tokens,
    default_positions,
    depth_grid,
    position_grid,
)
from ropectl.evaluate.retrieval.walk import walk
from ropectl.evaluate.setup import Setup
from ropectl.hf.model.patch import apply_rope
from ropectl.lengths import parse_lengths
from ropectl.tasks.kinds.passkey import Passkey
from ropectl.tasks.prompt_builder import PromptBuilder

DEPTHS = (0.0, 0.25, 0.5, 0.75, 1.0)


@dataclass
class Watch:
    """What a model was given, and how long it took over it."""

    tokens: int = 0
    seconds: float = 0.0
    _started: list[float] = field(default_factory=list)


@contextmanager
def watched(model: Any) -> Iterator[Watch]:
    """Counts tokens at the embedding and seconds in the decoder and in the head."""
    watch = Watch()

    def count(_module: Any, inputs: tuple[Any, ...], _output: Any) -> None:
        watch.tokens += inputs[0].numel()

    def begin(*_: Any) -> None:
        watch._started.append(time.perf_counter())

    def end(*_: Any) -> None:
        watch.seconds += time.perf_counter() - watch._started.pop()

    hooks = [model.get_input_embeddings().register_forward_hook(count)]
    for part in (model.get_decoder(), model.get_output_embeddings()):
        hooks += [part.register_forward_pre_hook(begin), part.register_forward_hook(end)]
    try:
        yield watch
    finally:
        for hook in hooks:
            hook.remove()


def by_walk(model: Any, prompts: Sequence[Prompt]) -> list[bool]:
    return [score.correct for score in walk(model, [prompt.trial for prompt in prompts])]


def by_generate(model: Any, prompts: Sequence[Prompt]) -> list[bool]:
    result = []
    for prompt in prompts:
        trial = prompt.trial
        start = torch.tensor([trial.input_ids[: trial.answer_start]], device=model.device)
        text = model.generate(
            start, attention_mask=torch.ones_like(start), max_new_tokens=len(trial.answer_ids), do_sample=False,
            pad_token_id=0,
        )  # fmt: skip
        result.append(text[0].tolist() == trial.input_ids)
    return result


def timed(
    run: Callable[[Any, Sequence[Prompt]], list[bool]], model: Any, prompts: Sequence[Prompt]
) -> tuple[float, Watch, list[bool]]:
    with watched(model) as watch:
        started = time.perf_counter()
        answers = run(model, prompts)
        return time.perf_counter() - started, watch, answers


def compare(
    name: str, setup: Setup, method: Any, builder: PromptBuilder, points: Sequence[GridPoint], options: Any
) -> None:
    model = setup.model
    prompts = build_prompts(Passkey(), builder, points, options.trials)
    longest = max(length for length, _ in points)
    walks, generates, ratios, shares = [], [], [], []
    with apply_rope(model, method, geometry=setup.geometry, seq_len=longest):
        assert Forward.of(model).shares  # how this model can be run is tried out once, on a few tokens
        by_walk(model, prompts[:1])
        for _ in range(options.repeats):
            seconds, watch, ours = timed(by_walk, model, prompts)
            reference, plain, theirs = timed(by_generate, model, prompts)
            assert ours == theirs, "the two ways differ"
            assert watch.tokens == count_tokens(method, prompts), "not the nodes of the tree"
            walks.append(seconds)
            generates.append(reference)
            ratios.append(reference / seconds)
            shares.append(watch.seconds / seconds)
    print(f"{name}: {len(prompts)} prompts, {sum(ours)} answered, the same ones both ways")
    print(f"  {'':<22}{'tokens':>10}{'seconds':>10}")
    print(f"  {'walk over the tree':<22}{watch.tokens:>10}{statistics.median(walks):>10.2f}")
    print(f"  {'generate per trial':<22}{plain.tokens:>10}{statistics.median(generates):>10.2f}")
    spread = f"({min(ratios):.2f} to {max(ratios):.2f})" if len(ratios) > 1 else ""
    print(f"  {'ratio':<22}{plain.tokens / watch.tokens:>10.2f}{statistics.median(ratios):>10.2f}  {spread}")
    print(f"  inside the model: {statistics.median(shares):.1%} of the walk's time")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="builtin:tiny")
    parser.add_argument("--method", default="yarn:factor=8")
    parser.add_argument("--lengths", default="128..4k", help="of the grid of depths")
    parser.add_argument("--position-lengths", default="512..4k/512", help="of the grid of positions")
    parser.add_argument("--trials", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()

    setup = Setup.of(PasskeyConfig(model=options.model))
    method = setup.method(options.method)
    builder = PromptBuilder(setup.tokenizer, setup.bos_token_id)
    print(f"{options.model}, {method}, {torch.get_num_threads()} threads")
    lengths = parse_lengths([options.lengths])
    compare("depths", setup, method, builder, depth_grid(Passkey(), builder, lengths, DEPTHS), options)
    lengths = parse_lengths([options.position_lengths])
    positions = default_positions(lengths)
    points = position_grid(Passkey(), builder, lengths, positions)
    compare("positions", setup, method, builder, points, options)


if __name__ == "__main__":
    main()
