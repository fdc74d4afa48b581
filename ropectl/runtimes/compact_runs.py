"""Runs of a hundred families in few bytes: a letter for each, and numbers only where they say something.

A family is ``{"codes": "=!s ", "largest": 3e-7, "differ": [0.75], "stops": [2], "forms": {}}``: a code for every written scaling in
the order of ``written``, the largest deviation of those that agree, the deviations of those that differ, the messages of those that
stop, and the forms that are not the usual ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

AGREES, DIFFERS, STOPS, NOT_RUN = "=!s "


def expand(content: Mapping[str, Any]) -> dict[str, dict[str, dict[str, Any]]]:
    """Returns, by family and by what was written, the fields of an outcome."""
    return {
        family: dict(_outcomes(found, content["written"], content["stops"]))
        for family, found in content["families"].items()
    }


def _outcomes(
    found: Mapping[str, Any], written: Mapping[str, str], messages: list[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    differ, stops = iter(found.get("differ", ())), iter(found.get("stops", ()))
    for code, (name, form) in zip(found["codes"], written.items(), strict=True):
        fields: dict[str, Any] = {"form": found.get("forms", {}).get(name, form)}
        if code == STOPS:
            fields["stops"] = messages[next(stops)]
        elif code != NOT_RUN:
            fields["deviation"] = next(differ) if code == DIFFERS else found["largest"]
        if code != NOT_RUN:
            yield name, fields


def compact(runs: Mapping[str, Mapping[str, Mapping[str, Any]]], tolerance: float) -> dict[str, Any]:
    """Returns what :func:`expand` reads.

    Args:
        runs: By family and by what was written, the fields of an outcome: ``form``, and ``stops`` or ``deviation``.
        tolerance: The deviation up to which an outcome agrees.
    """
    written: dict[str, str] = {}
    for outcomes in runs.values():
        for name, fields in outcomes.items():
            written.setdefault(name, fields["form"])
    messages: dict[str, int] = {}
    families = {}
    for family, outcomes in runs.items():
        codes, differ, stops, largest = "", [], [], 0.0
        for name in written:
            fields = outcomes.get(name, {})
            if not fields:
                codes += NOT_RUN
            elif fields.get("stops"):
                codes += STOPS
                stops.append(messages.setdefault(fields["stops"], len(messages)))
            elif fields["deviation"] > tolerance:
                codes += DIFFERS
                differ.append(float(f"{fields['deviation']:.2g}"))
            else:
                codes += AGREES
                largest = max(largest, float(f"{fields['deviation']:.2g}"))
        forms = {name: fields["form"] for name, fields in outcomes.items() if fields["form"] != written[name]}
        found = {"codes": codes, "largest": largest, "differ": differ, "stops": stops, "forms": forms}
        families[family] = {key: value for key, value in found.items() if value or key in ("codes", "largest")}
    return {"written": written, "stops": list(messages), "families": families}
