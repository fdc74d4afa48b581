"""Prepares training sequences from a text source, before any weight loads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ropectl.data.token_store import TokenStore
from ropectl.errors import ConfigError
from ropectl.hf.config.dialects import text_section
from ropectl.train.data.packing import plan_blocks
from ropectl.train.data.samples import TrainingData
from ropectl.train.task import Task

#: Tokens that are read at least, if there are so many, so that a short run still sees a mixture.
MIN_TOKENS = 16_000_000


def make_data(task: Task, tokenizer: Any, bos_token_id: int | None, progress: Callable[[int], None]) -> TrainingData:
    """Returns the sequences of a run.

    Args:
        task: What was asked for.
        tokenizer: The model's tokenizer.
        bos_token_id: The token that begins every document; None for none.
        progress: Called with the tokens that were read.

    Raises:
        ConfigError: If settings contradict each other.
        DataError: If the text does not give a single sequence.
    """
    settings = task.settings
    vocabulary = text_section(task.source.config).get("vocab_size")
    store = TokenStore.build(
        settings.text, tokenizer, bos_token_id,
        max_tokens=max(MIN_TOKENS, settings.steps * settings.batch_size * task.seq_len), vocabulary=vocabulary, progress=progress,
    )  # fmt: skip
    try:
        return TrainingData(
            store,
            plan_blocks(store.lengths, task.seq_len, settings.packing),
            tokenizer,
            bos_token_id,
            settings,
            seq_len=task.seq_len,
            target_length=task.target_length,
            short_length=task.plan.geometry.original_max_position_embeddings,
        )
    except ConfigError:
        store.discard()
        raise
