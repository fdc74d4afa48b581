"""The operations of forward passes, so that the cost of a measurement is known before it is made.

A pass over T tokens takes 2 P T + 2 num_layers num_heads head_dim T^2 operations, and 2 E more for every token whose
logits are read: P weights of the decoder layers that a token meets, E those of the output head. Against a cache of D
tokens, the square of D + T less that of D takes the place of T^2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ropectl.errors import UnsupportedModelError
from ropectl.hf.model_shape import ModelShape
from ropectl.timing.operations import Cost


@dataclass(frozen=True)
class ForwardPass:
    """Rows of tokens that go through a model side by side.

    Attributes:
        rows: How many.
        tokens: Tokens of each.
        before: Tokens of each that the cache holds already.
        scored: Tokens whose logits are read, of all rows together.
        pieces: How many passes the rows are cut into.
    """

    rows: int
    tokens: int
    before: int = 0
    scored: int = 0
    pieces: int = 1


#: Called after each forward pass.
Progress = Callable[[ForwardPass], None]

#: Called with the tokens and the cost of what was done.
Advance = Callable[[int, Cost], None]


def no_progress(done: ForwardPass) -> None:
    """Reports nothing."""


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

    def of_pass(self, one: ForwardPass) -> Cost:
        """Returns the cost of a pass."""
        tokens, squares = one.rows * one.tokens, one.rows * ((one.before + one.tokens) ** 2 - one.before**2)
        return self.of_sums(one.pieces, tokens, squares, one.scored)

    def of_sums(self, passes: float, tokens: float, squares: float, scored: float) -> Cost:
        """Returns the cost of many passes.

        Args:
            passes: How many.
            tokens: Tokens of all rows.
            squares: Sum over all rows of (D + T)^2 - D^2.
            scored: Tokens whose logits are read.
        """
        return Cost(passes, 2.0 * self.layers * tokens, float(self.attention) * squares, 2.0 * self.head * scored)

    def reported(self, advance: Advance) -> Progress:
        """Returns what reports the tokens and the cost of every pass."""

        def progress(done: ForwardPass) -> None:
            advance(done.rows * done.tokens, self.of_pass(done))

        return progress
