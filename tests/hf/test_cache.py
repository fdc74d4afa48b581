"""A cache is cropped only where that is exact, a branch is a cache of its own, and one with room grows in place."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import DynamicCache

from ropectl.hf.model.cache import RoomyLayer, branch, cache_name, can_crop, crop, make_room
from scripts.tiny_models import tiny_model

pytestmark = pytest.mark.usefixtures("one_thread")

IDS = torch.tensor([[3, 9, 4, 7, 8, 2, 11, 5, 6, 12], [2, 2, 9, 30, 31, 40, 8, 7, 21, 22]])


def run(model: Any, ids: torch.Tensor, cache: Any = None) -> tuple[torch.Tensor, Any]:
    name = cache_name(model)
    with torch.no_grad():
        output = model(input_ids=ids, use_cache=True, **{name: cache})
    return output.logits, output[name]


@pytest.mark.parametrize(
    ("family", "changes", "length", "expected"),
    [
        ("llama", {}, 1000, True),
        ("mistral", {"sliding_window": 12}, 11, True),
        ("mistral", {"sliding_window": 12}, 12, False),
        ("gemma2", {"sliding_window": 12}, 12, False),
        ("falcon_h1", {}, 11, False),
        ("lfm2", {"layer_types": ["conv", "full_attention"]}, 11, False),
    ],
)
def test_what_can_be_cropped(family: str, changes: dict[str, Any], length: int, expected: bool) -> None:
    cache = run(tiny_model(family, **changes), IDS)[1]
    assert can_crop(cache, length) == expected


def test_other_caches_are_never_cropped() -> None:
    assert not can_crop(None, 5) and not can_crop(object(), 5)


@pytest.mark.parametrize(("family", "window"), [("llama", None), ("mistral", 12)])
def test_cropped_is_as_before(family: str, window: int | None) -> None:
    model = tiny_model(family, **({"sliding_window": window} if window else {}))
    _, cache = run(model, IDS[:, :6])
    expected, _ = run(model, IDS[:, 6:8], branch(cache, [0, 1]))
    _, cache = run(model, IDS[:, 6:10], cache)
    crop(cache, 6)
    crop(cache, 6)  # nothing left to remove
    assert cache.get_seq_length() == 6
    assert torch.equal(run(model, IDS[:, 6:8], cache)[0], expected)


@pytest.mark.parametrize(
    ("family", "changes"),
    [
        ("llama", {}),
        ("mistral", {"sliding_window": 5}),
        ("gemma2", {"sliding_window": 5}),
        ("falcon_h1", {}),
        ("lfm2", {"layer_types": ["conv", "full_attention"]}),
    ],
)
def test_a_branch_goes_its_own_way(family: str, changes: dict[str, Any]) -> None:
    """Rows in any order and number; neither cache sees what the other is given."""
    model = tiny_model(family, **changes)
    whole, _ = run(model, IDS)
    _, cache = run(model, IDS[:, :6])
    rows = [1, 0, 1]
    other = branch(cache, rows)
    assert torch.allclose(run(model, IDS[rows, 6:], other)[0], whole[rows, 6:], atol=1e-4)
    assert torch.allclose(run(model, IDS[:, 6:], cache)[0], whole[:, 6:], atol=1e-4)


def test_keys_are_not_copied_before_rows_are_chosen() -> None:
    """A branch of a long cache must not need it twice for a moment."""
    cache = run(tiny_model("llama"), IDS)[1]
    before = [layer.keys.data_ptr() for layer in cache.layers]
    twin = branch(cache, [0])
    assert [layer.keys.data_ptr() for layer in cache.layers] == before
    assert twin.layers[0].keys.shape[0] == 1 and cache.layers[0].keys.shape[0] == 2


def states(length: int, seed: int, rows: int = 2) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    # as attention makes them: (B, T, heads, D) seen as (B, heads, T, D)
    keys, values = (torch.randn(rows, length, 3, 4, generator=generator).transpose(1, 2) for _ in range(2))
    return keys, values


def grown(room: int | None, pieces: list[int]) -> DynamicCache:
    cache = DynamicCache()
    for number, length in enumerate(pieces):
        cache.update(*states(length, number), 0)
        if number == 0 and room is not None:
            make_room(cache, room)
    return cache


def test_a_cache_with_room_holds_what_concatenation_holds() -> None:
    for room in (9, 10, 50):  # less than is needed, exactly that, and more
        plain, roomy = grown(None, [4, 3, 1, 2]), grown(room, [4, 3, 1, 2])
        assert type(roomy.layers[0]) is RoomyLayer and roomy.get_seq_length() == 10
        assert torch.equal(roomy.layers[0].keys, plain.layers[0].keys)
        assert torch.equal(roomy.layers[0].values, plain.layers[0].values)


def test_nothing_is_moved_while_a_cache_with_room_grows() -> None:
    cache = grown(64, [4, 3])
    place = cache.layers[0].keys.data_ptr()
    for number in range(10):
        cache.update(*states(5, number), 0)
        assert cache.layers[0].keys.data_ptr() == place
    assert cache.layers[0].keys.untyped_storage().nbytes() == 2 * 3 * 64 * 4 * 4


def test_a_cropped_one_is_continued_in_place_and_a_branch_is_its_own() -> None:
    plain, roomy = grown(None, [4, 3]), grown(64, [4, 3])
    place = roomy.layers[0].keys.data_ptr()
    twins = [branch(cache, [1, 0, 1]) for cache in (plain, roomy)]
    assert can_crop(roomy, 20)
    for cache in (plain, roomy):
        crop(cache, 5)
        cache.update(*states(4, 9), 0)
    for twin in twins:
        twin.update(*states(2, 8, rows=3), 0)
        make_room(twin, 20)
        twin.update(*states(2, 7, rows=3), 0)
    assert roomy.layers[0].keys.data_ptr() == place, "room stays through a crop"
    for one, other in ((plain, roomy), tuple(twins)):
        assert torch.equal(one.layers[0].keys, other.layers[0].keys)
        assert torch.equal(one.layers[0].values, other.layers[0].values)
    assert twins[1].layers[0].keys.untyped_storage().nbytes() == 3 * 3 * 20 * 4 * 4, "a branch has the room it needs"
