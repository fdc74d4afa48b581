"""What is trained is what is saved: tied and untied models, LoRA with LongLoRA's extras, merged and kept apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from ropectl.errors import ConfigError, UnsupportedModelError
from ropectl.train.settings import FinetuneSettings
from ropectl.train.strategies import make_strategy
from ropectl.train.strategies.strategy import trained_parameters
from scripts.tiny_models import tiny_model
from tests.conftest import make_model

IDS = torch.arange(3, 43).unsqueeze(0)
#: A merged weight is rounded once more than base and update apart (absolute, logits of size 10).
MERGED = 2e-5


def tuned(tied: bool, **options: Any) -> tuple[Any, Any]:
    """A model after three large steps, and its strategy."""
    strategy = make_strategy(FinetuneSettings(**options))
    model = make_model(tie_word_embeddings=tied)
    torch.manual_seed(1)
    strategy.prepare(model)
    optimizer = torch.optim.AdamW(trained_parameters(model).values(), lr=1e-2)
    for _ in range(3):
        model(input_ids=IDS, labels=IDS).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return model.eval(), strategy


@pytest.mark.process
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize(
    "options",
    [
        {"strategy": "full"},
        {"strategy": "lora"},
        {"strategy": "lora", "lora_targets": "all", "train_norms": True, "train_embeddings": True},
    ],
)
@torch.no_grad()
def test_logits_survive_saving(tmp_path: Path, tied: bool, options: dict[str, Any]) -> None:
    with torch.enable_grad():
        model, strategy = tuned(tied, **options)
    wanted = model(IDS).logits
    assert not torch.allclose(wanted, make_model(tie_word_embeddings=tied)(IDS).logits, atol=0.1)
    if options["strategy"] == "lora":
        from peft import PeftModel

        strategy.save_adapter(model, tmp_path / "adapter", "base", None)
        again = PeftModel.from_pretrained(make_model(tie_word_embeddings=tied), str(tmp_path / "adapter"))
        assert torch.equal(again(IDS).logits, wanted)
    merged = strategy.merged(model)
    merged.save_pretrained(tmp_path / "merged")
    reloaded = type(merged).from_pretrained(tmp_path / "merged")
    assert torch.allclose(reloaded(IDS).logits, wanted, atol=MERGED)
    assert reloaded.config.tie_word_embeddings == tied
    same = reloaded.lm_head.weight.data_ptr() == reloaded.model.embed_tokens.weight.data_ptr()
    assert same == tied


@pytest.mark.parametrize("tied", [True, False])
def test_everything_trained_changes_and_is_named(tied: bool) -> None:
    options = {"strategy": "lora", "train_norms": True, "train_embeddings": True}
    model, _ = tuned(tied, **options)
    fresh = make_model(tie_word_embeddings=tied)
    torch.manual_seed(1)
    make_strategy(FinetuneSettings(**options)).prepare(fresh)
    before, after = trained_parameters(fresh), trained_parameters(model)
    assert before.keys() == after.keys()
    assert all(not torch.equal(before[name], after[name]) for name in before)
    plain = {name.replace(".modules_to_save.default", "") for name in after if "lora_" not in name}
    norms = {name for name, _ in make_model().named_parameters() if "norm" in name}
    assert plain == norms | {"model.embed_tokens.weight"}
    frozen = [p for name, p in model.named_parameters() if name not in after]
    assert frozen and not any(p.requires_grad for p in frozen)


def test_nothing_changes_before_training() -> None:
    model = make_model()
    before = model(IDS).logits
    make_strategy(FinetuneSettings(strategy="lora", train_norms=True, train_embeddings=True)).prepare(model)
    assert torch.equal(model(IDS).logits, before)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strategy": "qlora"}, "allowed are full, lora"),
        ({"lora_rank": 4}, "lora-rank has no effect"),
        ({"merge": False}, "merge has no effect"),
        ({"train_norms": True}, "train-norms has no effect"),
    ],
)
def test_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make_strategy(FinetuneSettings(**options))


def test_a_tied_weight_that_would_be_trained_apart_is_refused() -> None:
    """peft finds the embedding of a tied model by its name; Falcon's has another one."""
    strategy = make_strategy(FinetuneSettings(strategy="lora", train_embeddings=True))
    with pytest.raises(UnsupportedModelError, match="are one weight"):
        strategy.prepare(tiny_model("falcon"))
    strategy.prepare(tiny_model("gemma2"))
