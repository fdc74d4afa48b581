"""Applies a scaling method to a live model through the one seam that transformers offers: its config.

The rotary part of the config is rewritten, the shared rotary module is rebuilt from it exactly as
``from_pretrained`` would build it, and what it then holds is read back and compared with the method.
No ``forward`` is replaced, so what is evaluated is what a saved config computes.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import torch
from torch import nn

from ropectl.errors import PatchError
from ropectl.hf.config.family_patch import family_patch
from ropectl.hf.config.geometry import describe_rope
from ropectl.hf.config.layers import choose_layer_type
from ropectl.hf.config.writer import merge_parameters
from ropectl.hf.model.rotary import (
    rotary_module,
    rotary_modules,
    table_names,
    text_config,
    text_config_values,
    verify_rope,
)
from ropectl.hf.model.softmax_scale import latent_layers, set_scales
from ropectl.rope.config_patch import RopeConfigPatch
from ropectl.rope.frequencies import RopeFrequencies
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.method import ScalingMethod

#: What of a module is torch's own, or belongs to whoever wrapped it.
_NOT_ITS_STATE = ("training", "forward")

#: Where a patched rotary module keeps the geometry it had before, by layer type: its config then describes
#: the patch.
_GEOMETRY = "_ropectl_geometry"

#: The keys of a config that a patch may change.
_CONFIG_KEYS = ("rope_parameters", "max_position_embeddings", "original_max_position_embeddings")


@dataclass
class PatchReport:
    """The changes that :func:`apply_rope` made, and the way back. As a context manager it undoes them on exit.

    Attributes:
        method: The applied method.
        geometry: What the model was trained with.
        patch: The config that is now in force.
        frequencies: What was verified in the live module.
        layer_type: The layer type that was patched; None where all layers share one table.
    """

    method: ScalingMethod
    geometry: RopeGeometry
    patch: RopeConfigPatch
    frequencies: RopeFrequencies
    _model: nn.Module
    _saved: _RotaryState
    layer_type: str | None = None

    def undo(self) -> None:
        """Restores config and rotary module exactly as they were before."""
        self._saved.restore(self._model)

    def __enter__(self) -> PatchReport:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.undo()


def apply_rope(
    model: nn.Module,
    method: ScalingMethod,
    *,
    geometry: RopeGeometry | None = None,
    seq_len: int | None = None,
    layers: str | None = None,
) -> PatchReport:
    """Makes a live model compute its rotations by ``method``, verified and undoable.

    Args:
        model: A transformers model, already in its final dtype (casting later would round the buffers).
        method: The method to apply, replacing any scaling that the model has.
        geometry: What the model was trained with; by default that of an earlier patch, else its config's.
        seq_len: Freeze a length-dependent method at this length [tokens]. Without it such a method is
            applied in its native form, whose results depend on the order of the inputs.
        layers: The layer type to scale, where each has its own table; by default the one that sees the whole
            context. The others stay as they are.

    Returns:
        A report that undoes the change: ``with apply_rope(model, method): ...`` or ``report.undo()``.

    Raises:
        ConfigError: If ``layers`` names a layer type that the model does not have.
        UnsupportedModelError: If the model has no rotary module that a config rebuilds.
        PatchError: If the rebuilt module does not hold what the method computes; the model is then
            as it was before.
    """
    first = rotary_module(model)
    section = text_config_values(model)
    layer_type = choose_layer_type(section, layers)
    geometry = geometry or getattr(first, _GEOMETRY, {}).get(layer_type)
    if geometry is None:
        geometry = describe_rope(section, layers=layer_type).geometry
    patch = family_patch(method, geometry, section, seq_len)
    frequencies = method.frequencies(geometry, seq_len)
    saved = _RotaryState.of(model)
    try:
        setattr(first, _GEOMETRY, {**getattr(first, _GEOMETRY, {}), layer_type: geometry})
        _write_config(model, patch, layer_type)
        for module in rotary_modules(model):
            _rebuild(module, text_config(model))
        set_scales(model)
        verify_rope(model, frequencies, layer_type)
        _check_others(first, saved.modules[0][1].buffers, layer_type)
    except Exception as error:
        saved.restore(model)
        if isinstance(error, PatchError):
            raise
        raise PatchError(f"{method} cannot be applied to {type(model).__name__}: {error}") from error
    return PatchReport(method, geometry, patch, frequencies, model, saved, layer_type)


def _write_config(model: nn.Module, patch: RopeConfigPatch, layer_type: str | None) -> None:
    config = text_config(model)
    config.rope_parameters = merge_parameters(config.rope_parameters or {}, patch, layer_type)
    config.max_position_embeddings = patch.max_position_embeddings
    length = patch.rope_parameters.get("original_max_position_embeddings")
    if length is not None and layer_type is None and hasattr(config, "original_max_position_embeddings"):
        config.original_max_position_embeddings = length  # where it is there, it wins over the block
    if _lacks_head_dim(config):
        config.head_dim = config.hidden_size // config.num_attention_heads


def _lacks_head_dim(config: Any) -> bool:
    """Returns whether ``head_dim`` is null, which some types of scaling multiply without a fallback."""
    return vars(config).get("head_dim", 0) is None


def _check_others(module: nn.Module, before: dict[str, torch.Tensor], layer_type: str | None) -> None:
    """Checks that the tables of other layer types are as they were."""
    for name in table_names(module):
        is_patched = layer_type is None or name == f"{layer_type}_inv_freq"
        old, new = before[name], module._buffers[name]
        if not is_patched and new is not None and not new.is_meta and not torch.equal(new.to(old.dtype), old):
            raise PatchError(f"The table {name} of other layers would change too.")


def _rebuild(module: Any, config: Any) -> None:
    """Gives ``module`` the state of a fresh one; the object, its hooks and its device stay."""
    device = next(iter(module._buffers.values())).device
    fresh = type(module)(config=config).to(device)
    for name in _plain_attributes(module):
        delattr(module, name)
    module._buffers.clear()
    module._non_persistent_buffers_set = set(fresh._non_persistent_buffers_set)
    module._buffers.update(fresh._buffers)
    for name in _plain_attributes(fresh):
        setattr(module, name, getattr(fresh, name))


def _plain_attributes(module: nn.Module) -> list[str]:
    return [name for name in vars(module) if not name.startswith("_") and name not in _NOT_ITS_STATE]


@dataclass(frozen=True)
class _ModuleState:
    """The state of a rotary module before a patch."""

    buffers: dict[str, torch.Tensor]
    attributes: dict[str, Any]
    geometry: dict[str | None, RopeGeometry] | None

    @classmethod
    def of(cls, module: Any) -> _ModuleState:
        attributes = {name: getattr(module, name) for name in _plain_attributes(module)}
        return cls(dict(module._buffers), attributes, getattr(module, _GEOMETRY, None))

    def restore(self, module: Any) -> None:
        for name in _plain_attributes(module):
            delattr(module, name)
        for name, value in self.attributes.items():
            setattr(module, name, value)
        module._buffers.clear()
        module._buffers.update(self.buffers)
        if self.geometry is None:
            vars(module).pop(_GEOMETRY, None)
        else:
            setattr(module, _GEOMETRY, self.geometry)


@dataclass(frozen=True)
class _RotaryState:
    """The state before a patch of everything that :func:`apply_rope` changes."""

    config_values: dict[str, Any]
    modules: list[tuple[Any, _ModuleState]]
    softmax_scales: list[tuple[Any, float]]

    @classmethod
    def of(cls, model: nn.Module) -> _RotaryState:
        config = text_config(model)
        values = {name: copy.deepcopy(getattr(config, name)) for name in _CONFIG_KEYS if hasattr(config, name)}
        if _lacks_head_dim(config):
            values["head_dim"] = None
        states = [(module, _ModuleState.of(module)) for module in rotary_modules(model)]
        return cls(values, states, [(layer, layer.scaling) for layer in latent_layers(model)])

    def restore(self, model: nn.Module) -> None:
        config = text_config(model)
        for name in set(_CONFIG_KEYS) & vars(config).keys() - self.config_values.keys():
            delattr(config, name)  # some classes write a key of their own from the block when they are saved
        for name, value in self.config_values.items():
            setattr(config, name, copy.deepcopy(value))
        for module, state in self.modules:
            state.restore(module)
        for layer, scale in self.softmax_scales:
            layer.scaling = scale
