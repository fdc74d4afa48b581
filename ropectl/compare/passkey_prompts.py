"""The passkey prompts of one model in a comparison under one seed, in the groups that its cells measure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from ropectl.evaluate.config import CompareConfig
from ropectl.evaluate.retrieval.prefix_tree import TreeSize, measure_tree
from ropectl.evaluate.retrieval.prompts import (
    GridPoint,
    Prompt,
    build_prompts,
    computed_together,
    depth_grid,
    fingerprint,
)
from ropectl.evaluate.retrieval.row_groups import count_passes
from ropectl.evaluate.setup import Setup
from ropectl.evaluate.shared_config import evenly_spaced
from ropectl.rope.method import ScalingMethod
from ropectl.tasks.kinds.passkey import Passkey
from ropectl.tasks.prompt_builder import PromptBuilder

#: A group of more tokens is measured one needle position at a time, so that an interruption loses less of it.
MAX_GROUP_TOKENS = 2**20


@dataclass(frozen=True)
class PromptGroup:
    """Prompts that are measured together and make one record.

    Attributes:
        prompts: The prompts, all trials of a point in a row.
        points: Length and depth of each point.
        size: What is computed.
        passes: The passes in which it is.
        prompts_sha256: A hash over one prompt a point: other wording or another tokenizer is another record.
    """

    prompts: Sequence[Prompt]
    points: list[GridPoint]
    size: TreeSize
    passes: int
    prompts_sha256: str


@dataclass(frozen=True)
class PasskeyPrompts:
    """The passkey prompts of one model under one seed, each built once for all methods.

    Attributes:
        task: The task.
        builder: Builds the prompts.
        lengths: Context lengths [tokens].
        depths: Relative positions of the needle, in [0, 1].
        trials: Prompts per length and depth.
    """

    task: Passkey
    builder: PromptBuilder
    lengths: Sequence[int]
    depths: Sequence[float]
    trials: int

    @classmethod
    def of(cls, setup: Setup, lengths: Sequence[int] = ()) -> list[PasskeyPrompts]:
        """Returns the prompts of a model in a comparison at some lengths [tokens], one for each seed."""
        config = setup.config
        assert isinstance(config, CompareConfig)
        builder = PromptBuilder(setup.tokenizer, setup.bos_token_id, config.seed)
        task, depths = Passkey(distractors=config.distractors), evenly_spaced(config.depths)
        seeds = range(config.seed, config.seed + config.seeds)
        return [cls(task, builder.with_seed(seed), lengths, depths, config.trials) for seed in seeds]

    @property
    def min_length(self) -> int:
        """The shortest prompt that can be built [tokens]."""
        return self.task.min_length(self.builder)

    def groups(self, method: ScalingMethod) -> list[PromptGroup]:
        """Returns one group of all prompts that share their beginnings; a very long group is split."""
        follows_length = method.depends_on_seq_len  # nothing else about a method matters
        if follows_length not in self._groups:
            self._groups[follows_length] = [
                part for group in computed_together(method, self._prompts) for part in self._parts(group)
            ]
        return self._groups[follows_length]

    @cached_property
    def _prompts(self) -> list[Prompt]:
        points = depth_grid(self.task, self.builder, self.lengths, self.depths)
        return build_prompts(self.task, self.builder, points, self.trials)

    @cached_property
    def _groups(self) -> dict[bool, list[PromptGroup]]:
        """The groups that were made already."""
        return {}

    def _parts(self, prompts: Sequence[Prompt]) -> list[PromptGroup]:
        """Returns the prompts in the order of their needle positions, as one group if that is not too large."""
        by_position: dict[int | None, list[Prompt]] = defaultdict(list)
        for prompt in prompts:
            by_position[prompt.position].append(prompt)
        together = self._group([prompt for own in by_position.values() for prompt in own])
        if together.size.tokens <= MAX_GROUP_TOKENS:
            return [together]
        return [self._group(own) for own in by_position.values()]

    def _group(self, prompts: Sequence[Prompt]) -> PromptGroup:
        firsts = prompts[:: self.trials]
        trials = [prompt.trial for prompt in prompts]
        hashed = fingerprint(prompt.trial.input_ids for prompt in firsts)
        return PromptGroup(
            prompts, [prompt.point for prompt in firsts], measure_tree(trials), count_passes(trials), hashed
        )
