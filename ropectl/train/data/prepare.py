"""From a text source to training sequences, before any weight loads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ropectl.data.token_store import TokenStore
from ropectl.hf.config.dialects import text_section
from ropectl.train.data.packing import plan_blocks
from ropectl.train.data.samples import TrainingData
from ropectl.train.task import Task

#: Read from a source that is larger than the run needs, so that a short run still sees a mixture [tokens].
MIN_TOKENS = 16_000_000


def make_data(task: Task, tokenizer: Any, bos_token_id: int | None, progress: Callable[[int], None]) -> TrainingData:
    """Returns the sequences of a run.

    Args:
        task: What was asked for.
        tokenizer: The model's tokenizer.
        bos_token_id: What every document begins with; None for nothing.
        progress: Told the tokens that were read.

    Raises:
        DataError: If the text gives not one sequence.
    """
    settings = task.settings
    vocabulary = text_section(task.source.config).get("vocab_size")
    store = TokenStore.build(
        settings.text, tokenizer, bos_token_id,
        max_tokens=max(MIN_TOKENS, settings.steps * settings.batch_size * task.seq_len), vocabulary=vocabulary, progress=progress,
    )  # fmt: skip
    return TrainingData(
        store,
        plan_blocks(store.lengths, task.seq_len, settings.packing),
        tokenizer,
        bos_token_id,
        seq_len=task.seq_len,
        packing=settings.packing,
        positions=settings.positions,
        target_length=task.target_length,
        pose_chunks=settings.pose_chunks,
        short_fraction=settings.short_fraction,
        short_length=task.plan.geometry.original_max_position_embeddings,
        passkey_fraction=settings.passkey_fraction,
        seed=settings.seed,
    )
