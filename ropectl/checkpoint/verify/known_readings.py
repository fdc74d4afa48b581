"""The readings of a checkpoint that a program may compute: as meant, and every fault that is known.

A fault is written as a method on a geometry, or as the table that a runtime's rules make of the config. What rotates
exactly as another reading does is listed once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from ropectl.checkpoint.verify.rotation import Rotation, divided
from ropectl.checkpoint.verify.rotation_faults import faults
from ropectl.errors import ConfigError
from ropectl.records import RuntimeReading
from ropectl.rope.frequencies import RopeFrequencies
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.method import ScalingMethod
from ropectl.rope.methods.none import NoScaling
from ropectl.runtimes.judge import DEVIATION_TOLERANCE, relative_difference
from ropectl.runtimes.matrix import read_all
from ropectl.runtimes.runtime import CheckpointFacts

AS_MEANT = "as-meant"


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
    found += [KnownReading(code, text, each, each) for code, text, each in (*faults(meant, target), *keys)]
    if facts is not None:
        found += _of_runtimes(geometry, lengths, facts)
    if is_latent:
        found = [each for each in found if type(each.beyond.method) in (type(method), NoScaling)]
    return _distinct(found, lengths, geometry.original_max_position_embeddings)


def _lists(meant: Rotation, lengths: Sequence[int]) -> list[KnownReading]:
    """Returns, for a method that follows the length, its table of one length at every length."""
    if not meant.method.depends_on_seq_len:
        return []
    found, trained = [], meant.geometry.original_max_position_embeddings
    for length in sorted({min(trained, *lengths), *lengths}):
        try:
            table = Rotation(divided(meant.frequencies(length), meant.geometry), meant.geometry)
        except ConfigError:  # a pair that stands still at this length only
            continue
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
            short, long = (Rotation(divided(table, geometry), geometry) for table in (below, beyond))
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
        if kept and not _is_possible(reading, lengths, trained):
            continue
        twin = next((k for k, other in enumerate(kept) if _rotate_alike(reading, other, lengths, trained)), None)
        if twin is None:
            kept.append(reading)
        else:
            kept[twin] = replace(kept[twin], runtimes=(*kept[twin].runtimes, *reading.runtimes))
    return kept


def _is_possible(reading: KnownReading, lengths: Sequence[int], trained: int) -> bool:
    """Returns whether there are such frequencies: a fault need not be possible on every geometry."""
    try:
        return all(reading.rotation(length, trained).frequencies(length).inv_freq for length in lengths)
    except (ConfigError, ArithmeticError):
        return False


def _rotate_alike(one: KnownReading, other: KnownReading, lengths: Sequence[int], trained: int) -> bool:
    for length in lengths:
        found = [reading.rotation(length, trained).frequencies(length) for reading in (one, other)]
        factors = [each.attention_factor for each in found]
        if abs(factors[0] - factors[1]) > DEVIATION_TOLERANCE * factors[1]:
            return False
        if relative_difference(found[0].inv_freq, found[1].inv_freq) > DEVIATION_TOLERANCE:
            return False
    return True
