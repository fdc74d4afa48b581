"""Result records and their JSON form. Other programs read them: extend, never rename."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

#: Raised when the meaning of a field changes; records of another version are never mixed in.
SCHEMA_VERSION = 1


#: Verdicts on fewer documents are marked.
FEW_DOCUMENTS = 8


#: Fewer passkey trials at a length give no verdict.
MIN_TRIALS = 20


#: Relative changes of perplexity below this are none: passes differ by rounding.
NO_CHANGE = 5e-4


@dataclass(frozen=True)
class PositionBin:
    """Losses of the targets at some positions of the window.

    Attributes:
        start: First position, counted from 0.
        end: The one behind the last.
        nll_sum: Sum of their losses over all documents [nats].
        num_tokens: Targets.
    """

    start: int
    end: int
    nll_sum: float
    num_tokens: int


@dataclass(frozen=True)
class PerplexityPoint:
    """Perplexity at one context length.

    Attributes:
        context_length: N, tokens in the window, the beginning-of-sequence token included.
        perplexity: exp(nll_sum / num_tokens); None where no document is that long, or nothing was scored.
        nll_sum: Sum of the losses of all scored tokens [nats].
        num_tokens: Tokens scored.
        num_documents: Documents scored.
        document_nll_sums: ``nll_sum`` by document, for intervals and paired differences [nats].
        beyond_capacity: Whether N passes what the method was asked to reach.
        document_num_tokens: ``num_tokens`` by document.
        ci_low: Lower end of the bootstrap 95 % interval of the perplexity over documents; None below two.
        ci_high: Upper end.
        num_bytes: UTF-8 bytes of the text behind the scored tokens; None where they are not known.
        bits_per_byte: nll_sum / ln 2 / num_bytes: comparable across tokenizers.
        num_windows: Windows in which tokens were scored.
        window_mean_perplexity: exp of the mean over windows of each window's mean loss: what the scripts of YaRN
            and LongLoRA print. The same number where all windows score equally many tokens.
        positions: Losses by position in the window, where the protocol tells them; of several lengths that
            one pass answers only at the longest.
        gain_over_trained: Protocol ``tail``: how much lower the mean loss of the same targets is than given the
            trained length, under the same method [nats a token]; None where that was not measured.
        gain_ci_low: Lower end of its paired bootstrap 95 % interval over documents; None below two.
        gain_ci_high: Upper end.
        short_context: Protocol ``key-tokens``: K, the least context of the short windows [tokens].
        num_candidates: Protocol ``key-tokens``: targets with more than K tokens before them, of which
            ``num_tokens`` are key tokens.
        candidates_perplexity: Protocol ``key-tokens``: perplexity over all candidates.
    """

    context_length: int
    perplexity: float | None = None
    nll_sum: float = 0.0
    num_tokens: int = 0
    num_documents: int = 0
    document_nll_sums: list[float] = field(default_factory=list)
    beyond_capacity: bool = False
    document_num_tokens: list[int] = field(default_factory=list)
    ci_low: float | None = None
    ci_high: float | None = None
    num_bytes: int | None = None
    bits_per_byte: float | None = None
    num_windows: int = 0
    window_mean_perplexity: float | None = None
    positions: list[PositionBin] = field(default_factory=list)
    gain_over_trained: float | None = None
    gain_ci_low: float | None = None
    gain_ci_high: float | None = None
    short_context: int | None = None
    num_candidates: int | None = None
    candidates_perplexity: float | None = None


@dataclass(frozen=True)
class PasskeyCell:
    """Passkey retrieval at one length and depth.

    Attributes:
        length: Tokens of prompt and answer together.
        depth: Relative position of the needle, in [0, 1].
        needle_position: Index of the needle's first token.
        prompt_tokens: Tokens before the answer.
        answer_tokens: Tokens of the answer, all of which must be right.
        correct: Trials answered exactly.
        trials: Trials.
        accuracy: correct / trials.
        ci_low: Lower end of the Wilson 95 % interval of the accuracy.
        ci_high: Upper end.
        answer_logprob: Mean log-probability of the whole answer [nats]; a signal where accuracy has none. None
            where answers are generated and read.
        beyond_capacity: Whether the length passes what the method was asked to reach.
        num_differing: Trials whose text, decoded greedily, says otherwise than the scores; None where scores were
            not checked that way.
    """

    length: int
    depth: float
    needle_position: int
    prompt_tokens: int
    answer_tokens: int
    correct: int
    trials: int
    accuracy: float
    ci_low: float
    ci_high: float
    answer_logprob: float | None
    beyond_capacity: bool = False
    num_differing: int | None = None


@dataclass(frozen=True)
class PasskeyLength:
    """Passkey retrieval at one length, over all depths.

    Attributes:
        length: Tokens of prompt and answer together.
        correct: Trials answered exactly.
        trials: Trials.
        accuracy: correct / trials.
        ci_low: Lower end of the Wilson 95 % interval.
        ci_high: Upper end.
        answer_logprob: Mean log-probability of the whole answer [nats]; None where answers are generated and read.
        depths: The cells behind it.
        beyond_capacity: Whether the length passes what the method was asked to reach.
        num_differing: Trials whose greedy text says otherwise than the scores; None where that was not checked.
    """

    length: int
    correct: int
    trials: int
    accuracy: float
    ci_low: float
    ci_high: float
    answer_logprob: float | None
    depths: list[PasskeyCell]
    beyond_capacity: bool = False
    num_differing: int | None = None


@dataclass(frozen=True)
class Reach:
    """How far a method goes, in three senses that are never the same question [tokens].

    Attributes:
        computes: Positions whose slow rotations were all seen in training (a formula; after a training of its
            own, at least the positions of that one); None if unlimited.
        models: Longest evaluated context in which the same text is predicted no worse than by the
            unscaled model at its trained length; 0 if none, None if not measured.
        uses: Longest evaluated length up to which planted numbers are retrieved; 0 if none, None if
            not measured, or on too few trials.
    """

    computes: int | None
    models: int | None = None
    uses: int | None = None


@dataclass(frozen=True)
class TrainingSummary:
    """The training behind a row of a comparison; what a failed one did not come to is None.

    Attributes:
        id: The ``training.id`` of the checkpoint's own record: a hash of all that decides the result.
        steps: Optimizer steps.
        tokens: Tokens that were predicted.
        seconds: Time spent in steps [s].
        last_loss: Mean training loss of the last ten steps [nats a token].
        checkpoint: Folder of the tuned checkpoint.
    """

    id: str
    steps: int | None = None
    tokens: int | None = None
    seconds: float | None = None
    last_loss: float | None = None
    checkpoint: str | None = None


@dataclass(frozen=True)
class MethodRow:
    """One model under one method in a comparison.

    Attributes:
        model: The model, as the user wrote it.
        method: Method spec.
        perplexity: Points of protocol ``prefix``.
        tail: Points of protocol ``tail``: the same targets at every length.
        passkey: Retrieval per length.
        reach: The three lengths.
        short_delta: Worst relative perplexity change against the unscaled model at lengths up to the
            trained one; None if not measured.
        seconds: Wall time of the measurements.
        errors: Messages of cells, or of a training, that failed.
        training: The training after which it was measured; None for the model as it is given.
    """

    model: str
    method: str
    perplexity: list[PerplexityPoint]
    tail: list[PerplexityPoint]
    passkey: list[PasskeyLength]
    reach: Reach
    short_delta: float | None
    seconds: float
    errors: list[str] = field(default_factory=list)
    training: TrainingSummary | None = None


@dataclass(frozen=True)
class Pick:
    """What a comparison prefers, by rule and not by name.

    Attributes:
        model: The model, as the user wrote it.
        method: Method spec.
        reasons: Why, in a sentence each.
        training: Id of the training that belongs to it; None for the model as it is given.
    """

    model: str
    method: str
    reasons: list[str]
    training: str | None = None


def to_json(record: Any) -> dict[str, Any]:
    """Returns a record as plain JSON values."""
    return asdict(record)
