"""The strategy that trains low-rank updates of frozen weights (LoRA, arXiv 2106.09685), through peft.

LongLoRA (arXiv 2309.12307) found that for longer contexts low-rank updates alone fall behind, and that training
the normalisation weights and the embeddings too closes the gap: ``train_norms`` and ``train_embeddings``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ropectl.errors import UnsupportedModelError
from ropectl.extras import check_package
from ropectl.train.settings import FinetuneSettings
from ropectl.train.strategies.strategy import Strategy


class LoraStrategy(Strategy):
    """Trains LoRA matrices, and where asked for the normalisation weights and the embeddings."""

    def __init__(self, settings: FinetuneSettings) -> None:
        super().__init__(settings)
        self.keeps_adapter = settings.merge is False
        check_package("peft", "--strategy lora")

    def prepare(self, model: Any) -> None:
        """Adds the matrices in place; before training, the output of the model stays the same."""
        import torch

        self._peft_model(model)
        for parameter in model.parameters():
            if parameter.requires_grad:  # small updates of half-precision numbers would be rounded away
                parameter.data = parameter.data.to(torch.float32)

    def merged(self, model: Any) -> Any:
        """Returns the model with the low-rank updates added to the weights that they belong to."""
        return model.ropectl_peft[0].merge_and_unload(safe_merge=True)

    def save_adapter(self, model: Any, folder: Path, base: str, revision: str | None) -> None:
        """Writes the adapter in peft's form."""
        wrapped = model.ropectl_peft[0]
        config = wrapped.peft_config["default"]
        config.base_model_name_or_path, config.revision = base, revision
        # Whether embeddings are saved is decided by modules_to_save; peft would ask the hub to decide.
        wrapped.save_pretrained(str(folder), save_embedding_layers=False)

    def _peft_model(self, model: Any) -> None:
        from peft import LoraConfig, get_peft_model

        settings = self.settings
        also = _norm_names(model) if settings.train_norms else []
        tied = bool(model.config.get_text_config().tie_word_embeddings)
        if settings.train_embeddings:
            embeddings = model.get_input_embeddings()
            path = next(name for name, module in model.named_modules() if module is embeddings)
            also.append(path.rpartition(".")[2])
        config = LoraConfig(
            task_type="CAUSAL_LM",
            r=settings.lora_rank,
            lora_alpha=settings.lora_alpha,
            lora_dropout=settings.lora_dropout,
            target_modules="all-linear" if settings.lora_targets == "all" else _attention_projections(model),
            modules_to_save=also or None,
            # Embedding and head are one weight in a tied model, and have to be one while they are trained.
            ensure_weight_tying=tied and settings.train_embeddings,
        )
        # The tuple hides the wrapper from torch, which would make it a submodule.
        try:
            model.ropectl_peft = (get_peft_model(model, config),)
        except ValueError as error:
            raise UnsupportedModelError(
                f"strategy = lora is not possible for {type(model).__name__}; peft says: {error}",
                "Type: --strategy full",
            ) from None
        if (
            config.ensure_weight_tying
            and model.get_output_embeddings().weight is not model.get_input_embeddings().weight
        ):
            raise UnsupportedModelError(
                f"Embedding and head of {type(model).__name__} are one weight, which peft would train apart.",
                "Leave out --train-embeddings, or use --strategy full.",
            )


def _attention_projections(model: Any) -> list[str]:
    """Returns the names of the linear layers inside attention modules."""
    from torch import nn

    names: set[str] = set()
    for module in model.get_decoder().modules():
        if "Attention" in type(module).__name__:
            names |= {name.rpartition(".")[2] for name, part in module.named_modules() if isinstance(part, nn.Linear)}
    if not names:
        raise UnsupportedModelError(
            f"{type(model).__name__} has no linear layers inside attention modules.", "Type: --lora-targets all"
        )
    return sorted(names)


def _norm_names(model: Any) -> list[str]:
    modules = model.get_decoder().named_modules()
    return sorted({name.rpartition(".")[2] for name, part in modules if type(part).__name__.endswith("Norm")})
