"""The record of ``eval-tasks``. Other programs read it: extend, never rename."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from annotated_types import MinLen

from ropectl.records.bounds import Length, Share
from ropectl.records.comparisons import LengthVerdict, SeedScore
from ropectl.records.json_form import optional
from ropectl.records.manifest import EvaluationRecord, Manifest


@dataclass(frozen=True)
class TaskCell:
    """One task at one length and depth.

    Attributes:
        depth: Relative position of the asked fact, in [0, 1].
        position: Index of its first token in the prompt.
        score: Mean score of the trials, in [0, 1].
        trials: Trials.
        ci_low: Lower end of the 95 % interval of the score.
        ci_high: Upper end.
        answer_logprob: Mean log-probability of the whole answer [nats]; a signal where the score has none.
    """

    depth: float
    position: int
    score: Share
    trials: int
    ci_low: float
    ci_high: float
    answer_logprob: float | None = None


@dataclass(frozen=True)
class GivenAnswer:
    """The model's answer in one trial.

    Attributes:
        references: What the answer had to contain.
        text: What was generated.
        score: The share that it contains, in [0, 1].
    """

    references: tuple[str, ...]
    text: str
    score: Share


@dataclass(frozen=True)
class TaskLength:
    """One task at one length.

    Attributes:
        length: Tokens of prompt and answer, or of what may be generated, together.
        score: Mean score of the trials, in [0, 1].
        trials: Trials.
        ci_low: Lower end of the 95 % interval: Wilson's where a trial is right or wrong, else as of losses.
        ci_high: Upper end.
        prompt_tokens: Tokens before the answer, the beginning-of-sequence token included.
        answer_tokens: Tokens of the known answer, or the most that may be generated.
        answer_logprob: Mean log-probability of the whole known answer [nats]; None where it is generated.
        scores: Each trial's, for paired comparisons.
        depths: The cells behind it; empty for a task without depths.
        given: The first trial's answer; None where the answer is known token by token and nothing is generated.
        beyond_capacity: Whether the length is past the length that the method is made for.
        seeds: The score of each seed, where there are several.
        seed_spread: The standard deviation of these scores; None for one seed.
    """

    length: Length
    score: Share
    trials: int
    ci_low: float
    ci_high: float
    prompt_tokens: int
    answer_tokens: int
    answer_logprob: float | None
    scores: list[float]
    depths: list[TaskCell] = field(default_factory=list)
    given: GivenAnswer | None = None
    beyond_capacity: bool = False
    seeds: list[SeedScore] = field(default_factory=list)
    seed_spread: float | None = None


@dataclass(frozen=True)
class TaskResult:
    """One task at all lengths.

    Attributes:
        task: Task spec.
        metric: ``exact``: every answer token is the most likely one given those before it, which is what greedy
            decoding writes; ``contained``: the share of the references that the generated text contains.
        chance: Score of guessing; None where it is not defined.
        uses: The length up to which every length from the trained one on has a sufficient score, as
            :attr:`Reach.uses` of a comparison [tokens]; 0 if there is none.
        prompts_sha256: Hash of all prompts and answers: equal hashes mean the same trials.
        lengths: One entry per length.
        uses_possible: As :attr:`Reach.uses_possible` of a comparison [tokens].
        uses_at: The outcome at each length.
    """

    task: str
    metric: str
    chance: float | None
    uses: int | None
    prompts_sha256: str
    lengths: list[TaskLength]
    uses_possible: int | None = None
    uses_at: list[LengthVerdict] = field(default_factory=list)


@dataclass(frozen=True)
class TaskAverage:
    """All tasks at one length.

    Attributes:
        length: Tokens of prompt and answer together.
        score: Mean of the tasks' scores, each counting once.
        tasks: How many tasks.
        trials: The fewest trials of a task at this length.
        beyond_capacity: Whether the length is past the length that the method is made for.
        ci_low: Lower end of the 95 % interval of the score, over the trials of all tasks.
        ci_high: Upper end.
        seeds: The mean over tasks of each seed, where there are several.
        seed_spread: The standard deviation of these means; None for one seed.
    """

    length: Length
    score: Share
    tasks: int
    trials: int
    beyond_capacity: bool = False
    ci_low: float | None = None
    ci_high: float | None = None
    seeds: list[SeedScore] = field(default_factory=list)
    seed_spread: float | None = None


@dataclass(frozen=True)
class TasksReach:
    """The length up to which the tasks together are solved.

    Attributes:
        uses: The length up to which every length from the trained one on has a sufficient average [tokens]; 0 if
            there is none.
        used_score: The average that is sufficient, in [0, 1].
        uses_possible: As :attr:`Reach.uses_possible` of a comparison [tokens].
        uses_at: The outcome at each length.
    """

    uses: int | None = None
    used_score: float | None = None
    uses_possible: int | None = None
    uses_at: list[LengthVerdict] = field(default_factory=list)


@dataclass(frozen=True)
class PlannedTask:
    """The prompts and tokens that a task takes.

    Attributes:
        task: Task spec.
        prompts: Prompts.
        tokens: Tokens of all of them.
        distinct_tokens: Tokens that go through the model; what prompts share goes through once.
        most_generated: Tokens that are generated at most.
    """

    task: str
    prompts: int
    tokens: int
    distinct_tokens: int
    most_generated: int


@dataclass(frozen=True, kw_only=True)
class TasksManifest(Manifest):
    """The facts needed to measure tasks again.

    Attributes:
        plan: What each task took.
    """

    plan: list[PlannedTask] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class TasksRecord(EvaluationRecord):
    """Scores of retrieval tasks over lengths of one model under one method.

    Attributes:
        text: Text source of the tasks that hide facts in a text.
        prompt_format: ``raw`` text, or ``chat`` in the model's template.
        chat_template_sha256: Hash of that template.
        tasks: One entry per task.
        average: All tasks together, one entry a length.
        reach: Up to which length they are solved.
        manifest: What is needed to measure it again.
    """

    kind: ClassVar[str] = "tasks"
    written_by: ClassVar[str] = "eval-tasks"
    known_by: ClassVar[frozenset[str]] = frozenset({"tasks", "average"})

    text: str
    prompt_format: str = "raw"
    chat_template_sha256: str | None = optional()
    tasks: Annotated[list[TaskResult], MinLen(1)]
    average: list[TaskAverage]
    reach: TasksReach = field(default_factory=TasksReach)
    manifest: TasksManifest = field(default_factory=TasksManifest)
