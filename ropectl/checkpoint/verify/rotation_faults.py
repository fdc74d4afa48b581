"""What programs get wrong about a scaling, as methods on geometries."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from ropectl.checkpoint.verify.rotation import Rotation, changed, divided, with_attention
from ropectl.rope.frequencies import yarn_attention_factor
from ropectl.rope.method import MAX_FACTOR
from ropectl.rope.methods.none import NoScaling
from ropectl.rope.registry import find_method

#: The base of programs that do not find one.
FALLBACK_THETA = 10_000.0

#: Attention factors closer than this are one, rounded [relative].
_SAME_FACTOR = 1e-3

#: Static methods that programs compute in place of one another, with the same factor.
_OTHER_TYPES = {"pi": "linear", "ntk": "NTK-aware", "ntk-by-parts": "by parts", "yarn": "yarn", "llama3": "llama3"}


def faults(meant: Rotation, target: int) -> Iterator[tuple[str, str, Rotation]]:
    """Yields code, text and rotation of every fault that a method can suffer; some may rotate as others do.

    Args:
        meant: What was meant.
        target: The context that is meant to work [tokens].
    """
    method, geometry = meant.method, meant.geometry
    trained, base = geometry.original_max_position_embeddings, geometry.rope_theta
    none, factor = NoScaling(), getattr(method, "factor", None)
    yield from _attention_faults(meant, target)
    if base != FALLBACK_THETA:
        dropped = replace(geometry, rope_theta=FALLBACK_THETA)
        text = f"base {FALLBACK_THETA:g} in place of {base:g}"
        yield "theta-dropped", text, Rotation(method, dropped)
        if factor is not None:
            yield "unscaled-theta-dropped", f"no scaling, and {text}", Rotation(none, dropped)
    if target > trained:
        ignored = replace(geometry, original_max_position_embeddings=target)
        yield "original-length-ignored", f"trained length {target} in place of {trained}", Rotation(method, ignored)
    if factor is None or factor <= 1:
        return
    ratio = target / trained
    if ratio != factor and ratio > 1:
        text = f"factor {ratio:g} = {target}/{trained} in place of {factor:g}"
        yield "factor-overwritten", text, Rotation(changed(method, factor=ratio), geometry)
    if factor * factor <= MAX_FACTOR:
        text = f"factor {factor * factor:g}: {factor:g} applied twice"
        yield "factor-twice", text, Rotation(changed(method, factor=factor * factor), geometry)
    for name, words in _OTHER_TYPES.items():
        if name != method.name:
            other = find_method(name).create({"factor": factor})
            yield f"type-{name}", f"{words} scaling by {factor:g}", Rotation(other, geometry)


def _attention_faults(meant: Rotation, target: int) -> Iterator[tuple[str, str, Rotation]]:
    """Yields what differs in the attention factor A alone."""
    found = meant.frequencies(target)
    factor, own = getattr(meant.method, "factor", None) or 1.0, found.attention_factor
    if own != 1.0:
        yield "attention-factor-missing", "attention factor 1", with_attention(meant, 1.0, target)
        text = f"attention factor {own * own:.4g}: {own:.4g} applied twice"
        yield "attention-factor-twice", text, with_attention(meant, own * own, target)
        kept = Rotation(divided(NoScaling().frequencies(meant.geometry), meant.geometry, own), meant.geometry)
        yield "attention-factor-only", "unscaled frequencies with the attention factor", kept
    yarn = yarn_attention_factor(factor)
    for value in sorted({yarn, own * yarn}):
        if any(math.isclose(value, other, rel_tol=_SAME_FACTOR) for other in (own, own * own, 1.0)):
            continue  # configs hold rounded factors
        text = f"attention factor {value:.4g} in place of {own:.4g}"
        yield "attention-factor-misread", text, with_attention(meant, value, target)
