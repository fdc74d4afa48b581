"""Reads ``ropectl.json``, which says how a patched checkpoint was made where its config cannot.

A stock config carries the scaled frequencies but not always how they came about: NTK-aware scaling is only
another base there, ``linear`` does not say the trained length, the universal form is a list of numbers.
The sidecar names method and geometry. It counts only while it agrees with the config in the same folder.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ropectl.errors import ConfigError, MethodError
from ropectl.hf.config.dialects import scaling_type
from ropectl.hf.config.geometry import RopeDescription
from ropectl.json_reading import read_object
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.method import ScalingMethod
from ropectl.rope.registry import method_from_native, parse_method

SIDECAR = "ropectl.json"

#: Relative difference between two ways to compute the same float64 number.
SAME = 1e-9

#: The keys that have to be there, and their types.
_TYPES = {
    "method": str,
    "geometry": dict,
    "rope_parameters": dict,
    "max_position_embeddings": int,
    "target_length": int,
}


@dataclass(frozen=True)
class Sidecar:
    """The facts about a patched checkpoint that its config cannot say.

    Attributes:
        method: Spec of the method.
        geometry: What the model was trained with.
        rope_parameters: The block of the config that carries the method.
        max_position_embeddings: The context that the config declares [tokens].
        target_length: The context that is meant to work [tokens].
        seq_len: The length at which a length-dependent method was frozen [tokens]; None if it was not.
        layer_type: The layer type that is scaled, for configs with one block per layer type.
    """

    method: str
    geometry: RopeGeometry
    rope_parameters: dict[str, Any]
    max_position_embeddings: int
    target_length: int
    seq_len: int | None = None
    layer_type: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Returns the sidecar's part of the file."""
        return {**asdict(self), "geometry": self.geometry.to_json()}

    def describes(self, block: Mapping[str, Any], rope: RopeDescription) -> bool:
        """Returns whether a config still says what this sidecar says, whatever else it says."""
        said = {**block, "rope_theta": rope.geometry.rope_theta, "rope_type": scaling_type(block)}
        same = all(said.get(key) == value for key, value in self.rope_parameters.items())
        same = same and self.geometry.rotary_dim == rope.geometry.rotary_dim
        return same and self.max_position_embeddings == rope.max_position_embeddings


def read_sidecar(path: Path) -> Sidecar | None:
    """Returns the sidecar in a file; None if there is no such file.

    Raises:
        ConfigError: If the file is not what ropectl writes.
    """
    if not os.path.lexists(path):
        return None
    try:
        content = read_object(path)
        for name, kind in _TYPES.items():
            if not isinstance(content[name], kind):
                raise TypeError(f"{name} is {content[name]!r}")
        geometry = RopeGeometry(**content["geometry"])
        values = {name: content[name] for name in Sidecar.__dataclass_fields__ if name in content}
        return Sidecar(**{**values, "geometry": geometry})
    except (ValueError, KeyError, TypeError, ConfigError) as error:
        why = f"it lacks {error}" if isinstance(error, KeyError) else str(getattr(error, "message", error)).rstrip(".")
        raise ConfigError(
            f"{path} is not a description that ropectl wrote: {why}.", "Remove it, and say the trained length instead."
        ) from None


def frozen_method(rope_parameters: Mapping[str, Any], geometry: RopeGeometry, target_length: int) -> ScalingMethod:
    """Returns the static method of a block in which a length-dependent one was frozen.

    Args:
        rope_parameters: The block as written.
        geometry: What the model was trained with, which the block alone does not say.
        target_length: The context that is meant to work [tokens].
    """
    factor = max(1.0, target_length / geometry.original_max_position_embeddings)
    said = {**rope_parameters, "factor": factor} if "factor" in rope_parameters else dict(rope_parameters)
    method = method_from_native(said, geometry)
    assert method is not None, "ropectl wrote the block"
    return method


def _check_block(sidecar: Sidecar, method: ScalingMethod, path: Path) -> None:
    """Refuses a sidecar whose method is not what its own block computes: it was edited by hand, or damaged."""
    geometry = sidecar.geometry
    written = method_from_native(sidecar.rope_parameters, geometry)
    length = 2 * geometry.original_max_position_embeddings  # past the trained one, where methods differ
    said = method.frequencies(geometry, length)
    computed = said if written is None else written.frequencies(geometry, length)
    numbers = zip((*said.inv_freq, said.attention_factor), (*computed.inv_freq, computed.attention_factor), strict=True)
    if not all(math.isclose(one, other, rel_tol=SAME) for one, other in numbers):
        raise ConfigError(
            f"{path} contradicts itself: its rope_parameters do not compute {method.label}.", "Remove the file."
        )


def with_sidecar(
    rope: RopeDescription, sidecar: Sidecar, block: Mapping[str, Any], path: Path, kept: Sequence[str] = ()
) -> RopeDescription:
    """Returns what a config says, completed by its sidecar; with a warning where the two disagree.

    Args:
        rope: What the config alone says.
        sidecar: The file next to it.
        block: The config's scaling block.
        path: The sidecar, for messages.
        kept: Warnings that hold whatever the sidecar says.
    """
    if not sidecar.describes(block, rope):
        warning = f"{path.name} describes another scaling than config.json, and is ignored."
        return replace(rope, warnings=(*rope.warnings, warning))
    try:
        method = parse_method(sidecar.method)
        if sidecar.seq_len is not None:  # the config holds one length of the method, and so do its results
            method = frozen_method(sidecar.rope_parameters, sidecar.geometry, sidecar.target_length)
        _check_block(sidecar, method, path)
    except MethodError as error:
        raise ConfigError(f"{path} names an impossible method: {error.message}", "Remove the file.") from None
    return replace(rope, geometry=sidecar.geometry, method=method, warnings=tuple(kept))
