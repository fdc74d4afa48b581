"""All weights are trained."""

from __future__ import annotations

from typing import Any

from ropectl.errors import ConfigError
from ropectl.train.settings import LORA, FinetuneSettings
from ropectl.train.strategies.strategy import Strategy


def _option(name: str) -> str:
    """Returns the option that changes a setting: merging is the default, so that only --no-merge does."""
    return "no-merge" if name == "merge" else name.replace("_", "-")


class FullStrategy(Strategy):
    """Trains every weight; tied weights are one parameter, and stay one."""

    def __init__(self, settings: FinetuneSettings) -> None:
        super().__init__(settings)
        if changed := LORA.changed(settings):
            raise ConfigError(
                f"{', '.join(_option(name) for name in changed)} means nothing where all weights are trained.",
                "Type: --strategy lora",
            )

    def prepare(self, model: Any) -> None:
        """Asks for the gradients of everything."""
        model.requires_grad_(True)

    def merged(self, model: Any) -> Any:
        """Returns the model itself."""
        return model
