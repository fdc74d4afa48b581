"""The subjects of figures: the rows of a comparison, or the model of an evaluation, with the points of their curves."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ropectl.records import PasskeyLength, PerplexityPoint, TaskLength
from ropectl.rope.geometry import RopeGeometry

PREFIX, TAIL = "prefix", "tail"


@dataclass(frozen=True)
class Point:
    """One value at one length; ``low`` and ``high`` bound its 95 % interval where there is one.

    Attributes:
        length: Context or prompt length [tokens].
        value: What was measured.
        low: Lower end of its interval.
        high: Upper end.
        beyond: True if the length is more than the method is made for.
        samples: Number of documents, windows of them, or trials.
    """

    length: int
    value: float
    low: float | None = None
    high: float | None = None
    beyond: bool = False
    samples: int = 0


@dataclass(frozen=True)
class Subject:
    """The subject of a curve or a panel: a row of a comparison, or the model of one evaluation.

    Attributes:
        name: Its name in legends and titles.
        method: Method spec.
        family: Subjects of one family have one colour: the same method, trained or not.
        tuned: True if it was trained.
        trained_length: L, context of the pre-training [tokens].
        points: Perplexity by protocol.
        passkey: Passkeys found by length.
        grid: By what the passkeys of a length differ: ``depth`` (share of the length) or ``position`` [tokens].
        tasks: Scores by length, by task.
        short_delta: Worst relative change of perplexity at a measured length up to the trained one, against the unscaled model.
        training_tokens: Tokens of its training; None where it was not trained.
        uses: Longest length up to which planted numbers are found [tokens]; 0 if none.
    """

    name: str
    method: str = "none"
    family: str = ""
    tuned: bool = False
    trained_length: int | None = None
    points: Mapping[str, Sequence[PerplexityPoint]] = field(default_factory=dict)
    passkey: Sequence[PasskeyLength] = ()
    grid: str = "depth"
    tasks: Mapping[str, Sequence[TaskLength]] = field(default_factory=dict)
    short_delta: float | None = None
    training_tokens: int | None = None
    uses: int | None = None

    @property
    def is_reference(self) -> bool:
        """True for the model as it was trained, which everything is compared with."""
        return self.method == "none" and not self.tuned

    def curve(self, protocol: str, in_bits: bool = False) -> list[Point]:
        """Returns the perplexities of a protocol by length, or the same in bits per byte, which has no intervals."""
        found = []
        for point in self.points.get(protocol, ()):
            value = point.bits_per_byte if in_bits else point.perplexity
            low, high = (None, None) if in_bits or point.ci_high is None else (point.ci_low, point.ci_high)
            if value:  # 0 has no place on a logarithmic axis
                at = point.context_length
                found.append(Point(at, value, low, high, point.beyond_capacity, point.num_documents))
        return sorted(found, key=lambda point: point.length)

    @property
    def passkey_shares(self) -> list[Point]:
        """The share of passkeys found by length [%]."""
        return _percent((at, at.accuracy) for at in self.passkey)

    @property
    def passkey_cells(self) -> dict[tuple[int, float], float]:
        """The share of passkeys found by length and place of the needle."""
        return {
            (at.length, cell.depth if self.grid == "depth" else cell.needle_position): cell.accuracy
            for at in self.passkey
            for cell in at.depths
        }

    @property
    def task_scores(self) -> dict[str, list[Point]]:
        """The score by length [%], by task."""
        return {task: _percent((at, at.score) for at in lengths) for task, lengths in self.tasks.items()}

    @property
    def loss_window(self) -> int:
        """The longest context whose losses are known by position [tokens]; 0 if none is."""
        return self._longest.context_length if self._longest else 0

    @property
    def _longest(self) -> PerplexityPoint | None:
        """The point of that context."""
        points = [p for points in self.points.values() for p in points if p.positions]
        return max(points, key=lambda point: point.context_length, default=None)

    @property
    def loss_by_position(self) -> list[tuple[float, float]]:
        """Mean losses [nats a token] at the geometric middle of each bin of positions of that context."""
        return [
            (math.sqrt(part.start * (part.end - 1)), part.nll_sum / part.num_tokens)
            for part in (self._longest.positions if self._longest else ())
            if part.num_tokens and part.start > 0  # position 0 has no place on a logarithmic axis
        ]


@dataclass(frozen=True)
class Evidence:
    """All that the figures of one record, or of several, are drawn from.

    Attributes:
        subjects: What was measured, in the order of the record.
        same_tokens: Whether all subjects read the text in the same tokens; else perplexities do not compare.
        remarks: Sentences that belong under every figure of perplexity.
        text_unit: What perplexities are of, in the singular: ``document`` or ``window``.
        drawn_unit: What their intervals are over.
        geometry: Of the model as it was trained, where it is one and known.
        target_length: L' [tokens], where it is known.
    """

    subjects: Sequence[Subject]
    same_tokens: bool = True
    remarks: Sequence[str] = ()
    text_unit: str = "document"
    drawn_unit: str = "document"
    geometry: RopeGeometry | None = None
    target_length: int | None = None

    @property
    def unit(self) -> str:
        """What perplexities are drawn as: as they are where they compare, else per byte of text."""
        return "perplexity" if self.same_tokens else "bits per byte"


def _percent(measured: Iterable[tuple[PasskeyLength | TaskLength, float]]) -> list[Point]:
    """Returns points [%] from what was measured at each length and its share."""
    return [
        Point(at.length, 100 * share, 100 * at.ci_low, 100 * at.ci_high, at.beyond_capacity, at.trials)
        for at, share in sorted(measured, key=lambda pair: pair[0].length)
    ]
