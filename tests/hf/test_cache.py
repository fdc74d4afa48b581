"""A cache is cropped only where that is exact, and a branch of it is a cache of its own."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from ropectl.hf.model.cache import branch, cache_name, can_crop, crop
from tests.hf.tiny_families import tiny_model

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
