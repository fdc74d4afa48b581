"""The tree of shared prefixes counts each prefix once, and puts every answer where it is predicted."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropectl.evaluate.retrieval.prefix_tree import Node, build_tree, count_nodes
from ropectl.tasks.trial import Trial

TOKENS = st.lists(st.integers(0, 2), min_size=2, max_size=12)


@st.composite
def trials(draw: st.DrawFn) -> list[Trial]:
    """A few trials over three tokens, so that they share a lot; some are to be generated."""
    result = []
    for ids in draw(st.lists(TOKENS, min_size=1, max_size=8)):
        known = draw(st.booleans())
        start = draw(st.integers(1, len(ids) - 1)) if known else len(ids)
        result.append(Trial(ids, start, max_new_tokens=0 if known else 3))
    return result


def paths(nodes: list[Node], before: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], Node]]:
    for node in nodes:
        assert node.depth == len(before) and node.tokens
        path = (*before, *node.tokens)
        yield path, node
        yield from paths(node.children, path)


def given_to_the_model(trial: Trial) -> list[int]:
    return trial.input_ids[:-1] if trial.answer_ids else trial.input_ids


@pytest.mark.process
@given(trials())
def test_each_prefix_counts_once(some: list[Trial]) -> None:
    prefixes = {
        tuple(ids[:end]) for trial in some for ids in [given_to_the_model(trial)] for end in range(1, len(ids) + 1)
    }
    assert count_nodes(some) == len(prefixes)
    for generate in (False, True):
        nodes = list(paths(build_tree(some, generate)))
        assert sum(len(node.tokens) for _, node in nodes) == len(prefixes)
        assert {path[:end] for path, _ in nodes for end in range(1, len(path) + 1)} == prefixes


@pytest.mark.process
@given(trials(), st.booleans())
def test_every_answer_token_has_its_place(some: list[Trial], generate: bool) -> None:
    nodes = list(paths(build_tree(some, generate)))
    placed = {}
    for path, node in nodes:
        for target in node.targets:
            trial = some[target.trial]
            assert node.depth <= target.position < len(path)
            assert list(path[: target.position + 1]) == trial.input_ids[: target.position + 1]
            assert trial.input_ids[target.position + 1] == target.token
            placed[target.trial, target.position] = target.token
        for index in node.ends:
            assert list(path) == some[index].input_ids[: some[index].answer_start]
    wanted = {(i, p) for i, t in enumerate(some) for p in range(t.answer_start - 1, len(t.input_ids) - 1)}
    assert placed.keys() == wanted
    decoded = sorted(index for _, node in nodes for index in node.ends)
    assert decoded == [i for i, trial in enumerate(some) if generate or not trial.answer_ids]


def test_height_and_width() -> None:
    """Three rows stand side by side at the end of the two longest paths' depth, one of them shorter."""
    long, other, short = [1, 2, 3, 4, 9], [1, 2, 5, 6, 9], [1, 2, 7, 9]
    (root,) = build_tree([Trial(ids, len(ids) - 1) for ids in (long, other, short)])
    assert (root.tokens, root.height, root.width) == ([1, 2], 4, 2)
    assert sorted(child.height for child in root.children) == [1, 2, 2]


@pytest.mark.process
def test_trees_of_many_levels() -> None:
    """A needle at every few tokens of one text: each level of the tree is one deeper."""
    text = [0] * 4000
    some = [Trial([*text[:end], 1, 2], end + 1) for end in range(3, 4000, 3)]
    assert count_nodes(some) == some[-1].answer_start - 1 + len(some)
    (root,) = build_tree(some)
    assert root.height == len(some[-1].input_ids) - 1
