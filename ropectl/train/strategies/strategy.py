"""The base class of training strategies, and the parameters that they train."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from ropectl.train.settings import FinetuneSettings


class Strategy(ABC):
    """Decides which weights of a model are trained, and how they become a checkpoint again.

    Args:
        settings: What was asked for; checked here, before any weight loads.
    """

    #: Whether the result is an adapter folder instead of a whole model.
    keeps_adapter = False

    def __init__(self, settings: FinetuneSettings) -> None:
        self.settings = settings

    @abstractmethod
    def prepare(self, model: Any) -> None:
        """Gives the model what is trained, in place; afterwards exactly that requires gradients."""

    @abstractmethod
    def merged(self, model: Any) -> Any:
        """Returns the plain model in which a prepared one's trained weights are in force."""

    def save_adapter(self, model: Any, folder: Path, base: str, revision: str | None) -> None:
        """Writes the trained weights of a prepared model as an adapter of ``base``."""
        raise NotImplementedError


def trained_parameters(model: Any) -> dict[str, Any]:
    """Returns the parameters that require gradients, each once, by name."""
    return {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}


def describe_trained(model: Any) -> str:
    """Returns how much of a model is trained, and the names of what is trained in addition to LoRA matrices."""
    names = trained_parameters(model)
    trained, total = sum(p.numel() for p in names.values()), sum(p.numel() for p in model.parameters())
    text = f"Training {trained:,} of {total:,} parameters in {len(names)} tensors"
    whole = sorted({name.replace(".modules_to_save.default", "") for name in names if "modules_to_save" in name})
    return f"{text}; in addition to LoRA matrices: {', '.join(whole)}." if whole else f"{text}."
