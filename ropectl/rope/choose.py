"""Chooses the methods worth testing on a geometry for a wanted length, by a rule over computed quantities.

For every method that needs only a factor, three things are computed:

- **computes**: the length up to which it uses only rotations seen in training, at the wanted length;
- **crowding**: the divisor of the fastest pair, by which neighbouring tokens move closer together;
- **shift**: the mean of ln f_i over the pairs that completed a turn in training, up to the trained length. Those pairs
  carry ordinary text, and on the built-in model the order of shifts is the order of what methods cost there.

The rule: a method that computes less than the wanted length is passed over, unless it is trained. A crowded one needs
long training. Of the rest, those with smaller shifts come first. Without training the first method that follows the length
is added, which is the trained model up to the trained length; for training it has to be frozen, which takes that away.
The order is one in which to measure: nothing here says how well a method does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ropectl.errors import MethodError
from ropectl.rope.frequencies import divisors, reach_tokens, rotations, trained_inv_freq
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.method import ScalingMethod
from ropectl.rope.registry import all_methods
from ropectl.rope.tuning import Tuning

#: Most methods that are picked.
MAX_PICKS = 4

#: A divisor counts as 1 up to this, and two count as equal up to this ratio.
UNMOVED = 1 + 1e-9

#: Up to this, a divisor of the fastest pair is a small change.
SLIGHT = 1.05


@dataclass(frozen=True)
class Candidate:
    """A method at the wanted length, with the quantities of the rule.

    Attributes:
        method: The method.
        computes: The length up to which it uses only rotations seen in training [tokens]; None for any.
        crowding: Divisor of the fastest pair up to the trained length.
        shift: Mean ln f_i over the pairs that completed a turn in training, up to the trained length.
    """

    method: ScalingMethod
    computes: int | None
    crowding: float
    shift: float

    def reaches(self, target_length: int) -> bool:
        """Returns whether it computes the wanted length."""
        return self.computes is None or self.computes >= target_length

    @property
    def slowing(self) -> float:
        """The geometric mean of the divisors of the pairs that carry ordinary text."""
        return math.exp(self.shift)


@dataclass(frozen=True)
class Passed:
    """A method that is not picked, and why."""

    name: str
    reason: str


@dataclass(frozen=True)
class Choice:
    """The methods worth testing, in the order in which to try them, and the others."""

    picks: tuple[Candidate, ...]
    passed: tuple[Passed, ...]


def weigh(method: ScalingMethod, geometry: RopeGeometry, target_length: int) -> Candidate:
    """Returns a method with the quantities of the rule.

    Raises:
        MethodError: If it cannot work on this geometry.
    """
    trained = geometry.original_max_position_embeddings
    computes = reach_tokens(geometry, method.frequencies(geometry, target_length))
    found = divisors(geometry, method.frequencies(geometry, trained))
    turns = rotations(trained_inv_freq(geometry), trained)
    whole = [divisor for divisor, turn in zip(found, turns, strict=True) if turn >= 1]
    used = whole or [divisor for divisor, turn in zip(found, turns, strict=True) if turn > 0]
    return Candidate(method, computes, found[0], max(0.0, sum(map(math.log, used)) / len(used)))


def choose(
    geometry: RopeGeometry,
    target_length: int,
    tuning: Tuning = Tuning.none,
    obstacle: Callable[[ScalingMethod], str | None] = lambda method: None,
) -> Choice:
    """Returns which methods to test for a wanted length, and why not the others.

    Args:
        geometry: The geometry that the model was trained with.
        target_length: The wanted length, above the trained one [tokens].
        tuning: The amount of training that is planned.
        obstacle: Returns why a method cannot be used on the model or in its runtime; None where it can.
    """
    candidates, passed = _candidates(geometry, target_length, obstacle)
    fitting: list[Candidate] = []
    for candidate in candidates:
        reason = _unfit(candidate, target_length, tuning)
        if reason:
            passed.append(Passed(candidate.method.name, reason))
        else:
            fitting.append(candidate)
    fitting.sort(key=lambda one: (not one.reaches(target_length), one.crowding > UNMOVED, one.shift))
    picks = _short_list(fitting, tuning)
    left = [one for one in fitting if one not in picks]
    passed += [Passed(one.method.name, _later(one, target_length, picks)) for one in left]
    return Choice(tuple(picks), tuple(passed))


def _candidates(
    geometry: RopeGeometry, target_length: int, obstacle: Callable[[ScalingMethod], str | None]
) -> tuple[list[Candidate], list[Passed]]:
    """Returns every method but the baseline, at the wanted length; and those that cannot be used."""
    factor = target_length / geometry.original_max_position_embeddings
    candidates, passed = [], []
    for name, kind in all_methods().items():
        if name == "none":
            continue
        try:
            parameters = kind.fill_factor({}, factor, geometry)
            missing = kind.missing(parameters)
            if missing:
                passed.append(Passed(name, f"needs {', '.join(missing)}, which this model does not say."))
                continue
            candidate = weigh(kind.create(parameters), geometry, target_length)
        except MethodError as error:
            passed.append(Passed(name, error.message))
            continue
        reason = obstacle(candidate.method)
        if reason:
            passed.append(Passed(name, reason))
        else:
            candidates.append(candidate)
    return candidates, passed


def _unfit(candidate: Candidate, target_length: int, tuning: Tuning) -> str | None:
    """Returns why a method does not suit this amount of training; None where it does."""
    if tuning is Tuning.none and not candidate.reaches(target_length):
        return f"computes {candidate.computes} of the {target_length} tokens: past that slow pairs turn further than in training."
    if tuning is not Tuning.full and candidate.crowding > UNMOVED:
        closer = f"moves neighbouring tokens {_apart(candidate.crowding, 1.0, 4)[0]} times closer together"
        if candidate.crowding <= SLIGHT:
            return f"{closer}: a small change, but methods that do not move them come first."
        return f"{closer}, which takes long training."
    if tuning is not Tuning.none and candidate.method.depends_on_seq_len:
        return "follows the length, but would have to be frozen for training."
    return None


def _short_list(fitting: Sequence[Candidate], tuning: Tuning) -> list[Candidate]:
    """Returns the first of each kind: static ones, with full training a crowded one, without training one that follows."""
    static = [one for one in fitting if not one.method.depends_on_seq_len and one.crowding <= UNMOVED]
    crowded = [one for one in fitting if one.crowding > UNMOVED]
    following = [one for one in fitting if one.method.depends_on_seq_len and one.crowding <= UNMOVED]
    last = following[:1] if tuning is Tuning.none else crowded[:1]
    return [*static[: MAX_PICKS - len(last)], *last]


def _later(candidate: Candidate, target_length: int, picks: Sequence[Candidate]) -> str:
    """Returns why a method that fits is not among those picked."""
    if not candidate.reaches(target_length) and any(one.reaches(target_length) for one in picks):
        return f"computes {candidate.computes} of the {target_length} tokens; others compute all of them."
    if candidate.method.depends_on_seq_len:
        return "another method that follows the length ranks before it."
    is_crowded = candidate.crowding > UNMOVED
    rivals = [
        one for one in picks if not one.method.depends_on_seq_len and (one.crowding > UNMOVED) == is_crowded
    ]  # none of them slows more, since they are sorted
    most = max((one.slowing for one in rivals), default=candidate.slowing)
    if candidate.slowing <= most * UNMOVED:
        return f"{slowing_text(candidate)}, as one ranked before it does."
    own, other = _apart(candidate.slowing, most, 3)
    return f"divides the frequencies that carry ordinary text by {own} on average, those ranked before it by at most {other}."


def slowing_text(candidate: Candidate) -> str:
    """Returns what a method does to the frequencies that carry ordinary text."""
    if candidate.slowing <= UNMOVED:
        return "leaves the frequencies that carry ordinary text as they are"
    own, _ = _apart(candidate.slowing, 1.0, 3)
    return f"divides the frequencies that carry ordinary text by {own} on average"


def _apart(first: float, second: float, digits: int) -> tuple[str, str]:
    """Returns two different numbers with as many digits as tell them apart, at least ``digits``."""
    for count in range(digits, 17):
        texts = f"{first:.{count}g}", f"{second:.{count}g}"
        if texts[0] != texts[1]:
            return texts
    return texts
