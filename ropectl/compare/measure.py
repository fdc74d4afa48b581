"""Measures the cells that have no record yet, shared among the processes of a launcher."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ropectl.compare.cells import ComparisonCell
from ropectl.compare.ranks import Ranks
from ropectl.evaluate.setup import Setup
from ropectl.hf.model.loading import ran_on
from ropectl.output_places import PLAN_FILE, check_writable
from ropectl.records import to_json
from ropectl.reporter import Reporter
from ropectl.runs import RunFolder, content_id, write_json


@dataclass(frozen=True)
class ModelCells:
    """The cells of one model.

    Attributes:
        setup: The model; its weights load if a cell is missing, and are released after it.
        cells: Its cells.
    """

    setup: Setup
    cells: Sequence[ComparisonCell]


@dataclass(frozen=True)
class CellRunner:
    """Measures cells and keeps their records.

    Attributes:
        folder: The run folder.
        ranks: The processes that share the work.
        reporter: Receives progress and notes.
        plan: All that is to be measured; written next to the records when the first is about to be made.
        retry_failed: Whether cells that failed before are tried again.
    """

    folder: RunFolder
    ranks: Ranks
    reporter: Reporter
    plan: Mapping[str, Any] = field(default_factory=dict)
    retry_failed: bool = False

    def measure(self, groups: Sequence[ModelCells], resumed: bool = True) -> list[list[dict[str, Any]]]:
        """Returns the records of all cells, by group and in order, having measured those that were missing.

        Args:
            groups: Models and their cells.
            resumed: Whether to say how many were there already.
        """
        # The main process decides what is missing: by the time another one looks, records may have been added.
        failed = not self.retry_failed
        found = self.ranks.agree([[c.record_in(self.folder, failed) for c in group.cells] for group in groups])
        missing = [
            (number, cell)
            for number, (group, records) in enumerate(zip(groups, found, strict=True))
            for cell, record in zip(group.cells, records, strict=True)
            if record is None
        ]
        count = sum(len(group.cells) for group in groups)
        if resumed and len(missing) < count:
            self.reporter.note(f"{count - len(missing)} of {count} cells are already in {self.folder.path}.")
        made: dict[str, dict[str, Any]] = {}
        if missing:
            check_writable(self.folder.path)
            own = self.ranks.share(missing, lambda entry: entry[1].cost.total)
            made = {record["id"]: record for record in self.ranks.gather(self._run(groups, own))}
        if self.ranks.is_main and self.ranks.count > 1:
            for record in made.values():  # those of other machines, where the folder is not shared
                self.folder.keep(record["settings"], record)
        return [
            [record or made[content_id(cell.settings)] for cell, record in zip(group.cells, records, strict=True)]
            for group, records in zip(groups, found, strict=True)
        ]

    def begin(self) -> None:
        """Writes the plan before something is measured: without it, nothing could tell what a killed run lacks.

        It also tells afterwards which command measured last.
        """
        if self.ranks.is_main and self.plan:
            write_json(self.folder.path / PLAN_FILE, self.plan)

    def _loaded(self, group: ModelCells, number: int) -> tuple[Any, Exception | None]:
        """Returns the model of a group, or the reason why it cannot load; without the first nothing can be compared."""
        try:
            return group.setup.model, None
        except Exception as error:
            if number == 0:
                raise
            return None, error

    def _run(self, groups: Sequence[ModelCells], own: Sequence[tuple[int, ComparisonCell]]) -> list[dict[str, Any]]:
        """Measures this process's cells, one model after the other; returns their records."""
        records: list[dict[str, Any]] = []
        self.reporter.start("measuring", sum(cell.cost.total for _, cell in own))
        for number, group in enumerate(groups):
            cells = [cell for owner, cell in own if owner == number]
            if not cells:
                continue
            model, failure = self._loaded(group, number)
            if not records:
                self.begin()  # not before a model was there: a request that cannot work leaves no folder
            for cell in cells:
                self.reporter.cell(cell.label, f"{cell.kind} {cell.length}", cell.cost.total / max(1, cell.tokens))
                started = time.perf_counter()
                outcome = cell.failure(failure) if failure else cell.outcome(model, self.reporter.advance)
                outcome["seconds"] = round(time.perf_counter() - started, 3)
                if model is not None:
                    outcome["ran_on"] = to_json(ran_on(model))
                records.append(self.folder.write_cell(cell.settings, outcome))
            del model
            group.setup.release()
        return records
