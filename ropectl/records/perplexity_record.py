"""The record of ``eval-perplexity``. Other programs read it: extend, never rename."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from annotated_types import MinLen

from ropectl.records.bounds import AboveZero, Length, NotNegative
from ropectl.records.comparisons import Difference, LengthVerdict
from ropectl.records.json_form import optional
from ropectl.records.manifest import EvaluationRecord, Manifest


@dataclass(frozen=True)
class PositionBin:
    """Losses of the targets at some positions of the window.

    Attributes:
        start: First position, counted from 0.
        end: The position after the last.
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
        num_documents: Documents scored; windows of documents where they were cut (``split`` of the manifest), here and below.
        document_nll_sums: ``nll_sum`` by document, for intervals and paired differences [nats].
        beyond_capacity: Whether N is past the length that the method is made for.
        document_num_tokens: ``num_tokens`` by document.
        ci_low: Lower end of the 95 % interval of the perplexity over documents; None below two.
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
        gain_ci_low: Lower end of its paired 95 % interval over documents; None below two.
        gain_ci_high: Upper end.
        short_context: Protocol ``key-tokens``: K, the least context of the short windows [tokens].
        num_candidates: Protocol ``key-tokens``: targets with more than K tokens before them, of which
            ``num_tokens`` are key tokens.
        candidates_perplexity: Protocol ``key-tokens``: perplexity over all candidates.
    """

    context_length: Length
    perplexity: AboveZero | None = None
    nll_sum: float = 0.0
    num_tokens: int = 0
    num_documents: int = 0
    document_nll_sums: list[float] = field(default_factory=list)
    beyond_capacity: bool = False
    document_num_tokens: list[int] = field(default_factory=list)
    ci_low: float | None = None
    ci_high: float | None = None
    num_bytes: int | None = None
    bits_per_byte: NotNegative | None = None
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
class FirstToken:
    """The token that every scored document begins with.

    Attributes:
        policy: The setting: ``auto``, ``always`` or ``never``.
        token_id: The beginning-of-sequence token; None for none.
        token: The same as text.
    """

    policy: str | None = None
    token_id: int | None = None
    token: str | None = None


@dataclass(frozen=True)
class ModelsReach:
    """The length that a method reaches, as measured by perplexity.

    Attributes:
        models: As :attr:`Reach.models` of a comparison [tokens]; None unless protocol ``tail`` was measured.
        models_possible: As there [tokens].
        models_at: The outcome at each length.
    """

    models: int | None = None
    models_possible: int | None = None
    models_at: list[LengthVerdict] = field(default_factory=list)


@dataclass(frozen=True)
class Bootstrap:
    """The settings of the bootstrap that estimated the intervals.

    Attributes:
        resamples: Resamples of the documents.
        seed: Seed of the resampling.
    """

    resamples: int
    seed: int


@dataclass(frozen=True, kw_only=True)
class PerplexityManifest(Manifest):
    """The facts needed to measure a perplexity again.

    Attributes:
        documents: Names of the documents, or of the windows that they were cut into: ``novel.txt[3]``.
        document_tokens: Tokens of each.
        tokens_sha256: Hash of all tokens: equal hashes mean the same text in the same tokens.
        split: Tokens of a window; None where documents were not cut.
        clusters: Index of the source document of each entry of ``documents``; empty where each is one of its own.
        bootstrap: How intervals were estimated.
        tail_targets_per_document: K of protocol ``tail``: the targets that every length scores.
    """

    documents: list[str] = field(default_factory=list)
    document_tokens: list[int] = field(default_factory=list)
    tokens_sha256: str | None = None
    split: int | None = optional()
    clusters: list[int] = optional(beside="split", empty=list)
    bootstrap: Bootstrap | None = None
    tail_targets_per_document: int | None = optional()


@dataclass(frozen=True, kw_only=True)
class PerplexityRecord(EvaluationRecord):
    """Perplexity over context lengths of one model under one method.

    Attributes:
        text: Text source.
        protocol: Which windows ran, and what was scored in them.
        preset: Name of the published measurement whose settings were taken; None for none.
        stride: Step of sliding windows [tokens]; None for protocols without windows that slide.
        bos: What every document begins with.
        points: One entry per length.
        unscaled: The unscaled model on the same targets, up to its trained length; empty where the method is that model.
        reach: How far the method goes.
        differences: Paired differences from the unscaled model at the lengths up to its trained one.
        short_delta: Worst relative change against the unscaled model at lengths up to the trained one; None if not measured.
        short_delta_ci_low: Lower end of its paired 95 % interval, at the length where it is worst.
        short_delta_ci_high: Upper end.
        verdict: What the numbers mean, in sentences.
        manifest: What is needed to measure it again.
    """

    kind: ClassVar[str] = "perplexity"
    written_by: ClassVar[str] = "eval-perplexity"
    known_by: ClassVar[frozenset[str]] = frozenset({"points", "protocol"})

    text: str
    protocol: str
    preset: str | None = None
    stride: int | None = None
    bos: FirstToken = field(default_factory=FirstToken)
    points: Annotated[list[PerplexityPoint], MinLen(1)]
    unscaled: list[PerplexityPoint] = field(default_factory=list)
    reach: ModelsReach = field(default_factory=ModelsReach)
    differences: list[Difference] = field(default_factory=list)
    short_delta: float | None = None
    short_delta_ci_low: float | None = None
    short_delta_ci_high: float | None = None
    verdict: list[str] = field(default_factory=list)
    manifest: PerplexityManifest = field(default_factory=PerplexityManifest)
