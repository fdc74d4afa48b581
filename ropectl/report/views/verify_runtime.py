"""The view of ``verify-runtime``: the readings by distance, and the one that fits."""

from __future__ import annotations

from dataclasses import replace

from ropectl.records import NONE, UNDECIDED, ReadingEvidence, ReadingFit, RuntimeCheckRecord
from ropectl.report.document import BAD, GOOD, BestNote, Cell, Column, Part, Row, Sentence, Table, View, columns, facts
from ropectl.report.tables.words import NOT_AVAILABLE
from ropectl.rope.method import short_spec

AS_MEANT = "as-meant"


def runtime_check_parts(record: RuntimeCheckRecord) -> list[Part]:
    """Returns what was asked, the readings by distance, and the verdict."""
    asked = replace(facts("", _facts(record)), name="What was compared")
    marked = [BestNote("the reading that fits")] if record.winner is not None else []
    return [asked, readings_table(record), *marked, *verdict_sentences(record)]


def readings_table(record: RuntimeCheckRecord) -> Table:
    """Returns a line for each reading, nearest first; the one that fits is marked."""
    trained = record.geometry.original_max_position_embeddings
    winner = record.winner
    rows = [Row(reading.text, _cells(reading, reading is winner, winner is not None)) for reading in record.readings]
    heads = [
        *columns(["mean", f"up to {trained}", f"past {trained}", "behind"]),
        Column("fits", is_text=True),
        Column("known from", is_text=True, is_detail=True),
    ]
    return Table("Difference from each reading [nats a token]", "reading", heads, rows)


def verdict_sentences(record: RuntimeCheckRecord) -> list[Sentence]:
    """Returns which reading fits and by what margin, what limits that, and whether float32 agrees."""
    found = [_verdict(record)]
    if record.capped_at is not None:
        text = f"It takes {record.capped_at} tokens, fewer than were asked for: what fits was compared."
        found.append(Sentence(text, BAD))
    elif record.server is not None and record.server.context is not None:
        context = record.server.context
        if context < record.target_length:
            text = f"It takes {context} of the {record.target_length} tokens that the checkpoint is meant for."
            found.append(Sentence(text))
    if not record.num_past_trained_length:
        text = "No token past the trained length was compared: faults that show only there were not looked for."
        found.append(Sentence(text))
    if record.alike and record.verdict != UNDECIDED:
        names = "; ".join(dict.fromkeys(record.named(code).text for code in record.alike))
        found.append(Sentence(f"This text does not tell it from: {names}."))
    if record.skipped:
        found.append(Sentence(f"Not compared, since this family cannot compute them: {', '.join(record.skipped)}."))
    agrees = "agree" if record.agrees else "do not agree"
    found.append(
        Sentence(f"As in float32, they {agrees}: {record.mean_difference:.1e} on average, {record.allowed:g} allowed.")
    )
    return found


def _verdict(record: RuntimeCheckRecord) -> Sentence:
    winner = record.winner
    if record.verdict == UNDECIDED or (winner is None and record.verdict != NONE):
        names = "; ".join(reading.text for reading in record.readings if reading.fits)
        text = f"undecided: these readings fit alike: {names}. A longer text tells them apart (--length, --positions)"
        return Sentence(f"{record.runtime}: {text}.", BAD)
    if winner is None:
        return Sentence(f"{record.runtime} computes none of the known readings: {record.reason}.", BAD)
    margin = ""
    if record.margin is not None:
        low, high = record.margin_low or 0.0, record.margin_high or 0.0
        margin = f" The next reading is {record.margin:.2g} nats a token further off ({low:.2g} to {high:.2g})."
    noise = f" Its arithmetic adds {record.noise:.1e} nats a token."
    if winner.code == AS_MEANT:
        return Sentence(f"{record.runtime} computes the checkpoint as it was meant.{margin}{noise}", GOOD)
    text = f"{record.runtime} computes something else: {winner.text} [{winner.code}]."
    return Sentence(f"{text}{margin}{noise}", BAD)


def _cells(reading: ReadingFit, is_winner: bool, has_winner: bool) -> list[Cell]:
    tone = (GOOD if reading.code == AS_MEANT else BAD) if is_winner else ""
    mark = (
        "this one" if is_winner else "alike" if reading.fits and not has_winner else "as well" if reading.fits else "no"
    )
    return [
        Cell(f"{reading.distance:.1e}", is_best=is_winner, value=reading.distance),
        _number(reading.distance_below),
        _number(reading.distance_beyond),
        _number(reading.behind),
        Cell(mark, tone=tone),
        Cell(", ".join(reading.runtimes)),
    ]


def _number(value: float | None) -> Cell:
    return Cell(NOT_AVAILABLE) if value is None else Cell(f"{value:.1e}", value=value)


def _facts(record: RuntimeCheckRecord) -> list[tuple[str, str]]:
    geometry, past = record.geometry, record.mean_difference_past_trained_length
    server, trained = record.server, geometry.original_max_position_embeddings
    asked = "" if server is None else f", {server.model} at {server.url}"
    return [
        ("checkpoint", record.model),
        *([("reference", record.reference)] if record.reference else []),
        ("method", f"{short_spec(record.method)}, trained length {trained}"),
        ("runtime", f"{record.runtime_version}{asked}"),
        *([] if server is None else [("way of asking", _known(server.evidence))]),
        ("text", f"{record.num_tokens} tokens, {record.num_compared} compared"),
        ("transformers", f"{record.nll_transformers:.5f} nats a token"),
        (record.runtime, f"{record.nll_runtime:.5f} nats a token"),
        ("mean difference", f"{record.mean_difference:.1e} nats a token (allowed {record.allowed:g})"),
        (
            "past trained length",
            "no token" if past is None else f"{past:.1e}, {record.num_past_trained_length} tokens",
        ),
        ("largest difference", f"{record.max_difference:.1e} nats on one token"),
    ]


def _known(evidence: ReadingEvidence) -> str:
    ways = {"run": f"run with {evidence.version}", "read": f"read in {evidence.version}, not run"}
    return ways.get(evidence.kind, "not known for this server; its answers are checked")


VIEW = View(runtime_check_parts, "What a runtime computes of {model}", is_headed=False)
