"""Compares rotary tables that old checkpoints store among their weights with the config."""

from __future__ import annotations

import math
from collections.abc import Mapping

from ropectl.errors import ConfigError
from ropectl.hf.config.geometry import RopeDescription
from ropectl.hf.tensors.safetensors_file import StoredTensor
from ropectl.rope.frequencies import trained_inv_freq

_NAME = "rotary_emb.inv_freq"

#: Relative rounding of each type; numbers below the smallest normal float16 are coarser.
_ROUNDING = {"F64": 1e-6, "F32": 1e-5, "BF16": 2**-7, "F16": 2**-9}
_SMALLEST_F16 = 2**-24


def stored_table_note(tensors: Mapping[str, StoredTensor], rope: RopeDescription) -> str | None:
    """Returns a note on rotary tables among the weights that say what the config says; None where there are none.

    Args:
        tensors: The checkpoint's tensors.
        rope: What the config says.

    Raises:
        ConfigError: If they say something else: then one of the two is not what the model was trained with.
    """
    tables = {name: tensor for name, tensor in tensors.items() if name.endswith(_NAME)}
    geometry = rope.geometry
    scaled = rope.method.frequencies(geometry, geometry.original_max_position_embeddings).inv_freq
    for name, tensor in tables.items():
        numbers = tensor.numbers() if math.prod(tensor.shape) == geometry.num_pairs else ()
        if numbers is None:
            continue
        if not any(_agree(numbers, expected, tensor.dtype) for expected in (trained_inv_freq(geometry), scaled)):
            raise ConfigError(
                f"The weights hold {name} {_describe(numbers, tensor)}; config.json says rope_theta = "
                f"{geometry.rope_theta:g} ({geometry.num_pairs} pairs). One of the two is not what the "
                "model was trained with.",
                "Correct rope_theta in config.json, or remove these tensors from the weights.",
            )
    if not tables:
        return None
    return f"The weights hold {_NAME}, as old versions of transformers stored it. It is what config.json says, and is kept."


def _agree(numbers: tuple[float, ...], expected: tuple[float, ...], dtype: str) -> bool:
    smallest = _SMALLEST_F16 if dtype == "F16" else 0.0
    return len(numbers) == len(expected) and all(
        math.isclose(one, other, rel_tol=_ROUNDING[dtype], abs_tol=smallest)
        for one, other in zip(numbers, expected, strict=True)
    )


def _describe(numbers: tuple[float, ...], tensor: StoredTensor) -> str:
    """Returns which base a table is of: b = f_last^(-P/(P-1)), as the last pair says it most exactly."""
    pairs = len(numbers)
    if pairs < 2:
        return f"of shape {list(tensor.shape)}"
    if not 0 < numbers[-1] < 1:
        return "of no base"
    return f"of base {numbers[-1] ** (-pairs / (pairs - 1)):.5g} ({pairs} pairs)"
