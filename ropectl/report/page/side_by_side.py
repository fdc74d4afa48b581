"""Several runs side by side: one table for each thing that they have in common."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ropectl.data.units import counted, unit_name
from ropectl.records import (
    ComparisonRecord,
    FinetuneRecord,
    InspectionRecord,
    PasskeyRecord,
    PerplexityRecord,
    Reach,
    UnfinishedTraining,
)
from ropectl.records.reading import AnyRecord
from ropectl.report.blocks import Block
from ropectl.report.document import NOTE, WARNING, Cell, Column, Row, Sentence, Table
from ropectl.report.page.joint_differences import joint_differences
from ropectl.report.record_views import method_of, model_of
from ropectl.report.runs_read import Run
from ropectl.report.tables.by_length import LengthGrid, MeasuredSubject, passkeys, perplexities
from ropectl.report.tables.reach import reach_legend, reaches
from ropectl.report.tables.words import NOT_AVAILABLE, beyond_legend, row_names, sentences, setting_text
from ropectl.report.views.compare_methods import picked_row, subjects_of
from ropectl.report.views.finetune import training_summary
from ropectl.rope.method import short_spec


def joint_tables(runs: Sequence[Run]) -> list[Block]:
    """Returns perplexity and retrieval of all runs by length; what only one of them measured is in its own section."""
    blocks = [_verdicts(runs), *_measurements(runs), *joint_differences(runs)]
    if len(blocks) == 1:
        blocks.append(Sentence("These runs have no measurement in common; each is shown below."))
    texts = {run.record.text for run in runs if isinstance(run.record, ComparisonRecord | PerplexityRecord)}
    if len(texts) > 1:
        names = ", ".join(sorted(texts))
        text = f"The runs score different texts ({names}): their perplexities are not comparable."
        blocks.append(Sentence(text, WARNING))
    return [*blocks, *_differing(runs)]


def _verdicts(runs: Sequence[Run]) -> Table:
    """Returns a table with the verdict of each run."""
    rows = []
    for number, run in enumerate(runs, 1):
        cells = [Cell(model_of(run.record) or NOT_AVAILABLE), Cell(_picked(run)), Cell(_verdict(run))]
        rows.append(Row(run.name, cells, href=f"run-{number}-run"))
    heads = [Column(head, is_text=True) for head in ("model", "pick, or method", "verdict")]
    return Table("What each run comes to", "run", heads, rows)


def _picked(run: Run) -> str:
    record = run.record
    if not isinstance(record, ComparisonRecord):
        return method_of(record) or NOT_AVAILABLE
    picked = picked_row(record)
    return NOT_AVAILABLE if picked is None else row_names(record.rows)[picked]


def _verdict(run: Run) -> str:
    """Returns the verdict of a run in sentences: its own, the reasons of its pick, or how its training went."""
    record = run.record
    if isinstance(record, FinetuneRecord | UnfinishedTraining):
        return training_summary(record, run.metrics)
    verdict: str | list[str] = getattr(record, "verdict", "")
    if not verdict and isinstance(record, ComparisonRecord) and record.pick:
        verdict = "; ".join(record.pick.reasons)
    return sentences([verdict] if isinstance(verdict, str) else verdict)


def _differing(runs: Sequence[Run]) -> list[Table]:
    """Settings that are not the same in all runs; those that only one kind of run knows are no difference."""
    manifests = [getattr(run.record, "manifest", None) for run in runs]
    known: list[dict[str, Any]] = [manifest.config if manifest else {} for manifest in manifests]
    rows = [
        Row(name.replace("_", " "), [Cell(setting_text(each[name])) for each in known])
        for name in known[0]
        if all(name in each for each in known) and any(each[name] != known[0][name] for each in known)
    ]
    heads = [Column(run.name, is_text=True) for run in runs]
    return [Table("Settings in which the runs differ", "setting", heads, rows)] if rows else []


def _measurements(runs: Sequence[Run]) -> list[Block]:
    found = [(protocol, each) for number, run in enumerate(runs, 1) for protocol, each in _subjects(run, number)]
    blocks: list[Block] = []
    units = {run.name: _unit(run.record) for run in runs}
    protocols = dict.fromkeys(protocol for protocol, each in found if each.perplexity)
    for protocol in sorted(protocols, key=lambda name: name != "prefix"):
        title = "Perplexity" if protocol == "prefix" else f"Perplexity, protocol {protocol}"
        blocks += _perplexity(title, [each for own, each in found if each.perplexity and own == protocol], units)
    retrieving = [each for _, each in found if each.passkey]
    if retrieving:
        lengths = sorted({entry.length for each in retrieving for entry in each.passkey})
        blocks.append(passkeys(LengthGrid(retrieving, lengths, "run", None, _ranks_nothing), "Passkeys found"))
    legend = beyond_legend(
        (point.beyond_capacity for _, each in found for point in each.perplexity),
        (entry.beyond_capacity for _, each in found for entry in each.passkey),
    )
    blocks += [replace(sentence, tone=NOTE) for sentence in legend]
    reaching = [each for _, each in found if each.reach]
    if reaching:
        blocks.append(reaches(LengthGrid(reaching, (), "run", None, _ranks_nothing), None))
        legend = reach_legend({each.name: each.reach for each in reaching if each.reach})
        blocks += [replace(sentence, tone=NOTE) for sentence in legend]
    return blocks


def _ranks_nothing(length: int) -> None:
    return None


def _subjects(run: Run, number: int) -> Iterator[tuple[str, MeasuredSubject]]:
    """Yields the rows that a run adds, each with the protocol of its perplexities."""
    record, href = run.record, f"run-{number}-run"
    if isinstance(record, ComparisonRecord):
        for row, each in zip(record.rows, subjects_of(record), strict=True):
            own = "" if record.same_tokens else row.model
            yield (
                "prefix",
                MeasuredSubject(
                    f"{run.name}: {each.name}", row.perplexity, row.passkey, row.reach, (*_documents(record), own),
                    href=href, is_pick=each.is_pick,
                ),
            )  # fmt: skip
    elif isinstance(record, PerplexityRecord | PasskeyRecord | InspectionRecord):
        name = f"{run.name}: {short_spec(record.method)}"
        if isinstance(record, PerplexityRecord):
            yield record.protocol, MeasuredSubject(name, record.points, compares=(*_documents(record), ""), href=href)
        elif isinstance(record, PasskeyRecord):
            yield "", MeasuredSubject(name, passkey=record.lengths, href=href)
        else:
            yield "", MeasuredSubject(name, reach=Reach(record.reach), href=href)


def _documents(record: ComparisonRecord | PerplexityRecord) -> tuple[str, ...]:
    """Returns what is equal for the same documents in the same tokens: their hash, or else all that is known of them."""
    sha256 = getattr(record.manifest, "tokens_sha256", None)
    return (sha256,) if sha256 else (record.model, record.text)


def _unit(record: AnyRecord) -> str:
    """Returns what the perplexities of a record count, in the singular."""
    return unit_name(record.manifest.split if isinstance(record, ComparisonRecord | PerplexityRecord) else None)


def _perplexity(title: str, subjects: Sequence[MeasuredSubject], units: Mapping[str, str]) -> list[Block]:
    """Returns perplexities by length; the best of a length is marked if all were measured on the same documents."""
    lengths = sorted({point.context_length for each in subjects for point in each.perplexity})

    def ranks(length: int) -> list[Hashable] | None:
        scored = {
            (each.compares, point.num_documents, point.num_tokens)
            for each in subjects
            if (point := each.point(length)) is not None and point.perplexity is not None
        }
        return [None] * len(subjects) if len(scored) <= 1 else None

    table = perplexities(LengthGrid(subjects, lengths, "run", None, ranks), title)
    apart = [f"{length:,}" for length in lengths if ranks(length) is None]
    if not apart:
        return [table]
    text = (
        f"No best is marked at {', '.join(apart)}: the runs scored different documents or tokens there, so "
        f"these perplexities cannot be compared ({_counts(subjects, units)})."
    )
    return [table, Sentence(text, WARNING)]


def _counts(subjects: Sequence[MeasuredSubject], units: Mapping[str, str]) -> str:
    """Returns how many documents each run scored, or windows."""
    counts: dict[str, int] = {}
    for each in subjects:
        run = each.name.partition(": ")[0]
        counts[run] = max([counts.get(run, 0), *(point.num_documents for point in each.perplexity)])
    return "; ".join(f"{run}: {counted(count, units[run])}" for run, count in counts.items())
