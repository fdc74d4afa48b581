"""What is said of two measurements side by side, and of one against a limit: with an interval, and with three outcomes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from ropectl.records.bounds import Length, Share

#: Whether a length qualifies: the whole interval is within the limit, beyond it, or holds it.
Outcome = Literal["yes", "no", "not resolved"]


@dataclass(frozen=True)
class SeedScore:
    """The share of right answers, or the mean score, of the prompts of one seed.

    Attributes:
        seed: The seed.
        score: In [0, 1].
        trials: Prompts.
    """

    seed: int
    score: Share
    trials: int


@dataclass(frozen=True)
class LengthVerdict:
    """The outcome at one length: whether text is modelled there, or what stands in it is used.

    Attributes:
        length: Context [tokens].
        outcome: ``yes`` where the whole interval is within the limit, ``no`` where all of it is beyond, else ``not resolved``.
        value: What was judged: how much higher the loss is [nats a token], or the accuracy, in [0, 1].
        ci_low: Lower end of its 95 % interval; None where a single document has none.
        ci_high: Upper end.
        units: Documents (or windows of a single one), or prompts, that it was judged on.
        units_needed: About how many would resolve it, the value staying as it is; None where it is resolved, or where
            no number would tell.
    """

    length: Length
    outcome: Outcome
    value: float
    ci_low: float | None
    ci_high: float | None
    units: int
    units_needed: int | None = None


@dataclass(frozen=True)
class Reach:
    """The length that a method reaches, in three different senses [tokens].

    ``models`` and ``uses`` are the length up to which every measured length from the trained one on is a *yes*. Lengths
    shorter than the trained one never count against it; where none from it on is one, the longest shorter one counts.

    Attributes:
        computes: Positions whose slow rotations were all seen in training (a formula; after a training of its
            own, at least the positions of that one); None if unlimited.
        models: A length is a yes if the same text is predicted no worse than by the unscaled model at its trained
            length; 0 if none is, None if not measured.
        uses: A length is a yes if enough of the numbers hidden in a text are retrieved; 0 if none is, None if not
            measured.
        models_possible: The same, where what is not resolved counts as a yes: longer than ``models`` if a verdict is open.
        uses_possible: Likewise of ``uses``.
        models_at: The outcome at each length.
        uses_at: Likewise of use.
    """

    computes: int | None
    models: int | None = None
    uses: int | None = None
    models_possible: int | None = None
    uses_possible: int | None = None
    models_at: list[LengthVerdict] = field(default_factory=list)
    uses_at: list[LengthVerdict] = field(default_factory=list)

    def is_open(self, sense: str) -> bool:
        """Returns whether ``models`` or ``uses`` might be longer: the first length after it is not resolved."""
        certain, possible = getattr(self, sense), getattr(self, f"{sense}_possible")
        return possible is not None and certain is not None and possible > certain


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A paired difference: the same documents or the same prompts under two methods.

    Attributes:
        measure: ``prefix`` or ``tail``: mean loss [nats a token]; ``short_delta``: perplexity up to the trained length, at
            its worst [relative]; ``passkey`` or ``task``: share of answers, in [-1, 1].
        length: Context [tokens].
        value: The first minus the second.
        ci_low: Lower end of its 95 % interval; None where a single document has none.
        ci_high: Upper end.
        units: Documents (or windows of a single one), or prompts, that were paired.
        told_apart: Whether the interval excludes 0; None without an interval.
        p_value: Of the exact McNemar test, where answers are right or wrong.
    """

    measure: str
    length: Length
    value: float
    ci_low: float | None = None
    ci_high: float | None = None
    units: int
    told_apart: bool | None = None
    p_value: float | None = None


@dataclass(frozen=True, kw_only=True)
class RowDifference(Difference):
    """A paired difference of two rows of a comparison.

    Attributes:
        row: Index of the first one in ``rows``.
        against: Index of the second one.
    """

    row: int
    against: int
