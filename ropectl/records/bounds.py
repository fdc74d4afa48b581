"""Types with the bounds of measured numbers, against which records are checked when they are read, and what can be relied on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from annotated_types import Ge, Gt, Interval

#: A number of tokens [tokens].
Length = Annotated[int, Ge(1)]

#: The length that a method is made for [tokens].
TargetLength = Annotated[int, Ge(2)]

AboveZero = Annotated[float, Gt(0)]
NotNegative = Annotated[float, Ge(0)]
Share = Annotated[float, Interval(ge=0, le=1)]

#: Why a value of a field is impossible, for messages.
REASONS: Mapping[str, str] = {
    "perplexity": "a perplexity is more than 0",
    "accuracy": "an accuracy is between 0 and 1",
    "passkey": "an accuracy is between 0 and 1",
    "score": "a score is between 0 and 1",
    "bits_per_byte": "bits per byte are not less than 0",
}

#: On fewer documents intervals are those of normally distributed losses, and verdicts are marked.
FEW_DOCUMENTS = 8

#: Relative changes of perplexity below this are none: passes differ by rounding.
NO_CHANGE = 5e-4
