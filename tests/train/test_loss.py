"""The chunked loss is the whole one: value and gradients, whatever the head."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from ropectl.train.data.samples import IGNORE
from ropectl.train.engine.loss import CausalLoss
from scripts.tiny_models import VOCABULARY as FAMILY_VOCABULARY
from scripts.tiny_models import tiny_model
from tests.conftest import VOCABULARY, make_model
from tests.tolerances import CHUNKED_LOSS

#: Families whose logits are capped or scaled behind the head.
CHANGED_LOGITS: dict[str, dict[str, float]] = {
    "gemma2": {"final_logit_softcapping": 0.5},  # random logits are small: a cap of 30 would hardly bend them
    "cohere": {"logit_scale": 0.0625},
    "granite": {"logits_scaling": 8.0},
}


def batch(vocabulary: int, rows: int = 2, length: int = 37) -> tuple[Tensor, Tensor]:
    """Random tokens, and targets shifted by hand, some of them none."""
    generator = torch.Generator().manual_seed(3)
    ids = torch.randint(1, vocabulary, (rows, length), generator=generator)
    targets = torch.cat([ids[:, 1:], torch.full((rows, 1), IGNORE)], dim=1)
    targets[0, 5:9] = IGNORE
    targets[-1, -10:] = IGNORE
    return ids, targets


def whole_loss(model: Any, ids: Tensor, targets: Tensor) -> Tensor:
    """The sum of losses from the whole logits of the model's own forward pass."""
    logits = model(input_ids=ids, use_cache=False).logits.float()
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=IGNORE, reduction="sum")


def gradients(model: Any, loss: Tensor) -> dict[str, Tensor]:
    model.zero_grad()
    loss.backward()
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


def assert_same_gradients(model: Any, loss: CausalLoss, ids: Tensor, targets: Tensor) -> None:
    expected = whole_loss(model, ids, targets)
    wanted = gradients(model, expected)
    ours = loss(ids, targets)
    torch.testing.assert_close(ours, expected, rtol=CHUNKED_LOSS, atol=0.0)
    found = gradients(model, ours)
    assert found.keys() == wanted.keys() == {name for name, _ in model.named_parameters()}
    for name, gradient in wanted.items():
        scale = float(gradient.abs().max())
        assert scale > 0, name
        torch.testing.assert_close(found[name], gradient, rtol=CHUNKED_LOSS, atol=CHUNKED_LOSS * scale, msg=name)


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("chunk", [1, 5, 37, 64, 0, None])
def test_chunks_give_the_gradients_of_whole_logits(chunk: int | None, tied: bool) -> None:
    model = make_model(tie_word_embeddings=tied).train()
    loss = CausalLoss(model, chunk)
    assert loss.reads_hidden
    assert_same_gradients(model, loss, *batch(VOCABULARY))


@pytest.mark.parametrize("chunk", [5, None])
@pytest.mark.parametrize("family", CHANGED_LOGITS)
def test_logits_that_are_changed_behind_the_head_count_as_the_model_makes_them(family: str, chunk: int | None) -> None:
    model = tiny_model(family, **CHANGED_LOGITS[family]).train()
    loss = CausalLoss(model, chunk)
    assert not loss.reads_hidden
    assert_same_gradients(model, loss, *batch(FAMILY_VOCABULARY))


@pytest.mark.parametrize("family", ["llama", *CHANGED_LOGITS])
def test_it_is_the_loss_of_transformers(family: str) -> None:
    """transformers shifts labels itself and takes the mean."""
    model = tiny_model(family, **CHANGED_LOGITS.get(family, {}))
    ids, targets = batch(FAMILY_VOCABULARY)
    labels = torch.cat([torch.full((len(ids), 1), IGNORE), targets[:, :-1]], dim=1)
    theirs = model(input_ids=ids, labels=labels, use_cache=False).loss
    ours = CausalLoss(model)(ids, targets) / (targets != IGNORE).sum()
    torch.testing.assert_close(ours, theirs, rtol=CHUNKED_LOSS, atol=0.0)


def test_only_chunks_of_logits_are_kept() -> None:
    """The largest tensor that is kept for the backward pass is no logits; without chunks it is."""
    model = make_model().train()
    ids, targets = batch(VOCABULARY, rows=1, length=64)
    largest = {}
    for chunk in (8, 0):
        sizes: list[int] = []
        loss = CausalLoss(model, chunk)
        weights = {p.data_ptr() for p in model.parameters()}

        def keep(tensor: Tensor, sizes: list[int] = sizes, weights: set[int] = weights) -> Tensor:
            sizes.extend([tensor.numel()] if tensor.data_ptr() not in weights else [])
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            loss(ids, targets)
        largest[chunk] = max(sizes)
    assert largest[0] == 64 * VOCABULARY
    assert largest[8] <= 64 * 128  # the MLP's hidden state


def test_no_targets_is_no_loss_and_no_gradient() -> None:
    model = make_model().train()
    ids, targets = batch(VOCABULARY)
    loss = CausalLoss(model, 8)(ids, torch.full_like(targets, IGNORE))
    assert loss.item() == 0
    assert all(not gradient.any() for gradient in gradients(model, loss).values())
