"""The answers of a model to trials, collected while it gives them.

Legend: K predictions, V vocabulary.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from ropectl.errors import MeasurementError
from ropectl.evaluate.retrieval.prefix_tree import Target
from ropectl.tasks.trial import Trial

#: Called with a trial and the tokens generated for it; True ends its text there.
Stop = Callable[[Trial, Sequence[int]], bool]


@dataclass(frozen=True)
class TrialScore:
    """The outcome of a trial.

    Attributes:
        correct: Whether the most likely token is the answer's at each of its positions, given the true ones before
            it. False if no answer is known: ``generated`` is then read.
        answer_logprob: Log-probability of the known answer [nats]; None where there is none.
        generated: The greedy continuation of the prompt, without a token that ends the text.
        is_cut: Whether that text was ended by its budget.
    """

    correct: bool
    answer_logprob: float | None
    generated: tuple[int, ...] = ()
    is_cut: bool = False


@dataclass(frozen=True)
class Answers:
    """The scores and texts of all trials.

    Attributes:
        trials: All trials; others name them by their place here.
        generate: Whether trials with a known answer are decoded too.
        end_tokens: Tokens that end a text.
        stop: Ends texts too; None for nothing more.
        words: Tokens that a text may have beyond the known answer, or beyond the trial's own budget.
    """

    trials: Sequence[Trial]
    generate: bool
    end_tokens: frozenset[int]
    stop: Stop | None
    words: int = 0
    _wrong: set[int] = field(default_factory=set)
    _logprobs: dict[int, float] = field(default_factory=lambda: defaultdict(float))
    _texts: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))

    def score(self, targets: Sequence[Target], logits: Tensor) -> None:
        """Compares logits (K, V) with the K tokens that should come.

        Raises:
            MeasurementError: If they are not finite, or give an answer no probability at all.
        """
        tokens = torch.tensor([target.token for target in targets], device=logits.device)
        hits = (self.likeliest(logits) == tokens).tolist()
        logprobs = logits.log_softmax(dim=-1).gather(-1, tokens.unsqueeze(-1)).squeeze(-1)
        _refuse_unless(bool(logprobs.isfinite().all()))
        for target, hit, logprob in zip(targets, hits, logprobs.tolist(), strict=True):
            self._logprobs[target.trial] += logprob
            if not hit:
                self._wrong.add(target.trial)

    @staticmethod
    def likeliest(logits: Tensor) -> Tensor:
        """Returns the most likely tokens (K,) of logits (K, V).

        Raises:
            MeasurementError: If they are not finite. A token that cannot be may have minus infinity.
        """
        largest, tokens = logits.max(dim=-1)  # the largest of a row with a NaN is NaN
        _refuse_unless(bool(largest.isfinite().all()))
        return tokens

    def room(self, index: int) -> int:
        """Returns the most tokens that a trial is decoded for."""
        return (len(self.trials[index].answer_ids) or self.trials[index].max_new_tokens) + self.words

    def write(self, index: int, token: int) -> bool:
        """Adds a token to a trial's text and returns whether it goes on."""
        trial, text = self.trials[index], self._texts[index]
        if token in self.end_tokens:
            return False
        text.append(token)
        return len(text) < self.room(index) and (self.stop is None or not self.stop(trial, text))

    def text(self, index: int) -> list[int]:
        """Returns the text of a trial up to now."""
        return self._texts[index]

    def scores(self) -> list[TrialScore]:
        """Returns the outcome of each trial."""
        scores = []
        for index, trial in enumerate(self.trials):
            known, text = bool(trial.answer_ids), tuple(self._texts.get(index, ()))
            logprob = self._logprobs[index] if known else None
            scores.append(TrialScore(known and index not in self._wrong, logprob, text, len(text) == self.room(index)))
        return scores


def _refuse_unless(finite: bool) -> None:
    if not finite:
        raise MeasurementError(
            "The model computes no usable probabilities for an answer: its logits are not finite.",
            "If the dtype is float16, its range may be too small: --dtype bfloat16 or float32.",
        )
