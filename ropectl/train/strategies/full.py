"""The strategy that trains all weights."""

from __future__ import annotations

from typing import Any

from ropectl.errors import ConfigError
from ropectl.train.settings import LORA, FinetuneSettings
from ropectl.train.strategies.strategy import Strategy


class FullStrategy(Strategy):
    """Trains every weight; tied weights are one parameter, and stay one."""

    def __init__(self, settings: FinetuneSettings) -> None:
        super().__init__(settings)
        if changed := LORA.changed(settings):
            names = ("no-merge" if getattr(settings, name) is False else name.replace("_", "-") for name in changed)
            raise ConfigError(
                f"{', '.join(names)} has no effect where all weights are trained.",
                "Type: --strategy lora",
            )

    def prepare(self, model: Any) -> None:
        """Turns on the gradients of all weights."""
        model.requires_grad_(True)

    def merged(self, model: Any) -> Any:
        """Returns the model itself."""
        return model
