"""The numbers that define an unscaled rotary position embedding: three, and a fourth where some pairs stand still."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ropectl.errors import ConfigError
from ropectl.names import name_hint
from ropectl.specs import check_typing, split_pairs

#: Far wider than any head; a larger number is a typing error.
MAX_ROTARY_DIM = 65_536


def describe_rotary_dim(geometry: Mapping[str, Any]) -> str:
    """Returns ``rotary_dim`` of a geometry in JSON for people, with the pairs that turn where not all do."""
    dim, turning = geometry["rotary_dim"], geometry.get("num_turning")
    return f"rotary_dim {dim}" if turning is None else f"rotary_dim {dim} ({turning} of {dim // 2} pairs turn)"


@dataclass(frozen=True)
class RopeGeometry:
    """A model's rotary embedding as it was in pre-training.

    Attributes:
        rotary_dim: d, rotated dimensions per head: even, at least 2. The part of ``head_dim`` that
            rotates, which for partial rotary models is not all of it.
        rope_theta: b, base of the geometric progression of frequencies, greater than 1.
        original_max_position_embeddings: L, the context the model was trained with [tokens].
        num_turning: k, how many of the d/2 pairs turn, the fastest first; the others have frequency 0
            (p-RoPE, arXiv 2410.06205). None where all turn, which is all but a few families.

    Raises:
        ConfigError: If a value is out of range.
    """

    rotary_dim: int
    rope_theta: float
    original_max_position_embeddings: int
    num_turning: int | None = None

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
        if self.num_turning is not None and not 1 <= self.num_turning < self.num_pairs:
            raise ConfigError(
                f"num_turning = {self.num_turning} is not possible: of {self.num_pairs} pairs, at least 1 and at most "
                f"{self.num_pairs - 1} turn; where all do, leave it out."
            )

    @property
    def num_pairs(self) -> int:
        """d/2, the number of rotary pairs."""
        return self.rotary_dim // 2

    @property
    def turning_pairs(self) -> int:
        """k, the number of pairs that turn: the fastest ones."""
        return self.num_pairs if self.num_turning is None else self.num_turning

    def to_json(self) -> dict[str, Any]:
        """Returns the numbers by name; ``num_turning`` only where some pairs stand still."""
        return {key: value for key, value in asdict(self).items() if value is not None}

    def target_length(self, factor: float) -> int:
        """L' = round(s * L), the context that extension by ``factor`` aims at [tokens]."""
        return round(factor * self.original_max_position_embeddings)

    @classmethod
    def parse(cls, text: str) -> RopeGeometry:
        """Returns the geometry that ``rotary_dim=..,rope_theta=..,original_max_position_embeddings=..`` says.

        ``num_turning=..`` may follow.

        Raises:
            ConfigError: If a number is missing, unknown or malformed.
        """
        kinds = {"rotary_dim": int, "rope_theta": float, "original_max_position_embeddings": int, "num_turning": int}
        example = "Type for example: --geometry rotary_dim=128,rope_theta=10000,original_max_position_embeddings=4096"
        check_typing(text.strip(), "geometry")
        values: dict[str, Any] = {}
        for key, value in split_pairs(text, "geometry", example).items():
            if key not in kinds:
                raise ConfigError(f"geometry has no number {key!r}. {name_hint(key, kinds)}", example)
            try:
                values[key] = kinds[key](value)
            except ValueError:
                raise ConfigError(
                    f"geometry: {key} = {value!r} is not a {'whole ' if kinds[key] is int else ''}number.", example
                ) from None
        missing = [key for key in kinds if key not in values and key != "num_turning"]
        if missing:
            raise ConfigError(f"geometry lacks {', '.join(missing)}.", example)
        return cls(**values)
