"""Answers trials in one walk over the tree of their shared prefixes, with a cache that is cropped and branched.

Every distinct prefix is computed once. Branches that end equally far away go side by side as rows of one batch:
they are always at the same depth, so nothing is padded and no mask is made. All others are walked one after
the other, the longest last, and the cache is put back in between.

The caller has given the model its frequencies. They are the same for the whole walk: keys in the cache and new
ones are turned alike, whatever a method would do at another length.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ropectl.evaluate.cost import ForwardPass, Progress, no_progress
from ropectl.evaluate.forward import Forward, logits_at_once
from ropectl.evaluate.retrieval.answers import Answers, Stop, TrialScore
from ropectl.evaluate.retrieval.prefix_tree import Target, build_tree
from ropectl.evaluate.retrieval.row_groups import MAX_BATCH_TOKENS, TreeRow, following, grouped, longest_piece
from ropectl.hf.model.cache import branch, can_crop, crop, make_room
from ropectl.tasks.trial import Trial


def walk(
    model: Any,
    trials: Sequence[Trial],
    *,
    prefill_chunk: int | None = None,
    max_batch_tokens: int = MAX_BATCH_TOKENS,
    generate: bool = False,
    stop: Stop | None = None,
    words: int = 0,
    progress: Progress = no_progress,
) -> list[TrialScore]:
    """Returns the outcome of each trial, in the order of ``trials``; the numbers are those of each prompt on its own.

    The tokens computed are :func:`ropectl.evaluate.retrieval.prefix_tree.count_nodes` of the trials, and what is generated.
    Models that cannot be run piece by piece are given each prompt whole.

    Args:
        model: A causal language model of transformers, patched as it is to be measured.
        trials: Prompts with known answers, or with room to generate one.
        prefill_chunk: Most tokens of a row per forward pass; by default all where no cache comes before them,
            else 512.
        max_batch_tokens: Most tokens that the rows of the cache hold together; one row may hold more.
        generate: Decode trials with a known answer too.
        stop: Ends generated texts early, in addition to the model's own end tokens.
        words: Tokens that a text may have beyond the known answer, or beyond the trial's own budget.
        progress: Called after each forward pass.

    Raises:
        MeasurementError: If the model's logits are not finite.
    """
    forward = Forward.of(model, prefill_chunk)
    answers = Answers(trials, generate, forward.end_tokens, stop, words)
    if forward.shares:
        _TreeWalk(forward, answers, max_batch_tokens, progress).walk()
    else:
        _run_one_by_one(forward, answers, progress)
    return answers.scores()


@dataclass(frozen=True)
class _TreeWalk:
    forward: Forward
    answers: Answers
    max_batch_tokens: int
    progress: Progress

    def walk(self) -> None:
        roots = [TreeRow(0, node) for node in build_tree(self.answers.trials, self.answers.generate)]
        for group in self._groups(roots, 0):
            self._descend(group, None, 0)

    def _descend(self, rows: Sequence[TreeRow], cache: Any, depth: int) -> None:
        """Walks everything below some rows at one depth; row i of the cache holds what is before row i."""
        longest = max(len(trial.input_ids) for trial in self.answers.trials)
        while rows:
            step = min(min(row.rest for row in rows), longest_piece(depth, self.forward.prefill_chunk, longest))
            states, cache = self._run(rows, step, cache, depth)
            depth += step
            self._generate_after([row for row in rows if row.rest == step], rows, states, cache, depth)
            *sides, last = self._groups(list(following(rows, step)), depth) or [[]]
            for side in sides:
                with _continued(cache, [row.source for row in side], len(rows), depth, side[0].height) as own:
                    self._descend(side, own, depth)
            if last and [row.source for row in last] != list(range(len(rows))):
                cache = branch(cache, [row.source for row in last])
            rows = last

    def _groups(self, rows: Sequence[TreeRow], depth: int) -> list[list[TreeRow]]:
        return grouped(rows, depth, self.max_batch_tokens)

    def _run(self, rows: Sequence[TreeRow], step: int, cache: Any, depth: int) -> tuple[Tensor, Any]:
        ids = torch.tensor([row.node.tokens[row.offset : row.offset + step] for row in rows])
        wanted = [
            (index, target)
            for index, row in enumerate(rows)
            for target in row.node.targets
            if depth <= target.position < depth + step
        ]
        first = min((target.position for _, target in wanted), default=depth + step - 1)
        follows = any(row.height > step or row.node.ends for row in rows)
        states, cache = self.forward.run(ids, cache, depth + step - first, keep=follows)
        if follows:
            make_room(cache, depth + max(row.height for row in rows))
        self.progress(ForwardPass(len(rows), step, depth, len(wanted)))
        if wanted:
            places = [target.position - first for _, target in wanted]
            chosen = states[[index for index, _ in wanted], places]
            size = logits_at_once(self.forward.model)
            for start in range(0, len(wanted), size):
                logits = self.forward.logits(chosen[start : start + size])
                self.answers.score([target for _, target in wanted[start : start + size]], logits)
        return states[:, -1], cache

    def _generate_after(
        self, done: Sequence[TreeRow], rows: Sequence[TreeRow], states: Tensor, cache: Any, depth: int
    ) -> None:
        """Decodes the trials whose prompts end here; ``states`` (B, H) are those of the last tokens of all rows."""
        places = {id(row): index for index, row in enumerate(rows)}
        asked = [(places[id(row)], trial) for row in done for trial in row.node.ends]
        size = max(1, self.max_batch_tokens // (depth + 1))
        for start in range(0, len(asked), size):
            part = asked[start : start + size]
            sources, trials = [source for source, _ in part], [trial for _, trial in part]
            longest = max(self.answers.room(trial) for trial in trials)
            with _continued(cache, sources, len(rows), depth, longest) as own:
                self._decode(trials, states[sources], own, depth)

    def _decode(self, trials: Sequence[int], states: Tensor, cache: Any, depth: int) -> None:
        """Decodes some trials side by side until the last one ends; what follows those that ended before is ignored."""
        still_open = dict(enumerate(trials))
        while True:
            tokens = self.answers.likeliest(self.forward.logits(states))
            for place, trial in list(still_open.items()):
                if not self.answers.write(trial, int(tokens[place])):
                    del still_open[place]
            if not still_open:
                return
            states, cache = self.forward.run(tokens.unsqueeze(-1), cache)
            states = states[:, -1]
            self.progress(ForwardPass(len(trials), 1, depth, len(trials)))
            depth += 1


@contextmanager
def _continued(cache: Any, sources: Sequence[int], num_rows: int, depth: int, more: int) -> Iterator[Any]:
    """Lends a cache with these rows, to be continued by up to ``more`` tokens; ``cache`` holds ``depth`` again after it."""
    if list(sources) == list(range(num_rows)) and can_crop(cache, depth + more):
        yield cache
        crop(cache, depth)
    else:
        yield branch(cache, sources)


def _run_one_by_one(forward: Forward, answers: Answers, progress: Progress) -> None:
    """Gives each prompt to the model whole: exact for any model, and nothing is shared.

    A text that is generated is given again for each of its tokens.
    """

    def last_logits(ids: Sequence[int], num_last: int) -> Tensor:
        states, _ = forward.run(torch.tensor([ids]), None, num_last, keep=False)
        progress(ForwardPass(1, len(ids), scored=num_last))
        return forward.logits(states[0])

    for index, trial in enumerate(answers.trials):
        answer, first = trial.answer_ids, trial.answer_start - 1
        if answer:
            targets = [Target(first + place, index, token) for place, token in enumerate(answer)]
            answers.score(targets, last_logits(trial.input_ids[:-1], len(answer)))
        goes_on = answers.generate or not answer
        while goes_on:
            logits = last_logits([*trial.input_ids[: trial.answer_start], *answers.text(index)], 1)
            goes_on = answers.write(index, int(answers.likeliest(logits)[0]))
