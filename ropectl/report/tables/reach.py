"""How far each row reaches in three senses, against the target, and what would resolve what is open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ropectl.evaluate.judging.verdicts import first_open
from ropectl.records import LengthVerdict, Reach
from ropectl.report.document import BAD, GOOD, Cell, Row, Sentence, Table, cells, columns
from ropectl.report.tables.by_length import LengthGrid, MeasuredSubject
from ropectl.report.tables.counts import REACH
from ropectl.report.tables.words import NONE_MARK, NOT_AVAILABLE, OPEN_MARK

#: What losses are judged on, unless windows of a single document are.
DOCUMENT = "document"

#: Sorts after every length that has a limit.
UNLIMITED = float(2**63)


def reaches(grid: LengthGrid, target: int | None) -> Table:
    """Returns how far each subject reaches in three senses.

    Args:
        grid: What is measured; lengths do not matter.
        target: Length that the bars are drawn against [tokens]; None for no bars.
    """
    senses = ("computes", "models", "uses")
    numbers = [[_reach(each, sense, target) for each in grid.subjects] for sense in senses]
    heads = list(senses)
    if any(each.seconds is not None for each in grid.subjects):
        numbers.append([Cell(f"{each.seconds or 0.0:.1f}", value=each.seconds) for each in grid.subjects])
        heads.append("seconds")
    drawn = f"bars of {target}" if target else ""
    return grid.table("Reach: how far it ... [tokens]", columns(heads), numbers, REACH, drawn)


def _reach(each: MeasuredSubject, sense: str, target: int | None) -> Cell:
    length: int | None = getattr(each.reach, sense, None)
    if sense == "computes" and each.reach is not None and length is None:
        return Cell("unlimited", bar=1.0 if target else None, value=UNLIMITED)
    if length is None or each.reach is None:
        return Cell(NOT_AVAILABLE)
    is_open = sense != "computes" and each.reach.is_open(sense)
    possible = getattr(each.reach, f"{sense}_possible") if is_open else length
    text, mark = (str(length), OPEN_MARK if is_open else "") if length or not is_open else (OPEN_MARK, "")
    return Cell(
        text if length or is_open else NONE_MARK,
        mark,
        bar=length / target if target else None,
        possible=possible / target if target else None,
        value=length,
    )


def reach_legend(reaches: Mapping[str, Reach], trained_length: int = 0, unit: str = DOCUMENT) -> list[Sentence]:
    """Returns what the marks of lengths mean: none of them, and not resolved, with what would resolve it.

    Args:
        reaches: How far each row reaches, by name.
        trained_length: L [tokens]; 0 where rows differ in it.
        unit: What ``models`` is judged on.
    """
    found = []
    if any(
        getattr(each, sense) == 0 and not each.is_open(sense)
        for each in reaches.values()
        for sense in ("models", "uses")
    ):
        found.append(Sentence(f"{NONE_MARK} at no evaluated length", concerns=[NONE_MARK, "uses"]))
    wanted = [
        text
        for sense, units in (("models", f"{unit}s"), ("uses", "prompts"))
        if (text := _to_resolve(reaches, sense, units, trained_length))
    ]
    if wanted:
        text = f"{OPEN_MARK} not resolved past there: the 95 % interval holds the limit"
        found.append(Sentence(text, concerns=[OPEN_MARK]))
        found.append(Sentence(f"To resolve the next length: {'; '.join(wanted)}.", concerns=[OPEN_MARK]))
    return found


def _to_resolve(reaches: Mapping[str, Reach], sense: str, units: str, trained: int) -> str:
    """Returns how many documents or prompts each row needs; empty where nothing is open."""
    needs: dict[str, list[str]] = {}
    measured = 0
    for name, reach in reaches.items():
        if reach.is_open(sense):
            first = first_open(getattr(reach, f"{sense}_at"), getattr(reach, sense), trained)
            needs.setdefault(str(first.units_needed or "more"), []).append(name)
            measured = first.units
    if not needs:
        return ""
    text = ", ".join(f"about {count} ({', '.join(names)})" for count, names in needs.items())
    return f"{sense} {text} {units}, of which {measured} were measured"


def verdict_tables(verdicts: Mapping[str, Sequence[LengthVerdict]], unit: str = DOCUMENT) -> list[Table]:
    """Returns the outcome at each length, what it was judged on, and how much would resolve what is open.

    Args:
        verdicts: By ``models`` and ``uses``; one without any is left out.
        unit: What ``models`` is judged on.
    """
    tables = []
    for sense, found in verdicts.items():
        if not found:
            continue
        title, judged, form = (
            (
                "Models, by context: loss above the unscaled model's at its trained length [nats a token]",
                "loss",
                "{:+.4f}",
            )
            if sense == "models"
            else ("Uses, by context: share of the passkeys that are found", "share", "{:.1%}")
        )
        rows = []
        for one in found:
            low, high = one.ci_low, one.ci_high
            interval = NOT_AVAILABLE if low is None or high is None else f"{form.format(low)} to {form.format(high)}"
            needed = (
                "" if one.outcome != "not resolved" else f"about {one.units_needed}" if one.units_needed else "more"
            )
            tone = {"yes": GOOD, "no": BAD}.get(one.outcome, "")
            values = [Cell(one.outcome, tone=tone), *cells([form.format(one.value), interval, str(one.units), needed])]
            rows.append(Row(str(one.length), values))
        units = f"{unit}s" if sense == "models" else "prompts"
        heads = columns(["verdict", judged, "95 % interval", units, "would resolve it"])
        tables.append(Table(title, "context", heads, rows))
    return tables
