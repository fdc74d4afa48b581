"""A cache with room against one that concatenates: the same keys and values, and nothing moved while it grows."""

from __future__ import annotations

import torch
from transformers import DynamicCache

from ropectl.hf.model.cache import branch, can_crop, crop
from ropectl.hf.model.roomy_cache import RoomyLayer, make_room


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


def test_it_holds_what_concatenation_holds() -> None:
    for room in (9, 10, 50):  # less than is needed, exactly that, and more
        plain, roomy = grown(None, [4, 3, 1, 2]), grown(room, [4, 3, 1, 2])
        assert type(roomy.layers[0]) is RoomyLayer and roomy.get_seq_length() == 10
        assert torch.equal(roomy.layers[0].keys, plain.layers[0].keys)
        assert torch.equal(roomy.layers[0].values, plain.layers[0].values)


def test_nothing_is_moved_while_it_grows() -> None:
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
