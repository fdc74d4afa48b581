"""A comparison's verdict and tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ropectl.evaluate.shared_config import USES_ACCURACY
from ropectl.records import FEW_DOCUMENTS, MIN_TRIALS
from ropectl.report.best import best_bits, best_passkeys, best_perplexities, bits_text
from ropectl.report.page.blocks import Block, Cell, Commands, Points, Row, Section, Table, Words
from ropectl.report.page.commands import comparison_command
from ropectl.report.page.numbers import (
    BEYOND,
    NOTHING,
    at,
    change_mark,
    length_head,
    number_cell,
    percent,
    reach_bars,
    share_interval,
    signed_percent,
)
from ropectl.report.tables import perplexity_text, row_names

#: More lengths than this are shown in a table for each measurement.
MAX_LENGTHS_TOGETHER = 5


def trained_length(record: Mapping[str, Any]) -> int:
    """Returns L [tokens]."""
    length: int = record["geometry"]["original_max_position_embeddings"]
    return length


def picked_row(record: Mapping[str, Any]) -> int | None:
    """Returns which row the pick is; None where nothing is picked."""
    pick = record["pick"]
    if pick is None:
        return None
    key = pick["model"], pick["method"], pick["training"]
    for index, row in enumerate(record["rows"]):
        if (row["model"], row["method"], (row["training"] or {}).get("id")) == key:
            return index
    return None


def verdict_section(record: Mapping[str, Any], folder: Path | None) -> Section:
    """Returns what the comparison comes to, before all else."""
    blocks: list[Block] = []
    index, target = picked_row(record), record["target_length"]
    unfinished = record.get("unfinished")
    if unfinished:
        blocks.append(
            Words(
                f"Unfinished: {unfinished['missing']} of {unfinished['cells']} cells are missing. What is here is shown; "
                "nothing is picked before all is measured.",
                "warning",
            )
        )
        command = comparison_command(record, folder)
        if command is not None:
            blocks.append(Words("To continue it, from the folder in which it was begun:"))
            blocks.append(Commands([command]))
    elif index is None:
        blocks.extend(Words(sentence, "lead") for sentence in record["verdict"])
    else:
        row, pick = record["rows"][index], record["pick"]
        blocks.append(Words(f"Pick for {target:,} tokens: {row_names(record['rows'])[index]}", "headline"))
        blocks.append(reach_bars(row["reach"], target, trained_length(record)))
        blocks.append(
            Words("Chosen by rule, not by name: the longest use, then the longest modelling, then the lowest price:")
        )
        blocks.append(Points(pick["reasons"]))
        blocks.extend(Words(sentence) for sentence in record["verdict"])
    failed = sum(bool(row["errors"]) for row in record["rows"])
    if failed:
        blocks.append(
            Words(
                f"{failed} of {len(record['rows'])} rows lack something that failed: see \u201cErrors\u201d.", "warning"
            )
        )
    return Section("Verdict", "verdict", blocks)


def table_section(record: Mapping[str, Any]) -> Section:
    """Returns the comparison as one table, or one for each measurement where there are many lengths."""
    lengths, rows = record["lengths"], record["rows"]
    has_passkeys = any(row["passkey"] for row in rows)
    parts: list[_Part] = [_Perplexity(record)]
    if not record["same_tokens"]:
        parts.append(_Bits(record))
    if has_passkeys:
        parts.append(_Passkeys(record))
    parts.append(_Reach(record))
    together = len(lengths) <= MAX_LENGTHS_TOGETHER
    groups = [parts] if together else [[part] for part in parts]
    tables = [_table(record, group, together) for group in groups]
    return Section("Comparison", "table", [*tables, *(Words(text, "note") for text in _legend(record))])


def _table(record: Mapping[str, Any], parts: Sequence[_Part], together: bool) -> Table:
    names, picked = row_names(record["rows"]), picked_row(record)
    columns = [column for part in parts for column in part.columns()]
    rows = [
        Row(
            names[index],
            [cell for part in parts for cell in part.cells(index, row)],
            f"method-{index}",
            index == picked,
            _row_note(record, index),
        )
        for index, row in enumerate(record["rows"])
    ]
    caption = "All methods by context length" if together else parts[0].title
    heads = [(part.title, len(part.columns())) for part in parts] if together else []
    return Table(caption, ["method", *columns], rows, (), heads, is_sorted_by_reader=True)


def _row_note(record: Mapping[str, Any], index: int) -> str:
    missing = (record.get("unfinished") or {}).get("by_row", [])
    count = missing[index] if index < len(missing) else 0
    note = f"{count} cell{'s' if count > 1 else ''} missing" if count else ""
    return note or ("failed in part" if record["rows"][index]["errors"] else "")


def _legend(record: Mapping[str, Any]) -> Iterator[str]:
    rows = record["rows"]
    within = "" if record["same_tokens"] else "; perplexities compare within a model only"
    yield (
        f"Bold: best of its column{within}, as it reads; none where more than half of the rows share it. Below each perplexity: the change against the unscaled model in the same context. "
        "worst up to L: the largest change at lengths up to the trained one, which is the price on ordinary text."
    )
    if any(entry["beyond_capacity"] for row in rows for entry in (*row["perplexity"], *row["passkey"])):
        yield BEYOND
    if any(row["passkey"] and row["reach"]["uses"] is None and not row["errors"] for row in rows):
        yield f"uses is judged on at least {MIN_TRIALS} prompts at every length; {NOTHING} where there are fewer, or some are missing."
    documents = max((point["num_documents"] for row in rows for point in row["tail"]), default=0)
    if 0 < documents < FEW_DOCUMENTS:
        yield f"models is judged on few documents: {documents}, where {FEW_DOCUMENTS} are wanted."


class _Part:
    """A group of columns."""

    title: str

    def __init__(self, record: Mapping[str, Any]) -> None:
        self.record, self.trained = record, trained_length(record)
        self.lengths: Sequence[int] = record["lengths"]

    def columns(self) -> list[str]:
        """Returns the heads."""
        return [length_head(length, self.trained) for length in self.lengths]

    def cells(self, index: int, row: Mapping[str, Any]) -> list[Cell]:
        """Returns what a row says under them."""
        raise NotImplementedError


class _Perplexity(_Part):
    title = "Perplexity"

    def columns(self) -> list[str]:
        return [*super().columns(), "worst up to L"]

    def _value(self, row: Mapping[str, Any], length: int) -> float | None:
        point = at(row["perplexity"], length, "context_length")
        return None if point is None else point["perplexity"]

    def cells(self, index: int, row: Mapping[str, Any]) -> list[Cell]:
        cells = []
        base = self.record["rows"][0]
        for length in self.lengths:
            point, value = at(row["perplexity"], length, "context_length"), self._value(row, length)
            reference = self._value(base, length)
            change = None
            if row is not base and value is not None and reference and self.record["same_tokens"]:
                change = value / reference - 1
            beyond = "*" if point is not None and point["beyond_capacity"] else ""
            mark = "best" if best_perplexities(self.record, length)[index] else ""
            small = "" if change is None else signed_percent(change)
            cells.append(number_cell(value, perplexity_text(value) + beyond, mark, small, change_mark(change)))
        delta = row["short_delta"]
        return [*cells, number_cell(delta, signed_percent(delta), change_mark(delta))]


class _Bits(_Part):
    title = "Bits per byte"

    def cells(self, index: int, row: Mapping[str, Any]) -> list[Cell]:
        cells = []
        for length in self.lengths:
            point = at(row["perplexity"], length, "context_length")
            value = None if point is None else point["bits_per_byte"]
            mark = "best" if best_bits(self.record, length)[index] else ""
            cells.append(number_cell(value, NOTHING if value is None else bits_text(value), mark))
        return cells


class _Passkeys(_Part):
    title = "Passkeys found"

    def cells(self, index: int, row: Mapping[str, Any]) -> list[Cell]:
        cells = []
        for length in self.lengths:
            entry = at(row["passkey"], length, "length")
            if entry is None:
                cells.append(Cell(NOTHING))
                continue
            mark = "best" if best_passkeys(self.record, length)[index] else ""
            text = f"{entry['correct']}/{entry['trials']}{'*' if entry['beyond_capacity'] else ''}"
            cells.append(number_cell(entry["accuracy"], text, mark, share_interval(entry)))
        return cells


class _Reach(_Part):
    title = "Reach [tokens]"

    def columns(self) -> list[str]:
        return ["computes", "models", "uses"]

    def cells(self, index: int, row: Mapping[str, Any]) -> list[Cell]:
        cells = []
        for sense in ("computes", "models", "uses"):
            value = row["reach"][sense]
            unlimited = sense == "computes" and value is None
            text = "unlimited" if unlimited else NOTHING if value is None else f"{value:,}" if value else "none"
            cells.append(number_cell(2.0**63 if unlimited else value, text))
        return cells


def accuracy_wanted(record: Mapping[str, Any]) -> str:
    """Returns the share of passkeys that counts as used."""
    wanted = (record["manifest"].get("config") or {}).get("min_accuracy")
    return percent(wanted if isinstance(wanted, int | float) else USES_ACCURACY)
