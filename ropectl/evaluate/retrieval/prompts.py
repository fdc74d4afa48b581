"""The prompts that a task is measured with; each is built once and handed on."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ropectl.errors import ConfigError
from ropectl.evaluate.cost import ForwardCost
from ropectl.evaluate.retrieval.prefix_tree import TreeSize, count_nodes, measure_tree
from ropectl.evaluate.retrieval.row_groups import count_passes
from ropectl.rope.method import ScalingMethod
from ropectl.tasks.prompt_builder import PromptBuilder
from ropectl.tasks.task import RetrievalTask
from ropectl.tasks.trial import Trial
from ropectl.timing.operations import NOTHING, Cost


class GridPoint(NamedTuple):
    """A length [tokens] and the relative place of the asked fact in it, in [0, 1]; None for a task without depths."""

    length: int
    depth: float | None


@dataclass(frozen=True)
class Prompt:
    """A trial and its place in a grid.

    Attributes:
        point: Its length and depth.
        position: Index of the first token of the asked fact; None for a task without depths.
        trial: The tokens, and what counts as the answer.
        seed: What its key and filler were drawn with.
    """

    point: GridPoint
    position: int | None
    trial: Trial
    seed: int = 0


def depth_grid(
    task: RetrievalTask, builder: PromptBuilder, lengths: Sequence[int], depths: Sequence[float]
) -> list[GridPoint]:
    """Returns every length with every depth.

    If a short prompt moves several depths to one position, the first is measured: counting the same trials twice would
    only look like more evidence.
    """
    if not task.has_depths:
        return [GridPoint(length, None) for length in lengths]
    return [GridPoint(length, depth) for length in lengths for depth in task.distinct_depths(builder, length, depths)]


def position_grid(
    task: RetrievalTask, builder: PromptBuilder, lengths: Sequence[int], positions: Sequence[int]
) -> list[GridPoint]:
    """Returns needles at fixed positions, each with every length that reaches beyond it.

    The form of Position Interpolation (arXiv 2306.15595). A position before the end of the instruction means directly
    after it.

    Raises:
        ConfigError: If a length is too short for all of the positions, or a position lies beyond all lengths.
    """
    points: dict[tuple[int, int], GridPoint] = {}
    for length in lengths:
        latest = task.position(builder, length, 1.0)
        fitting = [position for position in positions if position <= latest]
        if not fitting:
            raise ConfigError(
                f"length = {length} tokens has room for a needle up to position {latest}: "
                f"none of {', '.join(map(str, positions))} is there.",
                f"Name an earlier one, for example: --position {length // 2}",
            )
        for position in fitting:
            depth = position / length
            points.setdefault((length, task.position(builder, length, depth)), GridPoint(length, depth))
    last = max(task.position(builder, length, 1.0) for length in lengths)
    beyond = [str(position) for position in positions if position > last]
    if beyond:
        raise ConfigError(
            f"position = {', '.join(beyond)} is beyond every length: the longest, {max(lengths)} tokens, has room up to {last}.",
            f"Use longer ones, --length N, or positions of at most {last}.",
        )
    return list(points.values())


def default_positions(lengths: Sequence[int]) -> list[int]:
    """Returns default needle positions: after the instruction, half the shortest length, and each length but the longest."""
    ordered = sorted(lengths)
    return sorted({0, ordered[0] // 2, *ordered[:-1]})


def early_position_note(
    task: RetrievalTask, builder: PromptBuilder, lengths: Sequence[int], positions: Sequence[int]
) -> list[str]:
    """Returns a note on needles that were asked for inside the instruction, and so are at a later token."""
    earliest = task.position(builder, min(lengths), 0.0)
    early = [str(position) for position in positions if position < earliest]
    if not early:
        return []
    return [f"Needles come after the instruction, from token {earliest} on: {', '.join(early)} means {earliest}."]


def build_prompts(
    task: RetrievalTask, builder: PromptBuilder, points: Sequence[GridPoint], trials: int, seeds: int = 1
) -> list[Prompt]:
    """Returns the prompts of some points, all trials of a point in a row, and all of it once for each seed.

    Args:
        task: The task.
        builder: Builds them; its seed is the first one, and the others follow it.
        points: Lengths and depths.
        trials: Prompts of each point under each seed.
        seeds: How many seeds.

    Raises:
        ConfigError: If a length is too short for a prompt.
    """
    prompts = []
    for seed in range(builder.seed, builder.seed + seeds):
        own = builder.with_seed(seed)
        for point in points:
            position = None if point.depth is None else task.position(own, point.length, point.depth)
            for number in range(trials):
                prompts.append(Prompt(point, position, task.build(own, point.length, point.depth, number), seed))
    return prompts


def computed_together(method: ScalingMethod, prompts: Sequence[Prompt]) -> list[list[Prompt]]:
    """Returns the prompts in groups in which the model computes the same, so that what they share is computed once.

    A method that follows the length is frozen at each length, and makes a group of each.
    """
    groups: dict[int | None, list[Prompt]] = defaultdict(list)
    for prompt in prompts:
        groups[prompt.point.length if method.depends_on_seq_len else None].append(prompt)
    return list(groups.values())


def count_tokens(method: ScalingMethod, prompts: Sequence[Prompt]) -> int:
    """Returns the number of tokens computed; beginnings that prompts share count once."""
    return sum(count_nodes([prompt.trial for prompt in group]) for group in computed_together(method, prompts))


def cost_of(method: ScalingMethod, prompts: Sequence[Prompt], forward: ForwardCost) -> Cost:
    """Returns the cost of computing some prompts, and of generating what has no known answer to its full length."""
    together = ([prompt.trial for prompt in group] for group in computed_together(method, prompts))
    return sum((tree_cost(measure_tree(trials), count_passes(trials), forward) for trials in together), NOTHING)


def tree_cost(size: TreeSize, passes: int, forward: ForwardCost) -> Cost:
    """Returns the cost of a walk over a tree."""
    return forward.of_sums(passes, size.tokens + size.generated, size.squares, size.targets + size.generated)


def fingerprint(parts: Iterable[object]) -> str:
    """Returns a hash of what prompts consist of: equal hashes mean the same trials."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(json.dumps(part).encode())
    return digest.hexdigest()
