"""A way to rotate, and small changes of one."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ropectl.rope.frequencies import RopeFrequencies, divisors
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.method import ScalingMethod
from ropectl.rope.methods.longrope import LongRope


@dataclass(frozen=True)
class Rotation:
    """A method on a geometry.

    Attributes:
        method: The method.
        geometry: What it takes for the model's own geometry.
    """

    method: ScalingMethod
    geometry: RopeGeometry

    def frequencies(self, num_tokens: int) -> RopeFrequencies:
        """Returns the frequencies for a sequence of so many tokens."""
        return self.method.frequencies(self.geometry, num_tokens)


def with_attention(rotation: Rotation, factor: float, length: int) -> Rotation:
    """Returns a rotation with another attention factor, in the method's own words where it has some."""
    if "attention_factor" in type(rotation.method).model_fields:
        return replace(rotation, method=changed(rotation.method, attention_factor=factor))
    return replace(rotation, method=divided(rotation.frequencies(length), rotation.geometry, factor))


def changed(method: ScalingMethod, **changes: float) -> ScalingMethod:
    """Returns a method with other parameters."""
    return type(method).create({**method.model_dump(exclude_defaults=True), **changes})


def divided(frequencies: RopeFrequencies, geometry: RopeGeometry, attention_factor: float | None = None) -> LongRope:
    """Returns any frequencies as divisors of the trained ones, at every length.

    Raises:
        MethodError: If a pair turns that never turned in training.
    """
    given = frequencies.attention_factor if attention_factor is None else attention_factor
    shares = list(divisors(geometry, frequencies))
    return LongRope.create({"factor": 1.0, "long_factor": shares, "attention_factor": given})
