"""The view of ``eval-passkey``, and the tables of retrieval that the page shows of every comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ropectl.records import PasskeyLength, PasskeyRecord
from ropectl.report.document import Cell, Part, Row, Sentence, Table, View, columns
from ropectl.report.tables.heat_maps import ABSENT, heat_table, needle_place
from ropectl.report.tables.words import NOT_AVAILABLE, beyond_legend, beyond_mark, share_text

_NO_PLACE = {
    "depth": f"{ABSENT} the prompt is so short that this depth is the same position as another",
    "position": f"{ABSENT} the prompt ends before this position",
}


def passkey_parts(record: PasskeyRecord) -> list[Part]:
    """Returns correct answers by needle and length, intervals by length, remarks and the verdict."""
    return [*passkey_tables(record.lengths, record.grid), *remarks(record), Sentence(record.verdict)]


def passkey_tables(results: Sequence[PasskeyLength], grid: str = "depth") -> list[Table]:
    """Returns right answers by needle and length, and over all needles.

    Args:
        results: Retrieval by length.
        grid: ``depth`` or ``position``: how needles are placed.
    """
    trials = next((cell.trials for result in results for cell in result.depths), 0)
    title = f"Passkeys, of {trials} a {'depth' if grid == 'depth' else 'needle'}"
    return [heat_table(title, results, grid, list(map(_marked, results))), _length_table(results)]


def remarks(record: PasskeyRecord) -> list[Sentence]:
    """Returns what the tables do not show: missing needles, marks, k_max, and answers that differ from the scores."""
    results, grid = record.lengths, record.grid
    places = {needle_place(cell, grid) for result in results for cell in result.depths}
    is_partial = any(len(result.depths) < len(places) for result in results)
    found = [Sentence(_NO_PLACE[grid], concerns=[ABSENT])] if is_partial and grid in _NO_PLACE else []
    found.extend(beyond_legend(result.beyond_capacity for result in results))
    if record.k_max:
        found.append(Sentence(_k_max(record.k_max)))
    if record.num_differing is not None:
        count = sum(result.trials for result in results)
        found.append(
            Sentence(f"Decoded greedily, {record.num_differing} of {count} say otherwise than token by token.")
        )
    return found


def _length_table(results: Sequence[PasskeyLength]) -> Table:
    rows, seeds = [], max((len(result.seeds) for result in results), default=0)
    for result in results:
        logprob = result.answer_logprob
        numbers = [
            Cell(str(result.correct)),
            Cell(str(result.trials)),
            Cell(f"{result.accuracy:.1%}", shade=result.accuracy),
            Cell(f"{result.ci_low:.1%} to {result.ci_high:.1%}"),
            Cell(NOT_AVAILABLE if logprob is None else f"{logprob:.3f}"),
        ]
        if seeds > 1:
            numbers.append(Cell(share_text(result.seed_spread, 1), value=result.seed_spread))
        rows.append(Row(_marked(result), numbers))
    heads = columns(["correct", "trials", "accuracy", "95 % interval", "log p(answer)"])
    heads += columns([f"sd of {seeds} seeds"] if seeds > 1 else [])
    about = "Share of right answers, with Wilson's 95 % interval; log-probability of the whole answer [nats]."
    return Table("Over all needles", "length", heads, rows, name="Passkeys over all needles", about=about)


def _k_max(values: Mapping[str, int]) -> str:
    parts = [f"{length or 'none'} at {float(accuracy):.0%}" for accuracy, length in values.items()]
    return f"k_max, the longest length with that accuracy up to it: {', '.join(parts)}."


def _marked(result: PasskeyLength) -> str:
    return f"{result.length}{beyond_mark(result.beyond_capacity)}"


VIEW = View(passkey_parts, "Passkey retrieval of {model}", has_values=True)
