"""Computes the frequencies of a converted file, by architecture."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from ropectl.records import Problem
from ropectl.rope.frequencies import yarn_attention_factor
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.methods.yarn import blend_by_index
from ropectl.runtimes import tables
from ropectl.runtimes.gguf.traits import Traits
from ropectl.runtimes.tables import Table
from ropectl.runtimes.transformers_versions.model_types import FALLBACK_THETA
from ropectl.runtimes.views import ORIGINAL, CannotLoadError, View

#: What the converter takes for missing keys of a llama3 block.
_LLAMA3_DEFAULTS = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, ORIGINAL: 8192}

#: The ramp that the loader computes for yarn, whatever the file says, where an architecture does not read it.
_FAST, _SLOW = 32.0, 1.0

#: The only block with ``alpha`` that the converter takes, and the context that it then declares [tokens].
_ALPHA, ALPHA_CONTEXT = 1000.0, 262_144


def table_of(view: View, traits: Traits) -> Table:
    """Returns the table of a converted file.

    Args:
        view: The config as the converter reads it.
        traits: How its architecture is converted and loaded.

    Raises:
        CannotLoadError: If it does not convert, or the file does not load.
    """
    rope_type = view.rope_type or "default"
    if traits.only_types is not None and rope_type not in traits.only_types:
        raise CannotLoadError(f"does not convert rope_type {rope_type!r} for this architecture")
    if traits.needs_mscale and view.block.get("mscale_all_dim") is None:
        raise CannotLoadError("does not convert: no mscale_all_dim")
    if not traits.keeps_base and view.theta != FALLBACK_THETA:
        dropped = f"does not write the base of this architecture: {FALLBACK_THETA:g} in place of {view.theta:g}"
        view = replace(view, theta=FALLBACK_THETA, causes=(*view.causes, Problem("theta-dropped", dropped)))
    if traits.all_linear and view.block.get("factor") is not None:
        red = Problem("unscaled-in-gguf", f"writes any factor of this architecture as a linear one, not {rope_type}")
        return replace(tables.linear(view), causes=(red,), attention_causes=(red,))
    if rope_type not in ("default", "llama3") and not traits.keeps_scaling:
        return _unscaled(view, f"converts {rope_type} unscaled for this architecture, without a message")
    handler = _TYPES.get(rope_type)
    if handler is None:
        return _unscaled(view, f"converts rope_type {rope_type!r} unscaled, with a warning")
    return handler(view, traits)


def loader_attention_factor(factor: float, mscale_all_dim: float | None, traits: Traits) -> float:
    """Returns the attention factor that the loader makes of a yarn factor, where no key of the file multiplies it."""
    own = yarn_attention_factor(factor)
    if traits.latent and mscale_all_dim:  # takes mscale for the same
        return 1.0
    return own / yarn_attention_factor(factor, mscale_all_dim) if traits.reads_mscales and mscale_all_dim else own


def _unscaled(view: View, why: str) -> Table:
    red = Problem("unscaled-in-gguf", why)
    return replace(tables.default(view), causes=(red,), attention_causes=(red,))


def _softmax(traits: Traits, attention_factor: float) -> tuple[Problem, ...]:
    """Returns the red line about the softmax scale of a latent attention, if an attention factor changes it."""
    if not traits.latent or attention_factor == 1.0:
        return ()
    return (
        Problem("softmax-scale", f"multiplies the softmax scale by {attention_factor**2:.4f} more than transformers"),
    )


def _linear(view: View, traits: Traits) -> Table:
    factor = view.block.get("factor")
    if factor is None:
        return _unscaled(view, "linear without factor: unscaled")
    return replace(tables.linear(view), problems=_softmax(traits, yarn_attention_factor(factor)))


def _dynamic(view: View, traits: Traits) -> Table:
    if not traits.alpha:
        return _unscaled(view, "converts dynamic unscaled, without a message")
    expected = (_ALPHA, FALLBACK_THETA, 128)
    if (view.block.get("alpha"), view.theta, view.rotary_dim) != expected or view.max_positions not in (
        32_768,
        ALPHA_CONTEXT,
    ):
        raise CannotLoadError(
            f"does not convert: dynamic only with alpha {_ALPHA:g}, base {FALLBACK_THETA:g}, heads of 128, 32768 or "
            f"{ALPHA_CONTEXT} tokens"
        )
    return tables.ntk_static(view, _ALPHA)


def _llama3(view: View, traits: Traits) -> Table:
    if isinstance(traits.llama3, str):
        raise CannotLoadError(traits.llama3)
    if not traits.llama3:
        return _unscaled(view, "converts llama3 unscaled for this architecture, without a message")
    return tables.llama3(view, _LLAMA3_DEFAULTS)


def _yarn(view: View, traits: Traits) -> Table:
    factor = view.block.get("factor")
    if factor is None:
        return _unscaled(view, "converts yarn without factor unscaled")
    original = view.block.get(ORIGINAL)
    if original is None:
        raise CannotLoadError(f"does not convert: yarn without {ORIGINAL}")
    if traits.norm_after:
        attention = tables.yarn_attention(view.block, factor)
    else:
        attention = tables.yarn_attention(view.block, factor, absolute=False, mscales=traits.reads_mscales)
        own = loader_attention_factor(factor, view.block.get("mscale_all_dim"), traits)
        attention = (own, attention[1])
    loaded, causes = _loaded_ramp(view, original, factor, traits)
    table = tables.yarn(loaded, original, factor, attention, True, causes)
    return replace(table, problems=_softmax(traits, attention[0]))


def _loaded_ramp(view: View, original: int, factor: float, traits: Traits) -> tuple[View, tuple[Problem, ...]]:
    """Returns the view without the keys of the ramp that are not read, and those that change a number."""
    block = dict(view.block)
    fast, slow = block.get("beta_fast") or _FAST, block.get("beta_slow") or _SLOW
    causes = []
    if not traits.reads_betas:
        if (fast, slow) != (_FAST, _SLOW):
            causes.append(Problem("betas-ignored", f"loads {_FAST:g} and {_SLOW:g} in place of {fast:g} and {slow:g}"))
        block = {key: value for key, value in block.items() if key not in ("beta_fast", "beta_slow")}
    if not block.get("truncate", True):
        geometry = RopeGeometry(view.rotary_dim, view.theta, int(original))
        rounded, exact = (blend_by_index(geometry, factor, fast, slow, truncate) for truncate in (True, False))
        if rounded != exact:
            causes.append(Problem("truncate-ignored", "does not read truncate: rounds the ramp"))
    return replace(view, block=block), tuple(causes)


def _longrope(view: View, traits: Traits) -> Table:
    if not traits.longrope:
        return _unscaled(view, "converts longrope without its lists: unscaled, without a message")
    original = view.required(ORIGINAL)
    factor = tables.su_attention(view.max_positions / original, original)
    given = view.block.get("attention_factor")
    ignored = Problem("attention-factor-ignored", f"does not read attention_factor = {given:g}") if given else None
    red = Problem("static-per-server", "longrope is decided once, by the context size that the server is given")
    is_long = view.max_positions > original
    return tables.longrope(view, lambda seq_len: is_long, factor, (red,), (ignored,) if ignored else ())


def _proportional(view: View, traits: Traits) -> Table:
    if not traits.proportional:
        return _unscaled(view, "converts proportional for this architecture with all pairs turning, with a warning")
    return tables.proportional(view, reads_factor=False)


_TYPES: Mapping[str, Callable[[View, Traits], Table]] = {
    "default": lambda view, traits: tables.default(view),
    "linear": _linear,
    "dynamic": _dynamic,
    "llama3": _llama3,
    "yarn": _yarn,
    "longrope": _longrope,
    "proportional": _proportional,
}
