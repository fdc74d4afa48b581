"""Samples are a pure function of settings and index; shares and epochs are exact."""

from __future__ import annotations

import json
import pickle
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ropectl.data.token_store import TokenStore
from ropectl.errors import ConfigError
from ropectl.tasks.kinds.passkey import Passkey
from ropectl.tasks.prompt_builder import PromptBuilder
from ropectl.train.data.packing import plan_blocks
from ropectl.train.data.sample_kinds import CYCLE
from ropectl.train.data.samples import IGNORE, TrainingData
from ropectl.train.settings import FinetuneSettings
from tests.tasks.builders import merging_tokenizer

BOS = 0


def make_store(folder: Path, tokenizer: Any, documents: list[list[int]]) -> TokenStore:
    path = folder / "tokens.jsonl"
    path.write_text("\n".join(json.dumps({"input_ids": ids}) for ids in documents))
    return TokenStore.build(str(path), tokenizer, BOS, cache=folder / "cache")


def numbered(*lengths: int) -> list[list[int]]:
    """Documents whose tokens are all different, behind BOS."""
    counter = iter(range(1, 10**6))
    return [[BOS, *(next(counter) for _ in range(length - 1))] for length in lengths]


@pytest.fixture
def store(tmp_path: Path, tokenizer: Any) -> TokenStore:
    """160 tokens: 16 blocks of 10, some of one document and some of two."""
    return make_store(tmp_path, tokenizer, numbered(45, 32, 3, 58, 22))


def make_data(store: TokenStore, tokenizer: Any, **changes: Any) -> TrainingData:
    seq_len = changes.pop("seq_len", 10)
    lengths = {name: changes.pop(name, seq_len) for name in ("target_length", "short_length")}
    settings = FinetuneSettings.model_construct(**{"seed": 7, **changes})  # a share of 1 is allowed here
    plan = plan_blocks(store.lengths, seq_len, settings.packing)
    return TrainingData(store, plan, tokenizer, BOS, settings, seq_len=seq_len, **lengths)


def naive_targets(pieces: list[list[int]]) -> list[int]:
    targets = []
    for piece in pieces:
        for place in range(len(piece)):
            following = piece[place + 1] if place + 1 < len(piece) else BOS
            targets.append(IGNORE if following == BOS else following)
    return targets


def test_every_epoch_visits_every_block_once_in_another_order(store: TokenStore, tokenizer: Any) -> None:
    """16 samples; whoever starts anywhere, in a new process too, gets the same sequence, across epochs."""
    data = make_data(store, tokenizer)
    assert data.num_blocks == 16
    samples = [data.sample(index) for index in range(48)]
    firsts = [tuple(sample.input_ids) for sample in samples]
    epochs = [firsts[16 * epoch : 16 * epoch + 16] for epoch in range(3)]
    blocks = {
        tuple(token for piece in data._plan.pieces(block) for token in store.tokens(*piece)) for block in range(16)
    }
    assert all(set(epoch) == blocks and len(set(epoch)) == 16 for epoch in epochs)
    assert epochs[0] != epochs[1] != epochs[2] != epochs[0]
    assert [data.epoch(index) for index in (0, 15, 16, 31, 32, 47)] == [0, 0, 1, 1, 2, 2]
    for start in (5, 15, 16, 17, 40):
        resumed = pickle.loads(pickle.dumps(make_data(store, tokenizer)))
        assert [resumed.sample(index) for index in range(start, 48)] == samples[start:]
    assert [make_data(store, tokenizer, seed=8).sample(index) for index in range(48)] != samples


def test_targets_are_shifted_once_and_never_cross_documents(store: TokenStore, tokenizer: Any) -> None:
    data = make_data(store, tokenizer)
    mixed = 0
    for index in range(16):
        block = data.block(index)
        assert block is not None
        pieces = [store.tokens(*piece) for piece in data._plan.pieces(block)]
        sample = data.sample(index)
        assert sample.targets == naive_targets(pieces) and sample.targets[-1] == IGNORE
        assert sample.position_ids is None and not sample.skips and sample.kind == "text"
        mixed += len(pieces) > 1
    assert mixed >= 2


def test_bos_is_never_a_target_inside_a_document_either(tmp_path: Path, tokenizer: Any) -> None:
    """A pre-tokenized document may hold several sequences."""
    store = make_store(tmp_path, tokenizer, [[BOS, 5, 6, BOS, 7, 8]])
    assert make_data(store, tokenizer, seq_len=6).sample(0).targets == [5, 6, IGNORE, 7, 8, IGNORE]


def test_by_default_positions_reach_the_end_of_the_block(tmp_path: Path, tokenizer: Any) -> None:
    """Documents of 30 and 34 tokens in a block of 64."""
    store = make_store(tmp_path, tokenizer, numbered(30, 34))
    sample = make_data(store, tokenizer, seq_len=64).sample(0)
    assert sample.position_ids is None and len(sample.input_ids) == 64
    assert sample.targets[29] == IGNORE and sample.targets.count(IGNORE) == 2
    isolated = make_data(store, tokenizer, seq_len=64, packing="isolated").sample(0)
    assert isolated.position_ids == [*range(30), *range(34)]
    assert (isolated.input_ids, isolated.targets) == (sample.input_ids, sample.targets)


def test_unjoined_pieces_are_blocks_of_their_own(tmp_path: Path, tokenizer: Any) -> None:
    store = make_store(tmp_path, tokenizer, numbered(8, 14))
    data = make_data(store, tokenizer, packing="none")
    assert Counter(len(data.sample(index).input_ids) for index in range(2)) == {8: 1, 10: 1}


@pytest.mark.parametrize("seed", [7, -7])
def test_shares_are_exact_and_do_not_disturb_the_order_of_text(store: TokenStore, tokenizer: Any, seed: int) -> None:
    options = {"seed": seed, "short_length": 6, "seq_len": 10}
    plain = make_data(store, tokenizer, seed=seed)
    mixed = make_data(store, tokenizer, short_fraction=0.23, **options)
    kinds = [mixed.kind(index) for index in range(3 * CYCLE)]
    assert all(Counter(kinds[CYCLE * i : CYCLE * (i + 1)]) == {"text": 77, "short": 23} for i in range(3))
    assert kinds[:CYCLE] != kinds[CYCLE : 2 * CYCLE]
    text = [index for index in range(3 * CYCLE) if kinds[index] == "text"]
    assert [mixed.sample(index) for index in text] == [plain.sample(index) for index in range(len(text))]
    assert [mixed.epoch(index) for index in text] == [number // 16 for number in range(len(text))]


def test_a_late_sample_costs_no_more_than_an_early_one(store: TokenStore, tokenizer: Any) -> None:
    """Nothing is walked through; tokens are read and orders are made for the one sample only."""
    import ropectl.train.data.samples as training

    data = make_data(store, tokenizer, short_fraction=0.1, short_length=4)
    for made in (training._block_order, training.cycle_kinds):
        made.cache_clear()
    for index in (10**7, 10**7 + 1, 10**12):
        assert data.sample(index) == data.sample(index)
    assert training._block_order.cache_info().misses <= 3 and training.cycle_kinds.cache_info().misses <= 3
    assert data.epoch(10**7) == 10**7 // CYCLE * 90 // 16


def test_short_samples_are_windows_of_one_document(store: TokenStore, tokenizer: Any) -> None:
    data = make_data(store, tokenizer, short_fraction=1.0, short_length=4, positions="pose", target_length=40)
    whole = [store.tokens(number, 0, int(length)) for number, length in enumerate(store.lengths)]
    windows = {tuple(ids[start : start + 4]) for ids in whole for start in range(len(ids) - 3)}
    seen = set()
    for index in range(600):
        sample = data.sample(index)
        assert sample.kind == "short" and tuple(sample.input_ids) in windows
        assert sample.position_ids is None and not sample.skips and sample.targets == naive_targets([sample.input_ids])
        seen.add(tuple(sample.input_ids))
    assert len(seen) > 70, "blocks and offsets are random"
    longer = make_data(store, tokenizer, short_fraction=1.0, short_length=64).sample(0)
    assert len(longer.input_ids) <= 10
    assert data.epoch(10**6) == 0, "no text sample has been"


def test_passkey_samples_are_prompts_apart_from_the_measured_ones(store: TokenStore, tokenizer: Any) -> None:
    data = make_data(store, tokenizer, seq_len=128, passkey_fraction=1.0)
    samples = [data.sample(index) for index in range(40)]
    measured = PromptBuilder(tokenizer, BOS, seed=7)
    starts, trained = set(), []
    for index, sample in enumerate(samples):
        assert sample.kind == "passkey" and len(sample.input_ids) == 128 and sample.position_ids is None
        assert sample.targets == [*sample.input_ids[1:], IGNORE] and sample.input_ids.count(BOS) == 1
        text = tokenizer.decode(sample.input_ids)
        key = text[-5:]
        assert text.count(f"The pass key is {key}. Remember it. {key} is the pass key.") == 1
        starts.add(text.index(f"The pass key is {key}."))
        trained.append(key)
        for depth in (0.0, 0.25, 0.5, 0.75, 1.0):
            assert Passkey().build(measured, 128, depth, index).input_ids != sample.input_ids
    assert len(starts) >= 10 and len(set(trained)) == 40
    assert samples == [make_data(store, tokenizer, seq_len=128, passkey_fraction=1.0).sample(i) for i in range(40)]


def test_passkeys_need_answers_with_tokens_of_their_own(store: TokenStore) -> None:
    with pytest.raises(ConfigError, match="merges the end of the question"):
        make_data(store, merging_tokenizer(), passkey_fraction=0.1)


def test_the_measured_prompts_never_have_the_seed_of_a_trained_one(tokenizer: Any) -> None:
    """Same seed, same position, same trial: still another key."""
    trained = PromptBuilder(tokenizer, BOS, seed=3, for_training=True)
    measured = PromptBuilder(tokenizer, BOS, seed=3)
    for number in range(20):
        one, other = (Passkey().build(builder, 256, 0.5, number) for builder in (trained, measured))
        assert one.answer_ids != other.answer_ids


def test_pose_positions_reach_the_target(store: TokenStore, tokenizer: Any) -> None:
    data = make_data(store, tokenizer, positions="pose", target_length=40)
    samples = [data.sample(index) for index in range(400)]
    for sample in samples:
        positions = sample.position_ids
        assert positions is not None and sample.skips and positions[0] == 0 and positions[-1] < 40
        assert positions == sorted(set(positions)) and len(positions) == 10
    assert {position for sample in samples for position in sample.position_ids or []} == set(range(40))
    contiguous = make_data(store, tokenizer)
    assert [sample.input_ids for sample in samples[:50]] == [contiguous.sample(index).input_ids for index in range(50)]
    prompt = make_data(
        store, tokenizer, seq_len=120, passkey_fraction=1.0, positions="pose", target_length=480, pose_chunks=3
    )
    reached = [positions[-1] for positions in (prompt.sample(index).position_ids for index in range(50)) if positions]
    assert len(reached) == 50 and max(reached) > 240


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"positions": "pose", "packing": "isolated", "target_length": 40}, "pose.*isolated"),
        ({"short_fraction": 0.125, "short_length": 5}, "short-fraction = 0.125"),
        ({"passkey_fraction": 0.001}, "passkey-fraction = 0.001"),
        ({"short_fraction": 0.6, "short_length": 5, "passkey_fraction": 0.5, "seq_len": 120}, "more than 1 together"),
        ({"passkey_fraction": 0.1}, "too short for the task passkey"),
    ],
)
def test_impossible_settings_are_refused(
    store: TokenStore, tokenizer: Any, changes: dict[str, Any], match: str
) -> None:
    with pytest.raises(ConfigError, match=match):
        make_data(store, tokenizer, **changes)
