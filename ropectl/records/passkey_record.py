"""The record of ``eval-passkey``. Other programs read it: extend, never rename."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from annotated_types import MinLen

from ropectl.records.bounds import Length, Share
from ropectl.records.comparisons import LengthVerdict, SeedScore
from ropectl.records.manifest import EvaluationRecord, Manifest


@dataclass(frozen=True)
class PasskeyCell:
    """Passkey retrieval at one length and depth.

    Attributes:
        length: Tokens of prompt and answer together.
        depth: Relative position of the needle, in [0, 1].
        needle_position: Index of the needle's first token.
        prompt_tokens: Tokens before the answer.
        answer_tokens: Tokens of the answer, all of which must be right unless texts are read.
        correct: Trials answered with the key.
        trials: Trials.
        accuracy: correct / trials.
        ci_low: Lower end of the Wilson 95 % interval of the accuracy.
        ci_high: Upper end.
        answer_logprob: Mean log-probability of the whole answer [nats]; a signal where accuracy has none. None
            where answers are generated and read.
        beyond_capacity: Whether the length is past the length that the method is made for.
        num_differing: Trials whose text, decoded greedily, says otherwise than the answer's scores token by token;
            None where only one of the two was looked at.
        outcomes: Each trial's, 1 for the key and 0 for anything else, in the order of seeds and trials, for paired comparisons.
        seeds: The seeds that prompts were drawn with, each with equally many trials.
    """

    length: Length
    depth: float
    needle_position: int
    prompt_tokens: int
    answer_tokens: int
    correct: int
    trials: int
    accuracy: Share
    ci_low: float
    ci_high: float
    answer_logprob: float | None
    beyond_capacity: bool = False
    num_differing: int | None = None
    outcomes: list[int] = field(default_factory=list)
    seeds: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class PasskeyLength:
    """Passkey retrieval at one length, over all depths.

    Attributes:
        length: Tokens of prompt and answer together.
        correct: Trials answered with the key.
        trials: Trials.
        accuracy: correct / trials.
        ci_low: Lower end of the Wilson 95 % interval.
        ci_high: Upper end.
        answer_logprob: Mean log-probability of the whole answer [nats]; None where answers are generated and read.
        depths: The cells behind it.
        beyond_capacity: Whether the length is past the length that the method is made for.
        num_differing: Trials whose greedy text says otherwise than the scores token by token; None without both.
        seeds: The accuracy of each seed, where there are several.
        seed_spread: The standard deviation of these accuracies; None for one seed.
    """

    length: Length
    correct: int
    trials: int
    accuracy: Share
    ci_low: float
    ci_high: float
    answer_logprob: float | None
    depths: list[PasskeyCell]
    beyond_capacity: bool = False
    num_differing: int | None = None
    seeds: list[SeedScore] = field(default_factory=list)
    seed_spread: float | None = None

    def outcomes(self) -> dict[tuple[float, int], float]:
        """Returns the outcome of each trial by depth and number; empty where a record does not hold them."""
        return {
            (cell.depth, number): float(right) for cell in self.depths for number, right in enumerate(cell.outcomes)
        }


@dataclass(frozen=True)
class UsesReach:
    """The length that a method reaches, as measured by retrieval.

    Attributes:
        uses: As :attr:`Reach.uses` of a comparison [tokens].
        uses_possible: As there [tokens].
        uses_at: The outcome at each length.
    """

    uses: int | None = None
    uses_possible: int | None = None
    uses_at: list[LengthVerdict] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class PasskeyManifest(Manifest):
    """The facts needed to measure passkey retrieval again.

    Attributes:
        prompts_sha256: Hash of all prompts and answers: equal hashes mean the same trials.
        tokens_computed: Tokens that went through the model; what prompts share went through once.
        prompt_tokens: Tokens of all prompts.
    """

    prompts_sha256: str | None = None
    tokens_computed: int | None = None
    prompt_tokens: int | None = None


@dataclass(frozen=True, kw_only=True)
class PasskeyRecord(EvaluationRecord):
    """Passkey retrieval over lengths and needle positions of one model under one method.

    Attributes:
        grid: Where needles stand: at the same ``depth`` or the same ``position`` in every length.
        prompt_format: ``raw`` text, or ``chat`` in the model's template.
        answers: Whether answers are scored as ``tokens``, each given the true ones before it, or generated and read as
            ``text``, whose first complete number counts.
        lengths: One entry per length.
        cells: One entry per length and needle position: those of ``lengths``, in one list.
        chance: Probability of guessing the answer.
        k_max: Length up to which an accuracy is reached at every length, by accuracy [tokens]; 0 for none.
        reach: How far the method goes.
        verdict: What the numbers mean, in one sentence.
        num_differing: Trials whose greedy text says otherwise than the scores token by token; None without both.
        prompt_example: One of the prompts, shortened.
        manifest: What is needed to measure it again.
    """

    kind: ClassVar[str] = "passkey"
    written_by: ClassVar[str] = "eval-passkey"
    known_by: ClassVar[frozenset[str]] = frozenset({"cells", "grid"})

    grid: str = "depth"
    prompt_format: str = "raw"
    answers: str = "tokens"
    lengths: Annotated[list[PasskeyLength], MinLen(1)]
    cells: list[PasskeyCell] = field(default_factory=list)
    chance: float | None = None
    k_max: dict[str, int] = field(default_factory=dict)
    reach: UsesReach = field(default_factory=UsesReach)
    verdict: str = ""
    num_differing: int | None = None
    prompt_example: str | None = None
    manifest: PasskeyManifest = field(default_factory=PasskeyManifest)
