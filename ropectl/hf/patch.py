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

from ropectl.errors import PatchError, UnsupportedModelError
from ropectl.hf.config_writer import merge_block
from ropectl.hf.families import NON_TEXT_PARTS
from ropectl.hf.geometry import describe_rope
from ropectl.rope.frequencies import RopeFrequencies
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.method import RopeConfigPatch, ScalingMethod

#: Largest accepted relative difference between a float32 buffer and the float64 formula. The float32
#: arithmetic of transformers' llama3 is off by up to 6e-6 (head_dim 80, factor 128), all else by less than
#: 2e-6; another method, base or length differs by far more.
INV_FREQ_TOLERANCE = 1e-5
ATTENTION_FACTOR_TOLERANCE = 1e-6

_TORCH_STATE = ("training",)

#: Where a patched rotary module keeps the geometry it had before: its config then describes the patch.
_GEOMETRY = "_ropectl_geometry"


def text_config(model: nn.Module) -> Any:
    """Returns the config object that the model's text part reads."""
    config: Any = model.config
    return config.get_text_config(decoder=True) if hasattr(config, "get_text_config") else config


def rotary_module(model: nn.Module) -> Any:
    """Returns the one module that turns positions into cos and sin for the whole text model.

    Raises:
        UnsupportedModelError: If there is none, or several, or one with a table per layer type.
    """
    found: dict[int, tuple[str, nn.Module]] = {}
    for name, module in model.named_modules():
        if "RotaryEmbedding" not in type(module).__name__ or any(part in name for part in NON_TEXT_PARTS):
            continue
        if any(attribute.endswith("original_inv_freq") for attribute in (*vars(module), *module._buffers)):
            found[id(module)] = (name, module)
    kind = type(model).__name__
    if not found:
        raise UnsupportedModelError(
            f"{kind} has no rotary position embedding of the kind that transformers 5 rebuilds."
        )
    if len(found) > 1:
        names = ", ".join(sorted(name for name, _ in found.values()))
        raise UnsupportedModelError(f"{kind} has several rotary modules ({names}); which one to scale is not known.")
    module = next(iter(found.values()))[1]
    if not hasattr(module, "inv_freq"):
        raise UnsupportedModelError(f"{kind} keeps one rotary table per layer type; such models are not supported yet.")
    return module


def verify_rope(model: nn.Module, expected: RopeFrequencies) -> float:
    """Checks that the live rotary module holds ``expected``; returns the largest relative difference of a frequency.

    To be called after everything that may touch buffers: loading, casting, moving, wrapping. It finds
    buffers that were rounded to half precision or left uninitialised, which raise no error by themselves.

    Raises:
        PatchError: Naming the first difference.
    """
    module = rotary_module(model)
    inv_freq = module.inv_freq
    if inv_freq.dtype != torch.float32:
        raise PatchError(
            f"The rotary frequencies are {inv_freq.dtype}, not float32: positions past a few hundred tokens would be wrong.",
            "Load with dtype= instead of casting the model, or apply the method after the cast.",
        )
    if inv_freq.numel() != len(expected.inv_freq):
        raise PatchError(f"The model rotates {inv_freq.numel()} pairs, the method computed {len(expected.inv_freq)}.")
    actual = inv_freq.detach().double().cpu()
    wanted = torch.tensor(expected.inv_freq, dtype=torch.float64)
    error = torch.where(wanted == 0, actual.abs(), (actual - wanted).abs() / wanted)
    worst = int(error.nan_to_num(nan=torch.inf).argmax())
    if not error[worst] <= INV_FREQ_TOLERANCE:
        raise PatchError(
            f"Rotary pair {worst} turns by {actual[worst]:.9g} radians a token, but the method computes {wanted[worst]:.9g} "
            f"(relative difference {error[worst]:.2g}, allowed {INV_FREQ_TOLERANCE:g})."
        )
    scaling = float(module.attention_scaling)
    if not abs(scaling - expected.attention_factor) <= ATTENTION_FACTOR_TOLERANCE:
        raise PatchError(
            f"The model's attention factor is {scaling:.9g}, but the method computes {expected.attention_factor:.9g}."
        )
    return float(error[worst])


@dataclass
class PatchReport:
    """What :func:`apply_rope` did, and the way back. As a context manager it undoes the patch on exit.

    Attributes:
        method: The applied method.
        geometry: What the model was trained with.
        patch: The config that is now in force.
        frequencies: What was verified in the live module.
    """

    method: ScalingMethod
    geometry: RopeGeometry
    patch: RopeConfigPatch
    frequencies: RopeFrequencies
    _model: nn.Module
    _saved: _RotaryState

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
    model: nn.Module, method: ScalingMethod, *, geometry: RopeGeometry | None = None, seq_len: int | None = None
) -> PatchReport:
    """Makes a live model compute its rotations by ``method``, verified and undoable.

    Args:
        model: A transformers model, already in its final dtype (casting later would round the buffers).
        method: The method to apply, in place of whatever scaling the model has.
        geometry: What the model was trained with; by default that of an earlier patch, else its config's.
        seq_len: Freeze a length-dependent method at this length [tokens]. Without it such a method is
            applied in its native form, whose results depend on the order of the inputs.

    Returns:
        A report that undoes the change: ``with apply_rope(model, method): ...`` or ``report.undo()``.

    Raises:
        UnsupportedModelError: If the model has no single rotary module.
        PatchError: If the rebuilt module does not hold what the method computes; the model is then
            as it was before.
    """
    if geometry is None:
        geometry = getattr(rotary_module(model), _GEOMETRY, None)
    if geometry is None:
        geometry = describe_rope(model.config.to_dict()).geometry  # type: ignore[union-attr, operator]
    patch = method.config_patch(geometry, seq_len)
    frequencies = method.frequencies(geometry, seq_len)
    saved = _RotaryState.of(model)
    try:
        setattr(rotary_module(model), _GEOMETRY, geometry)
        _write_config(model, patch)
        _rebuild(rotary_module(model), text_config(model))
        verify_rope(model, frequencies)
    except Exception as error:
        saved.restore(model)
        if isinstance(error, PatchError):
            raise
        raise PatchError(f"{method} cannot be applied to {type(model).__name__}: {error}") from error
    return PatchReport(method, geometry, patch, frequencies, model, saved)


def _write_config(model: nn.Module, patch: RopeConfigPatch) -> None:
    config = text_config(model)
    config.rope_parameters = merge_block(config.rope_parameters or {}, patch)
    config.max_position_embeddings = patch.max_position_embeddings
    if getattr(config, "head_dim", 0) is None:  # yarn and dynamic multiply it without a fallback
        config.head_dim = config.hidden_size // config.num_attention_heads


def _rebuild(module: Any, config: Any) -> None:
    """Gives ``module`` the state of a fresh one; the object, its hooks and its device stay."""
    device = module.inv_freq.device
    fresh = type(module)(config=config).to(device)
    for name in _plain_attributes(module):
        delattr(module, name)
    module._buffers.clear()
    module._non_persistent_buffers_set = set(fresh._non_persistent_buffers_set)
    for name, buffer in fresh._buffers.items():
        module._buffers[name] = buffer
    for name in _plain_attributes(fresh):
        setattr(module, name, getattr(fresh, name))


def _plain_attributes(module: nn.Module) -> list[str]:
    return [
        name for name in vars(module) if not name.startswith("_") and name not in _TORCH_STATE and name != "forward"
    ]


@dataclass(frozen=True)
class _RotaryState:
    """Everything that :func:`apply_rope` changes, as it was."""

    config_values: dict[str, Any]
    buffers: dict[str, torch.Tensor]
    attributes: dict[str, Any]
    geometry: RopeGeometry | None

    @classmethod
    def of(cls, model: nn.Module) -> _RotaryState:
        module, config = rotary_module(model), text_config(model)
        names = ("rope_parameters", "max_position_embeddings", "head_dim")
        values = {name: copy.deepcopy(getattr(config, name)) for name in names if hasattr(config, name)}
        attributes = {name: getattr(module, name) for name in _plain_attributes(module)}
        return cls(values, dict(module._buffers), attributes, getattr(module, _GEOMETRY, None))

    def restore(self, model: nn.Module) -> None:
        module, config = rotary_module(model), text_config(model)
        for name, value in self.config_values.items():
            setattr(config, name, copy.deepcopy(value))
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
