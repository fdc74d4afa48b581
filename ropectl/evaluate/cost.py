"""The operations of a forward pass, so that the cost of a measurement is known before it is made.

A pass over T tokens takes 2 P T + 2 num_layers num_heads head_dim T^2 operations, and 2 E more for every token whose
logits are read: P weights of the decoder layers that a token meets, E those of the output head.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ropectl.errors import UnsupportedModelError
from ropectl.hf.model_shape import ModelShape


@dataclass(frozen=True)
class Cost:
    """The operations of a measurement.

    Attributes:
        layers: Operations in the decoder layers.
        head: Operations in the output head.
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

        If its sizes are not known, every token has the same cost.
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
        """Returns the cost of a prefix tree whose branches are short compared with its trunks.

        Args:
            tokens: Distinct tokens, including those of the branches.
            trunk: Length of each trunk.
            trunks: Number of trunks.
            scored: Tokens whose logits are read.
        """
        return Cost(2.0 * self.layers * tokens + float(self.attention) * trunks * trunk**2, 2.0 * self.head * scored)
