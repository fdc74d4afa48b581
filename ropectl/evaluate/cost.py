"""The arithmetic of a forward pass: what a measurement costs, before it is made.

A pass over T tokens takes 2 P T + 2 num_layers num_heads head_dim T^2 operations, and 2 E more for every token whose
logits are read: P weights of the decoder layers that a token meets, E those of the output head.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ropectl.errors import UnsupportedModelError
from ropectl.hf.config.shape import ModelShape


@dataclass(frozen=True)
class Cost:
    """Operations of a measurement, by where they are spent.

    Attributes:
        layers: In the decoder layers.
        head: In the output head.
    """

    layers: float = 0.0
    head: float = 0.0

    @property
    def total(self) -> float:
        """The operations of both."""
        return self.layers + self.head

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.layers + other.layers, self.head + other.head)

    def __mul__(self, times: float) -> Cost:
        return Cost(self.layers * times, self.head * times)


@dataclass(frozen=True)
class ForwardCost:
    """The sizes of a model that decide the operations of a forward pass.

    Attributes:
        layers: P, weights of all decoder layers that a token meets.
        head: E, weights of the output head.
        attention: Operations of attention for each pair of tokens, over all layers.
    """

    layers: int
    head: int
    attention: int

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> ForwardCost:
        """Returns the cost of the model that the content of a ``config.json`` describes.

        Where it does not say what is needed, every token costs the same, and nothing else.
        """
        try:
            shape = ModelShape.of(config)
        except UnsupportedModelError:
            return cls(layers=1, head=0, attention=0)
        return cls.of_weights(shape.num_layers * shape.layer_parameters, shape.vocabulary * shape.hidden, shape)

    @classmethod
    def of_weights(cls, layers: int, head: int, shape: ModelShape) -> ForwardCost:
        """Returns the cost of a model whose weights were counted.

        Args:
            layers: P.
            head: E.
            shape: The sizes of its attention.
        """
        return cls(layers, head, attention=2 * shape.num_layers * shape.query_width)

    def window(self, tokens: int, scored: int) -> Cost:
        """Returns the cost of one pass over a sequence.

        Args:
            tokens: T.
            scored: Tokens whose logits are read.
        """
        return Cost(2.0 * self.layers * tokens + float(self.attention) * tokens**2, 2.0 * self.head * scored)

    def tree(self, tokens: int, trunk: int, trunks: float, scored: int) -> Cost:
        """Returns the cost of walking a prefix tree whose branches are short beside its trunks.

        Args:
            tokens: Distinct tokens, those of the branches among them.
            trunk: Length of each trunk.
            trunks: How many there are.
            scored: Tokens whose logits are read.
        """
        return Cost(2.0 * self.layers * tokens + float(self.attention) * trunks * trunk**2, 2.0 * self.head * scored)
