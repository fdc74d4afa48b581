"""What is said of two measurements side by side, and of one against a limit: with an interval, and with three outcomes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ropectl.records.bounds import Length

#: Whether a length qualifies: the whole interval is within the limit, beyond it, or holds it.
Outcome = Literal["yes", "no", "not resolved"]


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
