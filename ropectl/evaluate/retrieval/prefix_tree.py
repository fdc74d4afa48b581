"""Arranges prompts as a tree of shared prefixes, each of which a model computes once.

A node is a run of tokens that all trials below it share. The path from the root to a leaf is what the model
is given for one trial: a known answer without its last token, which is predicted and never an input, or the
prompt alone where the answer is generated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from ropectl.tasks.trial import Trial

#: Tokens that are compared first.
_FIRST_STEP = 64


@dataclass(frozen=True)
class Target:
    """A token of a known answer, to be predicted.

    Attributes:
        position: Index of the token that predicts it, from the start of the prompt.
        trial: Whose answer it is.
        token: The token.
    """

    position: int
    trial: int
    token: int


@dataclass(eq=False)
class Node:
    """A run of tokens that is computed once.

    Attributes:
        depth: Tokens before it.
        tokens: Its tokens.
        targets: Answer tokens that are predicted inside it, by position.
        ends: Trials that are generated after its last token.
        children: What follows; they begin with different tokens.
        height: Tokens of the longest path from its first token to a leaf.
        width: Leaves at the end of its longest paths: so many rows are side by side there.
    """

    depth: int
    tokens: Sequence[int]
    targets: list[Target] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    children: list[Node] = field(default_factory=list)

    height: int = 0
    width: int = 1

    def measure(self) -> None:
        """Sets height and width from those of the children."""
        below = max((child.height for child in self.children), default=0)
        self.height = len(self.tokens) + below
        self.width = sum(child.width for child in self.children if child.height == below) or 1


@dataclass(frozen=True)
class TreeSize:
    """What a walk over the tree of some trials computes.

    Attributes:
        tokens: Different prefixes of what the model is given.
        squares: The sum over all nodes of (D + T)^2 - D^2, of T tokens after D others; with what is generated.
        targets: Answer tokens that are predicted.
        generated: The most tokens that are generated after trials without a known answer.
    """

    tokens: int
    squares: int
    targets: int
    generated: int


def measure_tree(trials: Sequence[Trial]) -> TreeSize:
    """Returns the size of the tree of some trials, without building it.

    The last token of a known answer is not an input and not counted.
    """
    tokens = squares = generated = 0
    previous: list[int] = []
    for trial in sorted(trials, key=_inputs):
        inputs, longer = _inputs(trial), 0 if trial.answer_ids else trial.max_new_tokens
        start, end = _shared(previous, inputs, 0), len(inputs)
        tokens, generated = tokens + end - start, generated + longer
        squares += (end + longer) ** 2 - start**2
        previous = inputs
    return TreeSize(tokens, squares, sum(len(trial.answer_ids) for trial in trials), generated)


def count_nodes(trials: Sequence[Trial]) -> int:
    """Returns the number of different prefixes of what the model is given: the tokens that a walk computes."""
    return measure_tree(trials).tokens


def build_tree(trials: Sequence[Trial], generate: bool = False) -> list[Node]:
    """Returns the roots of the tree of all trials; usually one, for they begin alike.

    Args:
        trials: Each with a prompt of at least one token, and a known answer or some to generate.
        generate: Decode the trials with a known answer too.
    """
    for trial in trials:
        assert trial.answer_start > 0, "nothing predicts the first token"
        assert trial.answer_ids or trial.max_new_tokens, "a trial has an answer, or generates one"
    inputs = [_inputs(trial) for trial in trials]
    ends = [trial.answer_start if generate or not trial.answer_ids else None for trial in trials]
    grower = _Grower(trials, inputs, ends)
    roots: list[Node] = []
    made: list[Node] = []
    # With a list of what is to be done, not by recursion: a needle at every hundredth token makes a tree of many levels.
    work = [(sorted(range(len(trials)), key=inputs.__getitem__), 0, roots)]
    while work:
        order, depth, siblings = work.pop()
        for group, node in grower.nodes(order, depth):
            siblings.append(node)
            made.append(node)
            work.append((group, depth + len(node.tokens), node.children))
    for node in reversed(made):  # children were made after their parents
        node.measure()
    return roots


@dataclass(frozen=True)
class _Grower:
    trials: Sequence[Trial]
    inputs: Sequence[Sequence[int]]
    prompt_ends: Sequence[int | None]

    def nodes(self, order: Sequence[int], depth: int) -> Iterator[tuple[list[int], Node]]:
        """Yields the nodes that begin at ``depth``, of trials in the order of their inputs that are alike before it; with those in each."""
        inputs = self.inputs
        longer = [index for index in order if len(inputs[index]) > depth]
        for _, members in groupby(longer, key=lambda index: inputs[index][depth]):
            group = list(members)
            stops = [stop for index in group if (stop := self.prompt_ends[index]) is not None and stop > depth]
            end = min([depth + _shared(inputs[group[0]], inputs[group[-1]], depth), *stops])
            ends = [index for index in group if self.prompt_ends[index] == end]
            yield group, Node(depth, inputs[group[0]][depth:end], self._targets(group, depth, end), ends)

    def _targets(self, group: Sequence[int], start: int, end: int) -> list[Target]:
        targets = [
            Target(position, index, trial.input_ids[position + 1])
            for index in group
            for trial in [self.trials[index]]
            for position in range(max(start, trial.answer_start - 1), min(end, len(trial.input_ids) - 1))
        ]
        return sorted(targets, key=lambda target: target.position)


def _inputs(trial: Trial) -> list[int]:
    return trial.input_ids[:-1] if trial.answer_ids else trial.input_ids


def _shared(left: Sequence[int], right: Sequence[int], start: int) -> int:
    """Returns how many tokens from ``start`` on agree, by doubled steps and then bisection: comparing slices is fast."""
    low, limit, step = start, min(len(left), len(right)), _FIRST_STEP
    while low + step <= limit and left[low : low + step] == right[low : low + step]:
        low += step
        step *= 2
    high = min(low + step, limit)
    while low < high:
        middle = (low + high + 1) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low - start
