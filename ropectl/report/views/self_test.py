"""The view of ``inspect --self-test``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ropectl.report.document import BAD, Cell, Column, Part, Row, Sentence, Table, cells, columns
from ropectl.rope.geometry import describe_rotary_dim
from ropectl.rope.method import short_spec

_RELATIONS = {"at most": "<=", "more than": ">"}


def self_test_parts(record: Mapping[str, Any]) -> list[Part]:
    """Returns one table of checks per method, where the mean score turns negative, and the bounds of the base."""
    geometry, length = record["geometry"], record["target_length"]
    trained = geometry["original_max_position_embeddings"]
    parts: list[Part] = [
        Sentence(
            f"{record['model']}: {describe_rotary_dim(geometry)}, rope_theta {geometry['rope_theta']:g}, L = {trained}"
        ),
        Sentence(f"code {record['function']}"),
        Sentence(f"pairs: {record['pairing'] or 'not known'}; positions up to {length}; scores relative to |q||k|A²"),
    ]
    for method in dict.fromkeys((check["method"], check["seq_len"]) for check in record["checks"]):
        checks = [check for check in record["checks"] if (check["method"], check["seq_len"]) == method]
        parts.append(_checks_table(_named(*method), checks))
    parts.append(_decay_table(record))
    parts.extend(Sentence(line) for line in _base_lines(record))
    failed = sum(not check["passed"] for check in record["checks"])
    total = len(record["checks"])
    parts.append(Sentence(f"{failed} of {total} checks failed" if failed else f"all {total} checks passed"))
    return parts


def _named(method: str, seq_len: int | None) -> str:
    return short_spec(method) + (f", frozen at {seq_len}" if seq_len else "")


def _checks_table(title: str, checks: list[Mapping[str, Any]]) -> Table:
    rows = []
    for check in checks:
        relation = _RELATIONS.get(check["relation"])
        allowed = f"{relation} {check['allowed']:.1e}" if relation else check["relation"]
        passed = Cell("yes") if check["passed"] else Cell("NO", tone=BAD)
        measured = "no number" if check["measured"] is None else f"{check['measured']:.1e}"
        rows.append(Row(check["name"], [*cells((measured, allowed)), passed]))
    return Table(title, "check", [*columns(("measured", "allowed")), Column("passed", is_text=True)], rows)


def _decay_table(record: Mapping[str, Any]) -> Table:
    rows = []
    for curve in record["decay"]:
        name = (
            f"rope_theta {curve['rope_theta']:g}"
            if curve["kind"] == "base"
            else _named(curve["method"], curve["seq_len"])
        )
        first = "never" if curve["first_negative"] is None else str(curve["first_negative"])
        rows.append(Row(name, cells((first, f"{min(curve['low']):.4f}"))))
    heads = columns(("first negative at m =", f"lowest up to {record['target_length']}"))
    return Table("Mean score at distance m: 1/P sum cos(m inv_freq)", "frequencies", heads, rows)


def _base_lines(record: Mapping[str, Any]) -> list[str]:
    base = record["geometry"]["rope_theta"]
    own = next(curve for curve in record["decay"] if curve["kind"] == "base" and curve["rope_theta"] == base)
    lines = []
    for bound in record["base_bounds"]:
        context, lowest = bound["context_length"], bound["lowest_base"]
        needed = "no base does that" if lowest is None else f"takes a base of about {lowest:.1e}"
        keeps = own["first_negative"] is None or own["first_negative"] > context
        verdict = "does it" if keeps else "does not"
        lines.append(f"a mean score that is never negative within {context}: {needed}; {base:g} {verdict}")
    return lines
