"""The readings of a checkpoint that a program may compute: as meant, and every fault that is known.

A fault is written as a method on a geometry, or as the table that a runtime's rules make of the config. What rotates
exactly as another reading does is listed once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from ropectl.errors import ConfigError
from ropectl.records import RuntimeReading
from ropectl.rope.frequencies import RopeFrequencies, divisors, yarn_attention_factor
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.method import ScalingMethod
from ropectl.rope.methods.longrope import LongRope
from ropectl.rope.methods.none import NoScaling
from ropectl.rope.registry import find_method
from ropectl.runtimes.judge import DEVIATION_TOLERANCE, relative_difference
from ropectl.runtimes.matrix import read_all
from ropectl.runtimes.runtime import CheckpointFacts

AS_MEANT = "as-meant"

#: The base of programs that do not find one.
FALLBACK_THETA = 10_000.0

#: Attention factors closer than this are one, rounded [relative].
_SAME_FACTOR = 1e-3

#: Static methods that programs compute in place of one another, with the same factor.
_OTHER_TYPES = {"pi": "linear", "ntk": "NTK-aware", "ntk-by-parts": "by parts", "yarn": "yarn", "llama3": "llama3"}


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


@dataclass(frozen=True)
class KnownReading:
    """A reading of a checkpoint.

    Attributes:
        code: Stable name, such as ``unscaled``; that of a runtime's red line where its rules make it.
        text: What is computed, in a few words.
        below: How sequences up to the trained length are rotated.
        beyond: How longer ones are.
        runtimes: The versions of runtimes whose rules make it.
    """

    code: str
    text: str
    below: Rotation
    beyond: Rotation
    runtimes: tuple[str, ...] = ()

    def rotation(self, num_tokens: int, trained: int) -> Rotation:
        """Returns how a sequence of so many tokens is rotated, on a model with this trained length."""
        return self.below if num_tokens <= trained else self.beyond


def known_readings(
    method: ScalingMethod,
    geometry: RopeGeometry,
    target: int,
    lengths: Sequence[int],
    facts: CheckpointFacts | None = None,
    others: Iterable[tuple[str, str, ScalingMethod, RopeGeometry]] = (),
    is_latent: bool = False,
) -> list[KnownReading]:
    """Returns the readings that differ from one another, the one that was meant first.

    Args:
        method: What was meant.
        geometry: What the model was trained with.
        target: The context that is meant to work [tokens].
        lengths: Lengths of the sequences that are asked for [tokens].
        facts: The config, for the rules of runtimes; None where there is none.
        others: Further readings, each as code, text, method and geometry.
        is_latent: Whether attention is latent: its softmax scale follows the type of the block, so that a table in a
            block of another type would be computed with another scale.
    """
    meant = Rotation(method, geometry)
    unscaled = Rotation(NoScaling(), geometry)
    found = [
        KnownReading(AS_MEANT, "as the config means it", meant, meant),
        KnownReading("unscaled", "no scaling at all", unscaled, unscaled),
        *_lists(meant, lengths),
    ]
    keys = ((code, text, Rotation(other, its_geometry)) for code, text, other, its_geometry in others)
    found += [KnownReading(code, text, each, each) for code, text, each in (*_faults(meant, target), *keys)]
    if facts is not None:
        found += _of_runtimes(geometry, lengths, facts)
    if is_latent:
        found = [each for each in found if type(each.beyond.method) in (type(method), NoScaling)]
    return _distinct(found, lengths, geometry.original_max_position_embeddings)


def _faults(meant: Rotation, target: int) -> Iterator[tuple[str, str, Rotation]]:
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
        yield "factor-overwritten", text, Rotation(_changed(method, factor=ratio), geometry)
    text = f"factor {factor * factor:g}: {factor:g} applied twice"
    yield "factor-twice", text, Rotation(_changed(method, factor=factor * factor), geometry)
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
        kept = Rotation(_divided(NoScaling().frequencies(meant.geometry), meant.geometry, own), meant.geometry)
        yield "attention-factor-only", "unscaled frequencies with the attention factor", kept
    yarn = yarn_attention_factor(factor)
    for value in sorted({yarn, own * yarn}):
        if any(math.isclose(value, other, rel_tol=_SAME_FACTOR) for other in (own, own * own, 1.0)):
            continue  # configs hold rounded factors
        text = f"attention factor {value:.4g} in place of {own:.4g}"
        yield "attention-factor-misread", text, with_attention(meant, value, target)


def with_attention(rotation: Rotation, factor: float, length: int) -> Rotation:
    """Returns a rotation with another attention factor, in the method's own words where it has some."""
    if "attention_factor" in type(rotation.method).model_fields:
        return replace(rotation, method=_changed(rotation.method, attention_factor=factor))
    return replace(rotation, method=_divided(rotation.frequencies(length), rotation.geometry, factor))


def _changed(method: ScalingMethod, **changes: float) -> ScalingMethod:
    return type(method).create({**method.model_dump(exclude_defaults=True), **changes})


def _divided(frequencies: RopeFrequencies, geometry: RopeGeometry, attention_factor: float | None = None) -> LongRope:
    """Returns any frequencies as divisors of the trained ones, at every length.

    Raises:
        MethodError: If a pair turns that never turned in training.
    """
    given = frequencies.attention_factor if attention_factor is None else attention_factor
    shares = list(divisors(geometry, frequencies))
    return LongRope.create({"factor": 1.0, "long_factor": shares, "attention_factor": given})


def _lists(meant: Rotation, lengths: Sequence[int]) -> list[KnownReading]:
    """Returns, for a method that follows the length, its table of one length at every length."""
    if not meant.method.depends_on_seq_len:
        return []
    found, trained = [], meant.geometry.original_max_position_embeddings
    for length in sorted({min(trained, *lengths), *lengths}):
        table = Rotation(_divided(meant.frequencies(length), meant.geometry), meant.geometry)
        side = "up to the trained length" if length <= trained else f"for {length} tokens"
        found.append(KnownReading("static-per-server", f"the table {side} at every length", table, table))
    return found


def _of_runtimes(geometry: RopeGeometry, lengths: Sequence[int], facts: CheckpointFacts) -> Iterator[KnownReading]:
    """Yields what the rules of each version of each runtime make of the config."""
    trained, longest = geometry.original_max_position_embeddings, max(lengths)
    pairs = zip(_tables(facts, min(trained, longest)), _tables(facts, longest), read_all(facts), strict=True)
    for below, beyond, reading in pairs:
        if below is None or beyond is None:
            continue
        try:
            short, long = (Rotation(_divided(table, geometry), geometry) for table in (below, beyond))
        except ConfigError:  # no config says these frequencies
            continue
        code = reading.problems[0].code if reading.problems else "reads-otherwise"
        name = f"{reading.runtime} {reading.version}"
        text = f"as {name} reads it: {reading.problems[0].text}" if reading.problems else f"as {name} reads it"
        yield KnownReading(code, text, short, long, (name,))


def _tables(facts: CheckpointFacts, length: int) -> list[RopeFrequencies | None]:
    return [_table(reading) for reading in read_all(replace(facts, target_length=length))]


def _table(reading: RuntimeReading) -> RopeFrequencies | None:
    if reading.inv_freq is None or reading.attention_factor is None:
        return None
    return RopeFrequencies(reading.inv_freq, reading.attention_factor)


def _distinct(readings: Iterable[KnownReading], lengths: Sequence[int], trained: int) -> list[KnownReading]:
    """Returns the readings without those that rotate as an earlier one; what runtimes make it is kept with that one."""
    kept: list[KnownReading] = []
    for reading in readings:
        twin = next((k for k, other in enumerate(kept) if _rotate_alike(reading, other, lengths, trained)), None)
        if twin is None:
            kept.append(reading)
        else:
            kept[twin] = replace(kept[twin], runtimes=(*kept[twin].runtimes, *reading.runtimes))
    return kept


def _rotate_alike(one: KnownReading, other: KnownReading, lengths: Sequence[int], trained: int) -> bool:
    for length in lengths:
        found = [reading.rotation(length, trained).frequencies(length) for reading in (one, other)]
        factors = [each.attention_factor for each in found]
        if abs(factors[0] - factors[1]) > DEVIATION_TOLERANCE * factors[1]:
            return False
        if relative_difference(found[0].inv_freq, found[1].inv_freq) > DEVIATION_TOLERANCE:
            return False
    return True
