"""The three numbers that fix an unscaled rotary position embedding."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ropectl.errors import ConfigError

#: No head is wider by far; a larger number is a typing error.
MAX_ROTARY_DIM = 65_536


@dataclass(frozen=True)
class RopeGeometry:
    """What a model's rotary embedding looked like in pre-training.

    Attributes:
        rotary_dim: d, rotated dimensions per head: even, at least 2. The part of ``head_dim`` that
            rotates, which for partial rotary models is not all of it.
        rope_theta: b, base of the geometric progression of frequencies, greater than 1.
        original_max_position_embeddings: L, the context the model was trained with [tokens].

    Raises:
        ConfigError: If a value is out of range.
    """

    rotary_dim: int
    rope_theta: float
    original_max_position_embeddings: int

    def __post_init__(self) -> None:
        if not 2 <= self.rotary_dim <= MAX_ROTARY_DIM or self.rotary_dim % 2:
            raise ConfigError(
                f"rotary_dim = {self.rotary_dim} is not possible: it must be even, at least 2 and at most {MAX_ROTARY_DIM}."
            )
        if not (math.isfinite(self.rope_theta) and self.rope_theta > 1):
            raise ConfigError(f"rope_theta = {self.rope_theta} is not possible: it must be finite and greater than 1.")
        if self.original_max_position_embeddings < 2:
            raise ConfigError(
                f"original_max_position_embeddings = {self.original_max_position_embeddings} is not possible: "
                "it must be at least 2 tokens."
            )

    @property
    def num_pairs(self) -> int:
        """d/2, the number of rotary pairs."""
        return self.rotary_dim // 2

    def target_length(self, factor: float) -> int:
        """L' = round(s * L), the context that extension by ``factor`` aims at [tokens]."""
        return round(factor * self.original_max_position_embeddings)

    @classmethod
    def parse(cls, text: str) -> RopeGeometry:
        """Returns the geometry that ``rotary_dim=..,rope_theta=..,original_max_position_embeddings=..`` says.

        Raises:
            ConfigError: If a number is missing, unknown or malformed.
        """
        kinds = {"rotary_dim": int, "rope_theta": float, "original_max_position_embeddings": int}
        example = "Type for example: --geometry rotary_dim=128,rope_theta=10000,original_max_position_embeddings=4096"
        values: dict[str, Any] = {}
        for pair in text.split(","):
            key, _, value = (part.strip() for part in pair.partition("="))
            if key not in kinds:
                raise ConfigError(f"geometry has no number {key!r}: it has {', '.join(kinds)}.", example)
            try:
                values[key] = kinds[key](value)
            except ValueError:
                raise ConfigError(
                    f"geometry: {key} = {value!r} is not a {'whole ' if kinds[key] is int else ''}number.", example
                ) from None
        missing = [key for key in kinds if key not in values]
        if missing:
            raise ConfigError(f"geometry lacks {', '.join(missing)}.", example)
        return cls(**values)
