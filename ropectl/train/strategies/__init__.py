"""Training strategies: which weights are trained, and how they are written. A new one is one file and one line here."""

from __future__ import annotations

from ropectl.names import unknown_choice
from ropectl.train.settings import FinetuneSettings
from ropectl.train.strategies.full import FullStrategy
from ropectl.train.strategies.lora import LoraStrategy
from ropectl.train.strategies.strategy import Strategy

STRATEGIES: dict[str, type[Strategy]] = {"full": FullStrategy, "lora": LoraStrategy}


def make_strategy(settings: FinetuneSettings) -> Strategy:
    """Returns the strategy that is asked for, its options checked.

    Raises:
        ConfigError: If there is no such strategy, or its options contradict each other.
    """
    if settings.strategy not in STRATEGIES:
        raise unknown_choice("strategy", settings.strategy, STRATEGIES)
    return STRATEGIES[settings.strategy](settings)
