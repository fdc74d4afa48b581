"""Measures the model during training, on text that it is not trained on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ropectl.data.selection import select_documents
from ropectl.data.sources import open_source, same_source
from ropectl.data.tokens import DocumentSet
from ropectl.errors import ConfigError, DataError
from ropectl.evaluate.cost import Advance, ForwardCost
from ropectl.evaluate.perplexity.protocols.prefix import Prefix
from ropectl.evaluate.perplexity.windows import PassOptions, PerplexityRequest, work_of
from ropectl.evaluate.retrieval.passkey_cells import by_length, passkey_cells
from ropectl.evaluate.retrieval.prompts import Prompt, build_prompts, cost_of, count_tokens, depth_grid
from ropectl.evaluate.scored_text import missing_lengths_notes
from ropectl.evaluate.setup import default_lengths
from ropectl.hf.config.dialects import text_section
from ropectl.hf.config.source import ModelSource
from ropectl.rope.method import ScalingMethod
from ropectl.tasks.kinds.passkey import Passkey
from ropectl.tasks.prompt_builder import PromptBuilder
from ropectl.timing.operations import Cost
from ropectl.train.settings import DEFAULT_EVAL_TEXT, FinetuneSettings

#: Depths of the needle in validation, evenly spaced over [0, 1].
DEPTHS = (0.0, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True)
class Validation:
    """The measurements of a validation, always the same.

    Attributes:
        source: The model's description.
        method: The method that is trained.
        documents: Held-out text.
        lengths: Context lengths of perplexity [tokens].
        builder: Builds passkey prompts.
        prompts: The passkey prompts.
    """

    source: ModelSource
    method: ScalingMethod
    documents: DocumentSet
    lengths: list[int]
    builder: PromptBuilder
    prompts: list[Prompt]

    @property
    def _forward(self) -> ForwardCost:
        return ForwardCost.of(self.source.config)

    @cached_property
    def work(self) -> tuple[int, Cost]:
        """The tokens that go through the model each time, and what they cost."""
        windows = work_of(Prefix().passes(self._request(self.method, self.lengths)), self.documents, self._forward)
        cost = windows.cost + cost_of(self.method, self.prompts, self._forward)
        return windows.tokens + count_tokens(self.method, self.prompts), cost

    def measure(self, model: Any, advance: Advance) -> dict[str, Any]:
        """Returns perplexity and passkey accuracy by length, measured as in evaluation."""
        from ropectl.evaluate.retrieval.measure import answer_passkeys

        perplexity, rope = self._perplexity(model, self.method, self.lengths, advance), self.source.rope
        answered = answer_passkeys(
            model, self.method, rope.geometry, self.prompts, self.builder, layers=rope.layer_type,
            progress=self._forward.reported(advance),
        )  # fmt: skip
        lengths = by_length(passkey_cells(answered, self.builder))
        return {"perplexity": perplexity, "passkey": {entry.length: entry.accuracy for entry in lengths}}

    def unscaled(self, model: Any, advance: Advance) -> dict[int, float]:
        """Returns the perplexity of the original model at the lengths that it was trained for."""
        lengths = [n for n in self.lengths if n <= self.source.rope.geometry.original_max_position_embeddings]
        return self._perplexity(model, self.source.rope.method, lengths, advance) if lengths else {}

    def _perplexity(self, model: Any, method: ScalingMethod, lengths: list[int], advance: Advance) -> dict[int, float]:
        from ropectl.evaluate.perplexity.runner import measure_perplexity

        options = PassOptions(self.source.rope.layer_type, progress=self._forward.reported(advance))
        points = measure_perplexity(model, Prefix(), self._request(method, lengths), options)
        return {point.context_length: point.perplexity for point in points if point.perplexity is not None}

    def _request(self, method: ScalingMethod, lengths: list[int]) -> PerplexityRequest:
        return PerplexityRequest(method, self.source.rope.geometry, self.documents, lengths)


def score(measured: dict[str, Any]) -> list[float]:
    """Returns the score that decides which state is best; larger is better.

    Mean passkey accuracy comes first, because longer training can lose retrieval while perplexity still falls
    (https://github.com/dwzhu-pku/PoSE/issues/5); then perplexity at the longest length.
    """
    passkey, perplexity = measured["passkey"], measured["perplexity"]
    accuracy = sum(passkey.values()) / len(passkey) if passkey else 0.0
    return [accuracy, -perplexity[max(perplexity)]]


def make_validation(
    settings: FinetuneSettings,
    source: ModelSource,
    method: ScalingMethod,
    tokenizer: Any,
    bos_token_id: int | None,
    target_length: int,
) -> tuple[Validation | None, list[str]]:
    """Returns the validation of a run, None where there is none, and notes about it.

    Raises:
        ConfigError: If no held-out text is given, or lengths are impossible.
        DataError: If the text is too short.
    """
    if settings.eval_every is None:
        if settings.early_stop is not None:
            raise ConfigError("--early-stop needs validations.", "Type for example: --eval-every 50")
        if settings.eval_text is not None or settings.eval_lengths:
            name = "text" if settings.eval_text is not None else "length"
            raise ConfigError(f"--eval-{name} has no effect without validations.", "Type for example: --eval-every 50")
        return None, []
    text = settings.eval_text or (DEFAULT_EVAL_TEXT if settings.text.startswith("builtin:") else None)
    if text is None:
        raise ConfigError(
            "--eval-every needs text that the model is not trained on.", "Type for example: --eval-text held-out.txt"
        )
    if same_source(text, settings.text):
        raise ConfigError(f"--eval-text {text} is the training text.", "Name text that the model is not trained on.")
    trained = source.rope.geometry.original_max_position_embeddings
    lengths = sorted(set(settings.eval_lengths)) or [n for n in default_lengths(trained, target_length) if n >= trained]
    vocabulary = text_section(source.config).get("vocab_size")
    documents = select_documents(
        open_source(text), tokenizer, bos_token_id, lengths, settings.eval_documents, vocabulary
    )
    if not documents.documents:
        raise DataError(
            f"{text}: none of {documents.num_seen} documents has {min(lengths)} tokens; the longest has {documents.longest}.",
            "Use shorter lengths, --eval-lengths N, or longer text.",
        )
    builder, task = PromptBuilder(tokenizer, bos_token_id), Passkey()
    notes = missing_lengths_notes(documents, lengths, text)
    possible = [n for n in lengths if n <= documents.length]
    passkey_lengths = [n for n in lengths if n >= task.min_length(builder)] if settings.eval_trials else []
    prompts = build_prompts(task, builder, depth_grid(task, builder, passkey_lengths, DEPTHS), settings.eval_trials)
    return Validation(source, method, documents, possible, builder, prompts), notes
