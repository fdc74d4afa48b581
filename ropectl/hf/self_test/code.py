"""Gets the rotary code that a model really runs: its own rotary module and its own apply function, without weights.

The model is built from its config with parameters that take no memory (meta device); only the rotary
module is real, and is scaled through :func:`ropectl.hf.model.patch.apply_rope` like that of any live model.
Legend: H vectors, T positions, P rotary pairs, 2P channels that rotate.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from ropectl.errors import UnsupportedModelError
from ropectl.hf.config.families import NON_TEXT_PARTS
from ropectl.hf.model.model_class import bare_model
from ropectl.hf.model.rotary import rotary_module, text_config
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.methods.none import NoScaling

#: The arguments that an apply function of the stock kind begins with.
_ARGUMENTS = ["q", "k", "cos", "sin"]


@dataclass(frozen=True)
class RotaryCode:
    """A model's rotary module and apply function.

    Attributes:
        model: The model; everything but its rotary module is on the meta device.
        apply: Its function of (q, k, cos, sin).
        table_dtype: The type that cos and sin are rounded to before they are used; float32 changes nothing.
    """

    model: nn.Module
    apply: Callable[..., tuple[torch.Tensor, torch.Tensor]]
    table_dtype: torch.dtype = torch.float32

    @property
    def name(self) -> str:
        """The module and name of the apply function."""
        return f"{self.apply.__module__}.{self.apply.__name__}"

    @property
    def module(self) -> Any:
        """The live rotary module."""
        return rotary_module(self.model)

    @property
    def width(self) -> int:
        """2P, the channels that rotate."""
        return 2 * int(self.module.inv_freq.numel())

    def rotate(self, q: torch.Tensor, k: torch.Tensor, positions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns queries and keys, each at every position.

        Args:
            q: (H, 2P) float32.
            k: (H, 2P) float32.
            positions: (T,) [tokens].

        Returns:
            Two tensors (H, T, 2P), float64 for sums that add no rounding of their own.
        """
        cos, sin = self.module(q.new_empty(1), positions[None])
        cos, sin = (table.to(self.table_dtype).to(q.dtype) for table in (cos, sin))
        shape = (1, len(q), len(positions), q.shape[-1])
        wide = (vectors[None, :, None].expand(shape).contiguous() for vectors in (q, k))
        queries, keys = self.apply(*wide, cos, sin)
        return queries[0].double(), keys[0].double()

    def scores(
        self, q: torch.Tensor, k: torch.Tensor, query_positions: torch.Tensor, key_positions: torch.Tensor
    ) -> torch.Tensor:
        """Returns the score of each query and key, rotated to their positions, shape (H, T) float64."""
        queries, keys = self.rotate(q, k, query_positions)[0], self.rotate(q, k, key_positions)[1]
        return (queries * keys).sum(-1)


def rotary_code(config: Any, trust_remote_code: bool = False) -> RotaryCode:
    """Returns the rotary code of the model class that a config names; no weight is read or made.

    Args:
        config: A transformers config.
        trust_remote_code: Run modelling code that comes with the checkpoint.

    Raises:
        UnsupportedModelError: If its rotation is not a function of (q, k, cos, sin).
        ConfigError: If the class cannot be built from the config.
    """
    model: nn.Module = bare_model(config, torch.float32, remote_code=trust_remote_code).eval()
    give_tables(model)
    return RotaryCode(model, _apply_function(model))


def llama_config(geometry: RopeGeometry) -> Any:
    """Returns the config of a LLaMA with one small layer and this geometry."""
    from transformers import LlamaConfig

    return LlamaConfig(
        vocab_size=8,
        hidden_size=geometry.rotary_dim,
        intermediate_size=8,
        num_hidden_layers=1,
        num_attention_heads=1,
        head_dim=geometry.rotary_dim,
        max_position_embeddings=geometry.original_max_position_embeddings,
        rope_parameters=NoScaling().config_patch(geometry).rope_parameters,
    )


def built_in(code: RotaryCode, dtype: torch.dtype) -> nn.Module:
    """Returns the model as loading with ``dtype=`` builds it: made under that default type, not cast afterwards."""
    with _default_dtype(dtype):
        with torch.device("meta"):
            model: nn.Module = type(code.model)(copy.deepcopy(code.model.config))
        give_tables(model)
    return model


def give_tables(model: nn.Module) -> None:
    """Replaces the rotary tables of a model without memory by those that its config computes."""
    module = rotary_module(model)
    fresh = type(module)(config=text_config(model))
    module._buffers.update(fresh._buffers)


@contextmanager
def _default_dtype(dtype: torch.dtype) -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def _apply_function(model: nn.Module) -> Callable[..., Any]:
    """Returns the function that the attention of a model calls to rotate queries and keys.

    It is found by the names in the code of its ``forward``. Of several, those for interleaved channels are used
    where the config says ``rope_interleave``.
    """
    kind = type(model).__name__
    for path, module in model.named_modules():
        if "Attention" not in type(module).__name__ or any(part in path for part in NON_TEXT_PARTS):
            continue
        forward = inspect.unwrap(type(module).forward)
        names = [name for name in forward.__code__.co_names if name.startswith("apply_") and "rot" in name]
        found = {name: forward.__globals__[name] for name in names if callable(forward.__globals__.get(name))}
        if len(found) > 1:
            interleave = bool(getattr(text_config(model), "rope_interleave", False))
            found = {name: function for name, function in found.items() if ("interleave" in name) == interleave}
        for function in found.values():
            arguments = list(inspect.signature(function).parameters)[:4]
            if arguments != _ARGUMENTS:
                raise UnsupportedModelError(
                    f"{kind} rotates with {function.__name__}({', '.join(arguments)}, ...), which is not a function of "
                    "query, key, cos and sin: its self-test is not possible."
                )
            return function  # type: ignore[no-any-return]
    raise UnsupportedModelError(f"No attention of {kind} names a function that rotates: its self-test is not possible.")
