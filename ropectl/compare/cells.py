"""A comparison as cells: each has settings that name it, a cost, and a measurement."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from ropectl.compare.plan import Plan, Subject
from ropectl.data.passkey import PasskeyPromptBuilder
from ropectl.data.tokens import DocumentSet
from ropectl.evaluate.config import CompareConfig
from ropectl.evaluate.cost import Cost, ForwardCost
from ropectl.evaluate.passkey import measure_passkey
from ropectl.evaluate.perplexity import measure_perplexity, measure_tail, num_tail_targets, plan_passes
from ropectl.evaluate.progress import Progress
from ropectl.evaluate.setup import Setup
from ropectl.hf.fingerprint import model_fingerprint
from ropectl.hf.geometry import RopeDescription
from ropectl.hf.loading import resolve_device
from ropectl.records import to_json
from ropectl.rope.method import ScalingMethod, short_spec
from ropectl.runs import package_versions

Measure = Callable[[Any, Progress], dict[str, Any]]

#: A record is used again only under the same versions of these.
DECIDING_PACKAGES = ("ropectl", "torch", "transformers", "tokenizers")

#: Tokens of an answer, for what it costs to read them: a nominal number that decides no result.
NOMINAL_ANSWER = 5


@dataclass(frozen=True)
class Cell:
    """One measurement of one method.

    Attributes:
        method: Method spec.
        kind: ``prefix``, ``tail`` or ``passkey``.
        lengths: Contexts that it answers for [tokens].
        settings: All that decides the result; its hash names the record.
        tokens: Tokens that go through the model.
        cost: Operations.
        batch: Most sequences in one forward pass.
        measure: Takes the model and a progress callback, returns the result as JSON values.
        training: Id of the training whose weights are measured; None for the model as it is given.
    """

    method: str
    kind: str
    lengths: Sequence[int]
    settings: Mapping[str, Any]
    tokens: int
    cost: Cost
    batch: int
    measure: Measure
    training: str | None = None

    @property
    def length(self) -> int:
        """The longest context [tokens]."""
        return max(self.lengths)

    @property
    def label(self) -> str:
        """What a person reads."""
        return short_spec(self.method) + (", tuned" if self.training else "")

    def after(self, training: str, settings: Mapping[str, Any]) -> Cell:
        """Returns the same measurement on tuned weights.

        Args:
            training: Id of the training.
            settings: What tells its records from all others.
        """
        return replace(self, training=training, settings={**self.settings, **settings})


@dataclass(frozen=True)
class CellFactory:
    """Makes the cells of one model of a comparison.

    Attributes:
        config: What was asked for.
        rope: What the model was trained with, and how it is scaled already.
        documents: The scored documents.
        builder: Builds the passkey prompts.
        lengths: Context lengths [tokens].
        forward: What a pass costs.
        common: Settings that every cell shares: model, dtype, device, versions.
    """

    config: CompareConfig
    rope: RopeDescription
    documents: DocumentSet
    builder: PasskeyPromptBuilder
    lengths: list[int]
    forward: ForwardCost
    common: Mapping[str, Any]

    @property
    def num_targets(self) -> int:
        """K of protocol ``tail``."""
        return num_tail_targets(self.lengths)

    def cells(self, method: ScalingMethod) -> list[Cell]:
        """Returns the cells of one method."""
        passkey = [self._passkey(method, length) for length in self.lengths] if self.config.passkey else []
        return [self._prefix(method), self._tail(method), *passkey]

    def _prefix(self, method: ScalingMethod) -> Cell:
        def measure(model: Any, progress: Progress) -> dict[str, Any]:
            points = measure_perplexity(
                model, method, self.rope.geometry, self.documents, self.lengths,
                **self._passes(method), batch_size=self.config.batch_size, progress=progress,
            )  # fmt: skip
            return {"points": [to_json(point) for point in points]}

        windows = [(plan.window, plan.window - 1) for plan in plan_passes(method, self._possible)]
        return self._text_cell(method, "prefix", self._text_settings, windows, measure)

    def _tail(self, method: ScalingMethod) -> Cell:
        def measure(model: Any, progress: Progress) -> dict[str, Any]:
            points = measure_tail(
                model, method, self.rope.geometry, self.documents, self.lengths, self.num_targets,
                **self._passes(method), batch_size=self.config.batch_size, progress=progress,
            )  # fmt: skip
            return {"points": [to_json(point) for point in points]}

        settings = {**self._text_settings, "num_targets": self.num_targets}
        windows = [(length, self.num_targets) for length in self._possible]
        return self._text_cell(method, "tail", settings, windows, measure)

    def _passkey(self, method: ScalingMethod, length: int) -> Cell:
        config = self.config
        depths = self.builder.distinct_depths(length, config.depth_values())

        def measure(model: Any, progress: Progress) -> dict[str, Any]:
            record = measure_passkey(
                model, method, self.rope.geometry, self.builder, length, depths, config.trials,
                **self._passes(method), progress=progress,
            )  # fmt: skip
            return {"cells": [to_json(cell) for cell in record.depths]}

        settings = {
            "length": length,
            "depths": depths,
            "trials": config.trials,
            "distractors": config.distractors,
            "prompts_sha256": self._prompt_hashes[length],
            "seed": config.seed,
        }
        prompts = len(depths) * config.trials
        cost = self.forward.window(length, NOMINAL_ANSWER) * prompts
        return self._cell(method, "passkey", [length], settings, length * prompts, cost, config.trials, measure)

    def _passes(self, method: ScalingMethod) -> dict[str, Any]:
        return {
            "layers": self.rope.layer_type,
            "capacity": self.rope.capacity(method),
            "prefill_chunk": self.config.prefill_chunk,
        }

    @property
    def _possible(self) -> list[int]:
        return [length for length in self.lengths if length <= self.documents.length]

    @cached_property
    def _prompt_hashes(self) -> dict[int, str]:
        """Per length, a hash over one trial at every depth: other wording or another tokenizer is another record."""
        depths = self.config.depth_values()
        return {length: self.builder.fingerprint([length], depths, 1) for length in self.lengths}

    @cached_property
    def _text_settings(self) -> dict[str, Any]:
        return {
            "text": self.config.text,
            "lengths": self.lengths,
            "documents": [document.name for document in self.documents.documents],
            "tokens_sha256": self.documents.fingerprint(),
            "batch_size": self.config.batch_size,
        }

    def _text_cell(
        self,
        method: ScalingMethod,
        kind: str,
        settings: Mapping[str, Any],
        windows: list[tuple[int, int]],
        measure: Measure,
    ) -> Cell:
        """A cell over all documents; ``windows`` are the tokens and scored tokens of each one's passes."""
        count = len(self.documents.documents)
        tokens = sum(window for window, _ in windows) * count
        cost = sum((self.forward.window(*window) for window in windows), Cost()) * count
        batch = min(self.config.batch_size, count)
        return self._cell(method, kind, self.lengths, settings, tokens, cost, batch, measure)

    def _cell(
        self,
        method: ScalingMethod,
        kind: str,
        lengths: Sequence[int],
        settings: Mapping[str, Any],
        tokens: int,
        cost: Cost,
        batch: int,
        measure: Measure,
    ) -> Cell:
        full = {**self.common, "kind": kind, "method": str(method), **settings}
        return Cell(str(method), kind, lengths, full, tokens, cost, batch, measure)


def subject_cells(plan: Plan, subject: Subject) -> dict[ScalingMethod, list[Cell]]:
    """Returns the cells of one model, by method and in order."""
    source = subject.setup.source
    factory = CellFactory(
        plan.config, source.rope, subject.documents, subject.builder, plan.lengths,
        ForwardCost.of(source.config), _common_settings(subject.setup),
    )  # fmt: skip
    return {method: factory.cells(method) for method in subject.methods}


def _common_settings(setup: Setup) -> dict[str, Any]:
    config, source = setup.config, setup.source
    device = resolve_device(config.device)
    versions = {name: value for name, value in package_versions().items() if name in DECIDING_PACKAGES}
    return {
        "model": config.model,
        "model_fingerprint": model_fingerprint(source),
        "revision": config.revision,
        "geometry": source.rope.geometry.to_json(),
        "layers": source.rope.layer_type,
        "dtype": config.dtype,
        "device": device.type,
        "attention": config.attention,
        "trust_remote_code": config.trust_remote_code,
        "bos_token_id": setup.bos_token_id,
        "prefill_chunk": config.prefill_chunk,
        "versions": versions,
    }
