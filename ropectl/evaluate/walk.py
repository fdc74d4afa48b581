"""Trials answered in one walk over the tree of their shared prefixes, with a cache that is cropped and branched.

Every distinct prefix is computed once. Branches that end equally far away go side by side as rows of one batch:
they always stand at the same depth, so nothing is padded and no mask is made. All others are walked one after
the other, the longest last, and the cache is put back in between.

The caller has given the model its frequencies. They are the same for the whole walk: keys in the cache and new
ones are turned alike, whatever a method would do at another length.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from ropectl.data.trials import Trial
from ropectl.errors import MeasurementError
from ropectl.evaluate.pieces import Pieces
from ropectl.evaluate.prefix_tree import Node, Target, build_tree
from ropectl.evaluate.progress import Progress, no_progress
from ropectl.hf.cache import branch, can_crop, crop

#: Most tokens that the rows of a cache hold together; a prompt longer than this has one of its own.
MAX_BATCH_TOKENS = 8192

#: Tokens of a piece where there is a cache before it. transformers then makes a mask of all its pairs, and half of
#: the pairs inside the piece are computed in vain: shorter ones waste less, longer ones cost fewer calls.
PIECE = 512

#: Most entries of such a mask (a byte each).
MAX_MASK = 2**26

#: Told a trial and the tokens generated so far; True ends its text there.
Stop = Callable[[Trial, Sequence[int]], bool]


@dataclass(frozen=True)
class TrialScore:
    """How a trial went.

    Attributes:
        correct: Whether the most likely token is the answer's at each of its positions, given the true ones before
            it. False where no answer is known: who reads ``generated`` decides.
        answer_logprob: Log-probability of the known answer [nats]; None where there is none.
        generated: The greedy continuation of the prompt, without a token that ends the text.
    """

    correct: bool
    answer_logprob: float | None
    generated: tuple[int, ...] = ()


def walk(
    model: Any,
    trials: Sequence[Trial],
    *,
    prefill_chunk: int | None = None,
    max_batch_tokens: int = MAX_BATCH_TOKENS,
    generate: bool = False,
    stop: Stop | None = None,
    progress: Progress = no_progress,
) -> list[TrialScore]:
    """Returns how each trial went, in the order of ``trials``; the numbers are those of each prompt alone.

    The tokens computed are :func:`ropectl.evaluate.prefix_tree.count_nodes` of the trials, and what is generated.
    Models that cannot be run piece by piece are found out and given each prompt whole.

    Args:
        model: A causal language model of transformers, patched as it is to be measured.
        trials: Prompts with known answers, or with room to generate one.
        prefill_chunk: Most tokens of a row per forward pass; by default all where no cache stands before them,
            else 512.
        max_batch_tokens: Most tokens that the rows of the cache hold together; one row may hold more.
        generate: Decode trials with a known answer too, as many tokens as it has.
        stop: Ends generated texts whose answer is not known early, beside the model's own end tokens.
        progress: Told the tokens of each forward pass.

    Raises:
        MeasurementError: If the model's logits are not finite.
    """
    pieces = Pieces.of(model, prefill_chunk)
    walker = _Walk(pieces, trials, max_batch_tokens, generate, stop, progress)
    return walker.walk() if pieces.shares else walker.one_by_one()


@dataclass(frozen=True)
class _Row:
    """A place in the tree: ``offset`` tokens of ``node`` are done. It continues row ``source`` of a cache."""

    source: int
    node: Node
    offset: int = 0

    @property
    def height(self) -> int:
        return self.node.height - self.offset

    @property
    def rest(self) -> int:
        return len(self.node.tokens) - self.offset


@dataclass
class _Walk:
    pieces: Pieces
    trials: Sequence[Trial]
    max_batch_tokens: int
    generate: bool
    stop: Stop | None
    progress: Progress
    wrong: set[int] = field(default_factory=set)
    logprobs: dict[int, float] = field(default_factory=lambda: defaultdict(float))
    generated: dict[int, tuple[int, ...]] = field(default_factory=dict)

    def walk(self) -> list[TrialScore]:
        roots = [_Row(0, node) for node in build_tree(self.trials, self.generate)]
        for group in self._groups(roots, 0):
            self._descend(group, None, 0)
        return self._scores()

    def _scores(self) -> list[TrialScore]:
        known = [bool(trial.answer_ids) for trial in self.trials]
        return [
            TrialScore(
                known[index] and index not in self.wrong,
                self.logprobs[index] if known[index] else None,
                self.generated.get(index, ()),
            )
            for index in range(len(self.trials))
        ]

    def _descend(self, rows: Sequence[_Row], cache: Any, depth: int) -> None:
        """Walks everything below some rows that stand at one depth, row i of the cache holding what is before row i."""
        while rows:
            step = min(min(row.rest for row in rows), self._longest_piece(depth))
            states, cache = self._run(rows, step, cache, depth)
            depth += step
            self._generate_behind([row for row in rows if row.rest == step], rows, states, cache, depth)
            *sides, last = self._groups(list(_following(rows, step)), depth) or [[]]
            for side in sides:
                with _continued(cache, [row.source for row in side], len(rows), depth, side[0].height) as own:
                    self._descend(side, own, depth)
            if last and [row.source for row in last] != list(range(len(rows))):
                cache = branch(cache, [row.source for row in last])
            rows = last

    def _longest_piece(self, depth: int) -> int:
        """Tokens that a row may take at once behind ``depth`` others."""
        chunk = self.pieces.prefill_chunk
        if depth == 0:
            return chunk or max(len(trial.input_ids) for trial in self.trials)
        return max(1, min(chunk or PIECE, MAX_MASK // (depth + PIECE)))

    def _groups(self, rows: Sequence[_Row], depth: int) -> list[list[_Row]]:
        """Rows that end equally far away together, as many as a cache may hold; the longest last."""
        by_height: dict[int, list[_Row]] = defaultdict(list)
        for row in rows:
            by_height[row.height].append(row)
        groups: list[list[_Row]] = []
        for height in sorted(by_height):
            room = self.max_batch_tokens // (depth + height)
            taken = room + 1
            for row in by_height[height]:
                if taken + row.node.width > room:
                    groups.append([])
                    taken = 0
                groups[-1].append(row)
                taken += row.node.width
        return groups

    def _run(self, rows: Sequence[_Row], step: int, cache: Any, depth: int) -> tuple[Tensor, Any]:
        ids = torch.tensor([row.node.tokens[row.offset : row.offset + step] for row in rows])
        wanted = [
            (index, target)
            for index, row in enumerate(rows)
            for target in row.node.targets
            if depth <= target.position < depth + step
        ]
        first = min((target.position for _, target in wanted), default=depth + step - 1)
        follows = any(row.height > step or row.node.ends for row in rows)
        states, cache = self.pieces.run(ids, cache, depth + step - first, keep=follows)
        self.progress(ids.numel())
        if wanted:
            places = [target.position - first for _, target in wanted]
            logits = self.pieces.logits(states[[index for index, _ in wanted], places])
            self._score([target for _, target in wanted], logits)
        return states[:, -1], cache

    def _score(self, targets: Sequence[Target], logits: Tensor) -> None:
        """Compares logits (K, V) with the K tokens that should come."""
        self._check(logits)
        tokens = torch.tensor([target.token for target in targets], device=logits.device)
        hits = (logits.argmax(dim=-1) == tokens).tolist()
        logprobs = logits.log_softmax(dim=-1).gather(-1, tokens.unsqueeze(-1)).squeeze(-1).tolist()
        for target, hit, logprob in zip(targets, hits, logprobs, strict=True):
            self.logprobs[target.trial] += logprob
            if not hit:
                self.wrong.add(target.trial)

    def _generate_behind(
        self, done: Sequence[_Row], rows: Sequence[_Row], states: Tensor, cache: Any, depth: int
    ) -> None:
        """Decodes the trials whose prompts end here; ``states`` (B, H) are those of the last tokens of all rows."""
        places = {id(row): index for index, row in enumerate(rows)}
        asked = [(places[id(row)], trial) for row in done for trial in row.node.ends]
        size = max(1, self.max_batch_tokens // (depth + 1))
        for start in range(0, len(asked), size):
            part = asked[start : start + size]
            sources, trials = [source for source, _ in part], [trial for _, trial in part]
            longest = max(self._budget(trial) for trial in trials)
            with _continued(cache, sources, len(rows), depth, longest) as own:
                self._decode(trials, states[sources], own)

    def _decode(self, trials: Sequence[int], states: Tensor, cache: Any) -> None:
        texts: list[list[int]] = [[] for _ in trials]
        open_texts = set(range(len(trials)))
        while True:
            logits = self.pieces.logits(states)
            self._check(logits)
            tokens = logits.argmax(dim=-1)
            for place, token in enumerate(tokens.tolist()):
                if place in open_texts and not self._append(self.trials[trials[place]], texts[place], token):
                    open_texts.remove(place)
            for place in set(range(len(trials))) - open_texts:
                self.generated.setdefault(trials[place], tuple(texts[place]))
            if not open_texts:
                return
            states, cache = self.pieces.run(tokens.unsqueeze(-1), cache)
            states = states[:, -1]
            self.progress(len(trials))

    def _append(self, trial: Trial, text: list[int], token: int) -> bool:
        """Adds a token to a text; False if that was the last one."""
        if trial.answer_ids:  # compared with the answer token by token: nothing ends it early
            text.append(token)
            return len(text) < len(trial.answer_ids)
        if token in self.pieces.end_tokens:
            return False
        text.append(token)
        return len(text) < trial.max_new_tokens and not (self.stop and self.stop(trial, text))

    def _budget(self, index: int) -> int:
        return len(self.trials[index].answer_ids) or self.trials[index].max_new_tokens

    def one_by_one(self) -> list[TrialScore]:
        """Gives the model each prompt whole, and again for each token that is generated: exact for any model."""
        for index, trial in enumerate(self.trials):
            answer = trial.answer_ids
            if answer:
                logits = self._last_logits(trial.input_ids[:-1], len(answer))
                first = trial.answer_start - 1
                self._score([Target(first + place, index, token) for place, token in enumerate(answer)], logits)
            if self.generate or not answer:
                text: list[int] = []
                goes_on = True
                while goes_on:
                    logits = self._last_logits([*trial.input_ids[: trial.answer_start], *text], 1)
                    goes_on = self._append(trial, text, int(logits[0].argmax()))
                self.generated[index] = tuple(text)
        return self._scores()

    def _last_logits(self, ids: Sequence[int], num_last: int) -> Tensor:
        """The logits of the last tokens of one whole sequence, (num_last, V)."""
        states, _ = self.pieces.run(torch.tensor([ids]), None, num_last, keep=False)
        self.progress(len(ids))
        logits = self.pieces.logits(states[0])
        self._check(logits)
        return logits

    @staticmethod
    def _check(logits: Tensor) -> None:
        """Refuses logits (K, V) that are no probabilities; a token that cannot be may have minus infinity."""
        if not bool(logits.amax(dim=-1).isfinite().all()):  # the largest of a row with a NaN is NaN
            raise MeasurementError(
                "The model computes no usable probabilities for an answer: its logits are not finite.",
                "If the dtype is float16, its range may be too small: --dtype bfloat16 or float32.",
            )


def _following(rows: Sequence[_Row], step: int) -> Iterator[_Row]:
    """What comes after the next ``step`` tokens of each row."""
    for index, row in enumerate(rows):
        if row.rest > step:
            yield _Row(index, row.node, row.offset + step)
        else:
            yield from (_Row(index, child) for child in row.node.children)


@contextmanager
def _continued(cache: Any, sources: Sequence[int], num_rows: int, depth: int, more: int) -> Iterator[Any]:
    """Lends a cache with these rows, to be continued by up to ``more`` tokens; ``cache`` holds ``depth`` again after it."""
    if list(sources) == list(range(num_rows)) and can_crop(cache, depth + more):
        yield cache
        crop(cache, depth)
    else:
        yield branch(cache, sources)
