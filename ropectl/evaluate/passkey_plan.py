"""Which passkey prompts are walked together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ropectl.data.passkey import PasskeyPrompt, PasskeyPromptBuilder
from ropectl.errors import ConfigError
from ropectl.evaluate.prefix_tree import count_nodes
from ropectl.rope.method import ScalingMethod

#: (length, depth)
Point = tuple[int, float]


@dataclass(frozen=True)
class PasskeyTree:
    """An independent piece of a grid: all prompts that share a needle position.

    Attributes:
        position: Index of the needle's first token.
        points: (length, depth) measured in it.
        seq_len: What a length-dependent method is frozen at, and then the length of all points; None for a
            static method.
    """

    position: int
    points: tuple[Point, ...]
    seq_len: int | None


def plan_passkey(
    method: ScalingMethod,
    builder: PasskeyPromptBuilder,
    lengths: Sequence[int],
    depths: Sequence[float],
) -> list[PasskeyTree]:
    """Returns the trees of a grid of lengths and depths.

    Of depths that a short prompt moves to one place the first is measured.
    """
    points = [(length, depth) for length in lengths for depth in builder.distinct_depths(length, depths)]
    return _trees(method, builder, points)


def plan_positions(
    method: ScalingMethod, builder: PasskeyPromptBuilder, lengths: Sequence[int], positions: Sequence[int]
) -> list[PasskeyTree]:
    """Returns the trees of needles at fixed positions, every length that reaches beyond it measured for each.

    The form of Position Interpolation (arXiv 2306.15595). A position before the end of the task means directly
    behind it.

    Raises:
        ConfigError: If a length is too short for a prompt, or for all of the positions; or a position lies beyond all.
    """
    points: dict[tuple[int, int], Point] = {}
    for length in lengths:
        fitting = [position for position in positions if position <= builder.needle_position(length, 1.0)]
        if not fitting:
            raise ConfigError(
                f"length = {length} tokens has room for a needle up to position {builder.needle_position(length, 1.0)}: "
                f"none of {', '.join(map(str, positions))} is there.",
                f"Name an earlier one, for example: --position {length // 2}",
            )
        for position in fitting:
            depth = position / length
            points.setdefault((length, builder.needle_position(length, depth)), (length, depth))
    last = max(builder.needle_position(length, 1.0) for length in lengths)
    beyond = [str(position) for position in positions if position > last]
    if beyond:
        raise ConfigError(
            f"position = {', '.join(beyond)} is beyond every length: the longest, {max(lengths)} tokens, has room up to {last}.",
            f"Use longer ones, --length N, or positions of at most {last}.",
        )
    return _trees(method, builder, points.values())


def default_positions(lengths: Sequence[int]) -> list[int]:
    """Returns needle positions for some lengths: behind the task, in the middle of the shortest, and each but the longest."""
    ordered = sorted(lengths)
    return sorted({0, ordered[0] // 2, *ordered[:-1]})


def earliest_note(builder: PasskeyPromptBuilder, lengths: Sequence[int], positions: Sequence[int]) -> list[str]:
    """Returns why a needle that was asked for at the very beginning is shown at a later token; empty if none was."""
    earliest = builder.needle_position(min(lengths), 0.0)
    early = [str(position) for position in positions if position < earliest]
    if not early:
        return []
    return [f"Needles stand behind the task's own text, from token {earliest} on: {', '.join(early)} means {earliest}."]


def walks(trees: Sequence[PasskeyTree]) -> list[list[PasskeyTree]]:
    """Returns the trees that one walk can take together, for the model computes the same in all of them."""
    groups: dict[int | None, list[PasskeyTree]] = defaultdict(list)
    for tree in trees:
        groups[tree.seq_len].append(tree)
    return list(groups.values())


def count_tokens(builder: PasskeyPromptBuilder, trees: Sequence[PasskeyTree], trials: int) -> int:
    """Returns how many tokens are computed where trees are walked together.

    Less than by themselves: before their needles all prompts are filler, which begins with one of few sentences.

    Raises:
        ConfigError: If a length leaves no room for a prompt.
    """
    return sum(
        count_nodes([prompt.trial for tree in group for prompt in prompts_of(builder, tree.points, trials)])
        for group in walks(trees)
    )


def prompts_of(builder: PasskeyPromptBuilder, points: Iterable[Point], trials: int) -> list[PasskeyPrompt]:
    """Returns the prompts of some points, all trials of one after the other."""
    return [builder.build(length, depth, trial) for length, depth in points for trial in range(trials)]


def _trees(method: ScalingMethod, builder: PasskeyPromptBuilder, points: Iterable[Point]) -> list[PasskeyTree]:
    by_place: dict[tuple[int, int | None], list[Point]] = defaultdict(list)
    for length, depth in points:
        seq_len = length if method.depends_on_seq_len else None
        by_place[builder.needle_position(length, depth), seq_len].append((length, depth))
    return [PasskeyTree(position, tuple(group), seq_len) for (position, seq_len), group in by_place.items()]
