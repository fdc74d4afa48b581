"""A request to train, checked as far as possible without weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ropectl.checkpoint.plan import PatchPlan, plan_patch
from ropectl.checkpoint.settings import PatchSettings
from ropectl.errors import ConfigError
from ropectl.hf.config.source import ModelSource, read_source
from ropectl.hf.fingerprint import model_fingerprint
from ropectl.hf.model.loading import LoadOptions
from ropectl.hf.tensors.fit import check_tensors
from ropectl.names import unknown_choice
from ropectl.records import to_json
from ropectl.rope.derived import derived_values
from ropectl.train.schedule import SCHEDULES
from ropectl.train.settings import FinetuneSettings
from ropectl.train.strategies import make_strategy
from ropectl.train.strategies.strategy import Strategy

#: Settings that do not decide the result: they may change when a run is continued.
_FREE = frozenset(
    {
        "out", "overwrite", "dry_run", "save_every", "keep", "resume", "force", "tracker", "micro_batch", "device",
        "activation_checkpointing", "loss_chunk", "cp_size", "save_dtype", "merge", "allow_pickle", "strict",
    }
)  # fmt: skip


@dataclass(frozen=True)
class Task:
    """A checked request: the settings and all that follows from them without weights.

    Attributes:
        settings: What was asked for.
        patch: The same, as ``patch`` takes it.
        source: The model.
        plan: The scaling.
        strategy: Which weights are trained.
        seq_len: Tokens per sequence.
        target_length: Positions that the training covers [tokens].
    """

    settings: FinetuneSettings
    patch: PatchSettings
    source: ModelSource
    plan: PatchPlan
    strategy: Strategy
    seq_len: int
    target_length: int

    @classmethod
    def of(cls, settings: FinetuneSettings) -> Task:
        """Checks a request.

        Raises:
            ConfigError: If it cannot work.
        """
        if settings.schedule not in SCHEDULES:
            raise unknown_choice("schedule", settings.schedule, SCHEDULES)
        usual_chunks = FinetuneSettings.model_fields["pose_chunks"].default
        if settings.positions != "pose" and settings.pose_chunks != usual_chunks:
            raise ConfigError(
                f"pose-chunks = {settings.pose_chunks} has no effect with positions = {settings.positions}.",
                "Type: --positions pose, or leave out --pose-chunks",
            )
        strategy = make_strategy(settings)
        source = read_source(settings)
        shared = PatchSettings.model_fields.keys() & FinetuneSettings.model_fields.keys() - {"merge", "dtype"}
        patch = PatchSettings(**{name: getattr(settings, name) for name in shared}, dtype=settings.save_dtype)
        plan = plan_patch(patch, source)
        if "quantization_config" in source.config:
            raise ConfigError(
                f"The weights of {source.name} are quantised; they cannot be trained.",
                "Give the model they were made from.",
            )
        check_tensors(source)
        trained, target = plan.geometry.original_max_position_embeddings, plan.target_length
        seq_len = settings.seq_len or (trained if settings.positions == "pose" else target)
        if settings.positions == "pose" and seq_len >= target:
            raise ConfigError(
                f"positions = pose skips positions between {seq_len} and the target of {target} tokens: there are none.",
                "Use a shorter --seq-len, or a larger factor.",
            )
        if settings.short_fraction and seq_len <= trained:
            raise ConfigError(
                f"short-fraction mixes in sequences of the trained length {trained}, but all have only {seq_len} tokens.",
                "Leave out --short-fraction, or use a longer --seq-len.",
            )
        LoadOptions(dtype=settings.dtype)
        LoadOptions(dtype=settings.save_dtype)
        if settings.dtype == "float16":
            raise ConfigError(
                "dtype = float16 cannot hold weights that are trained.", "Type: --precision fp16 for the arithmetic"
            )
        covered = target if settings.positions == "pose" else seq_len
        return cls(settings, patch, source, plan, strategy, seq_len, covered)

    @property
    def frozen_at(self) -> int | None:
        """The length at which a length-dependent method is frozen while training [tokens]; None for any other."""
        return (self.plan.seq_len or self.target_length) if self.plan.method.depends_on_seq_len else None

    def derived(self) -> dict[str, Any]:
        """Returns what follows from the method that is trained, by name, as JSON values."""
        plan = self.plan
        values = derived_values(plan.method, plan.geometry, self.frozen_at, plan.target_length)
        return {name: to_json(value) for name, value in values.items()}

    def describe_tables(self) -> str:
        """Returns the rotary tables that are in force, in one line for logs."""
        geometry, method = self.plan.geometry, self.plan.method
        frequencies = method.frequencies(geometry, self.frozen_at)
        factor = f" x{method.factor:g}" if hasattr(method, "factor") else ""
        frozen = f" frozen at {self.frozen_at}" if method.depends_on_seq_len else ""
        return (
            f"rope: {method.name}{factor}{frozen} orig={geometry.original_max_position_embeddings} "
            f"base={geometry.rope_theta:g} attn={frequencies.attention_factor:.6f}"
        )

    def identity(self, data_fingerprint: str) -> dict[str, Any]:
        """Returns all that decides the result: settings, model and data."""
        settings = self.settings.model_dump(mode="json", exclude=set(_FREE))
        return {**settings, "model_fingerprint": model_fingerprint(self.source), "data_fingerprint": data_fingerprint}
