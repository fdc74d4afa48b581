"""A comparison as cells: each has settings that name it, a cost, and a measurement."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from ropectl.data.passkey import PasskeyPromptBuilder
from ropectl.data.tokens import DocumentSet
from ropectl.evaluate.config import CompareConfig
from ropectl.evaluate.passkey import measure_passkey
from ropectl.evaluate.perplexity import measure_perplexity, measure_tail, num_tail_targets, tokens_to_run
from ropectl.evaluate.progress import Progress
from ropectl.hf.geometry import RopeDescription
from ropectl.records import to_json
from ropectl.rope.method import ScalingMethod, short_spec

Measure = Callable[[Any, Progress], dict[str, Any]]


@dataclass(frozen=True)
class Cell:
    """One measurement of one method.

    Attributes:
        method: Method spec.
        kind: ``prefix``, ``tail`` or ``passkey``.
        length: The passkey length, or the longest context [tokens].
        settings: All that decides the result; its hash names the record.
        tokens: Tokens that go through the model, for progress.
        measure: Takes the model and a progress callback, returns the result as JSON values.
        training: Id of the training whose weights are measured; None for the model as it is given.
    """

    method: str
    kind: str
    length: int
    settings: Mapping[str, Any]
    tokens: int
    measure: Measure
    training: str | None = None

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
    """Makes the cells of a comparison.

    Attributes:
        config: What was asked for.
        rope: What the model was trained with, and how it is scaled already.
        documents: The scored documents.
        builder: Builds the passkey prompts.
        lengths: Context lengths [tokens].
        common: Settings that every cell shares: model, dtype, device, versions.
    """

    config: CompareConfig
    rope: RopeDescription
    documents: DocumentSet
    builder: PasskeyPromptBuilder
    lengths: list[int]
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
                model,
                method,
                self.rope.geometry,
                self.documents,
                self.lengths,
                **self._passes(method),
                progress=progress,
            )
            return {"points": [to_json(point) for point in points]}

        return self._text_cell(method, "prefix", self._text_settings, measure)

    def _tail(self, method: ScalingMethod) -> Cell:
        def measure(model: Any, progress: Progress) -> dict[str, Any]:
            points = measure_tail(
                model,
                method,
                self.rope.geometry,
                self.documents,
                self.lengths,
                self.num_targets,
                **self._passes(method),
                progress=progress,
            )
            return {"points": [to_json(point) for point in points]}

        settings = {**self._text_settings, "num_targets": self.num_targets}
        return self._text_cell(method, "tail", settings, measure)

    def _passkey(self, method: ScalingMethod, length: int) -> Cell:
        config = self.config
        depths = self.builder.distinct_depths(length, config.depth_values())

        def measure(model: Any, progress: Progress) -> dict[str, Any]:
            limits: dict[str, Any] = {
                "layers": self.rope.layer_type,
                "capacity": self.rope.capacity(method),
                "prefill_chunk": config.prefill_chunk,
            }
            (record,) = measure_passkey(
                model,
                method,
                self.rope.geometry,
                self.builder,
                [length],
                depths,
                config.trials,
                **limits,
                progress=progress,
            )
            return to_json(record)

        settings = {
            "length": length,
            "depths": depths,
            "trials": config.trials,
            "distractors": config.distractors,
            "prompts_sha256": self._prompt_hashes[length],
            "seed": config.seed,
        }
        return self._cell(method, "passkey", length, settings, length * len(depths) * config.trials, measure)

    def _passes(self, method: ScalingMethod) -> dict[str, Any]:
        return {
            "layers": self.rope.layer_type,
            "capacity": self.rope.capacity(method),
            "prefill_chunk": self.config.prefill_chunk,
            "batch_size": self.config.batch_size,
        }

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

    def _text_cell(self, method: ScalingMethod, kind: str, settings: Mapping[str, Any], measure: Measure) -> Cell:
        tokens = tokens_to_run(kind, method, self.lengths, self.documents)
        return self._cell(method, kind, max(self.lengths), settings, tokens, measure)

    def _cell(
        self, method: ScalingMethod, kind: str, length: int, settings: Mapping[str, Any], tokens: int, measure: Measure
    ) -> Cell:
        full = {**self.common, "kind": kind, "method": str(method), **settings}
        return Cell(str(method), kind, length, full, tokens, measure)
