"""Prompts never change: records, cells of comparisons and trained sequences that are stored somewhere were made with them.

Nor do they differ between processes: every run of the tests has another hash seed.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from ropectl.tasks.kinds.passkey import Passkey
from ropectl.tasks.prompt_builder import PromptBuilder
from ropectl.tasks.registry import parse_task
from tests.tasks.builders import chatting_tokenizer, make_builder, merging_tokenizer, spaced_tokenizer
from tests.train.test_samples import make_data, make_store, numbered

#: Hashes of what version 0.1.0 built.
STORED = json.loads((Path(__file__).parent / "prompts_sha256.json").read_text())


def digest(parts: Iterable[object]) -> str:
    result = hashlib.sha256()
    for part in parts:
        result.update(json.dumps(part).encode())
    return result.hexdigest()


def passkey_builder(name: str, tokenizer: Any, seed: int) -> PromptBuilder:
    if name == "chat":
        return make_builder(chatting_tokenizer(tokenizer), seed, in_chat=True)
    made = {"builtin": lambda: tokenizer, "spaced": spaced_tokenizer, "merging": merging_tokenizer}[name]()
    return PromptBuilder(made, 0 if name == "builtin" else None, seed)


@pytest.mark.parametrize("setting", STORED["passkey"])
def test_passkeys(tokenizer: Any, setting: str) -> None:
    name, seed, distractors = setting.split()
    builder, task = passkey_builder(name, tokenizer, int(seed)), Passkey(distractors=int(distractors))
    shortest = task.min_length(builder)
    parts = []
    for length in (shortest, shortest + 41, 2048):
        for depth in (0.0, 0.3, 0.5, 1.0):
            for number in range(3):
                trial = task.build(builder, length, depth, number)
                parts.append([trial.input_ids, trial.answer_start, shortest, task.position(builder, length, depth)])
    assert digest(parts) == STORED["passkey"][setting]


@pytest.mark.parametrize("setting", STORED["tasks"])
def test_tasks(tokenizer: Any, setting: str) -> None:
    in_chat = setting.startswith("chat ")
    builder = make_builder(chatting_tokenizer(tokenizer) if in_chat else tokenizer, 3, in_chat)
    task = parse_task(setting.removeprefix("chat "))
    parts = []
    for length in (1280, 1700):
        depths = task.distinct_depths(builder, length, [0.0, 0.4, 1.0]) if task.has_depths else [None]
        for depth, number in itertools.product(depths, range(2 if task.has_depths else 6)):
            trial = task.build(builder, length, depth, number)
            parts.append([trial.input_ids, trial.answer_start, trial.references, trial.max_new_tokens])
    assert digest(parts) == STORED["tasks"][setting]


@pytest.mark.parametrize("setting", STORED["training"])
def test_passkeys_to_train_on(tmp_path: Path, tokenizer: Any, setting: str) -> None:
    seq_len, seed = map(int, setting.split())
    store = make_store(tmp_path, tokenizer, numbered(45, 32, 3, 58, 22))
    data = make_data(store, tokenizer, seq_len=seq_len, passkey_fraction=1.0, seed=seed)
    assert digest(data.sample(index).input_ids for index in range(40)) == STORED["training"][setting]
