"""From the records of a comparison's cells to one row per method."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ropectl.evaluate.config import CompareConfig
from ropectl.evaluate.reach import models_length, short_delta, uses_length
from ropectl.records import MethodRow, PerplexityPoint, Reach, passkey_length_from_json
from ropectl.rope.frequencies import reach_tokens
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.method import ScalingMethod

if TYPE_CHECKING:
    from ropectl.compare.cells import Cell


def method_rows(
    methods: Sequence[ScalingMethod],
    cells: Sequence[Cell],
    records: Sequence[dict[str, Any]],
    geometry: RopeGeometry,
    config: CompareConfig,
) -> list[MethodRow]:
    """Returns the rows in the order of ``methods``; the first is the unscaled baseline.

    Args:
        methods: What was compared.
        cells: The cells of all methods.
        records: Their records, in the same order; a failed cell's holds its error.
        geometry: What the model was trained with.
        config: Tolerances of the verdicts.
    """
    by_method: dict[str, list[tuple[Cell, dict[str, Any]]]] = {}
    for cell, record in zip(cells, records, strict=True):
        by_method.setdefault(cell.method, []).append((cell, record))
    trained = geometry.original_max_position_embeddings
    baseline = by_method[str(methods[0])]
    base_prefix, base_tail = _points(baseline, "prefix"), _points(baseline, "tail")
    base_at_trained = next((point for point in base_tail if point.context_length == trained), None)
    rows = []
    for method in methods:
        own = by_method[str(method)]
        prefix, tail = _points(own, "prefix"), _points(own, "tail")
        passkey = [passkey_length_from_json(r["result"]) for cell, r in own if cell.kind == "passkey" and "result" in r]
        complete = all("result" in record for cell, record in own if cell.kind == "passkey")
        reach = Reach(
            computes=_computes(method, geometry, [cell.length for cell, _ in own]),
            models=models_length(tail, base_at_trained, config.tolerance),
            uses=uses_length(passkey, config.min_accuracy) if complete else None,
        )
        errors = [f"{cell.kind} {cell.length}: {r['error']['message']}" for cell, r in own if "error" in r]
        seconds = round(sum(record["seconds"] for _, record in own), 3)
        rows.append(
            MethodRow(
                str(method), prefix, tail, passkey, reach, short_delta(prefix, base_prefix, trained), seconds, errors
            )
        )
    return rows


def _points(entries: Sequence[tuple[Cell, dict[str, Any]]], kind: str) -> list[PerplexityPoint]:
    results = [record["result"] for cell, record in entries if cell.kind == kind and "result" in record]
    return [PerplexityPoint(**point) for result in results for point in result["points"]]


def _computes(method: ScalingMethod, geometry: RopeGeometry, lengths: Sequence[int]) -> int | None:
    """The formula's reach; for a method that follows the length, the longest evaluated length it covers itself."""
    if not method.depends_on_seq_len:
        return reach_tokens(geometry, method.frequencies(geometry))
    reached = geometry.original_max_position_embeddings
    for length in sorted(set(lengths)):
        limit = reach_tokens(geometry, method.frequencies(geometry, length))
        if limit is None or limit >= length:
            reached = max(reached, length)
    return reached
