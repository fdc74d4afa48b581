"""What was run of other programs, as Markdown: a summary, then for each program family by method."""

from __future__ import annotations

from collections.abc import Mapping

from ropectl.runtimes.evidence import AGREEMENT, Outcome, Release, releases
from ropectl.runtimes.matrix import all_runtimes

AGREES, WITHIN, DIFFERS, STOPS, NOT_RUN = "=", "(=)", "≠", "stops", ""
WORDS = (
    f"`{AGREES}` computed as transformers computes it; `{WITHIN}` the same, but no more than the trained length is served, where "
    f"the scaling does not show; `{DIFFERS}` something else; `{STOPS}` not loaded; empty: not run"
)

#: Trained length of the small models [tokens].
TRAINED = 256


def runs_tables() -> str:
    """Returns a row for every release that was run, then the newest release of every server, family by method."""
    lines = [
        "| Program | Run | What | Families | Pairs | Agree | Largest difference | Differ | Stop |",
        "|---|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for runtime in all_runtimes():
        lines += [_summary(runtime.name, release) for release in releases(runtime.name).values()]
    for runtime in all_runtimes():
        found = list(releases(runtime.name).values())
        if found and runtime.name != "transformers":  # which the others are compared with
            lines += ["", f"{runtime.name} {found[-1].version}, family by method ({WORDS}):", "", *_table(found[-1])]
    return "\n".join(lines)


def _summary(name: str, release: Release) -> str:
    outcomes = [outcome for written in release.runs.values() for outcome in written.values()]
    agree = [outcome for outcome in outcomes if outcome.agrees]
    stop = sum(outcome.stops is not None for outcome in outcomes)
    cells = [
        *(f"{name} {release.version}", release.date, release.source, len(release.runs), len(outcomes), len(agree)),
        *(_largest(agree), len(outcomes) - len(agree) - stop, stop),
    ]
    return f"| {' | '.join(map(str, cells))} |"


def _largest(outcomes: list[Outcome]) -> str:
    """Returns the largest difference among runs that agree: of a token's log-probability, else of a frequency."""
    nats = [outcome.largest for outcome in outcomes if outcome.largest is not None]
    if nats:
        return f"{max(nats):.0e} nats on a token"
    deviations = [outcome.deviation for outcome in outcomes if outcome.deviation is not None]
    return f"{max(deviations):.0e} of a frequency" if deviations else "-"


def _table(release: Release) -> list[str]:
    methods = list(dict.fromkeys(written for outcomes in release.runs.values() for written in outcomes))
    head = [f"| | {' | '.join(f'`{method}`' for method in methods)} |", "|---" * (len(methods) + 1) + "|"]
    return [*head, *(_row(family, outcomes, methods) for family, outcomes in sorted(release.runs.items()))]


def _row(family: str, outcomes: Mapping[str, Outcome], methods: list[str]) -> str:
    return f"| `{family}` | {' | '.join(_cell(outcomes.get(method)) for method in methods)} |"


def _cell(outcome: Outcome | None) -> str:
    if outcome is None:
        return NOT_RUN
    if outcome.stops is not None:
        return STOPS
    if not outcome.agrees:
        return DIFFERS
    return AGREES if _shows(outcome) else WITHIN


def _shows(outcome: Outcome) -> bool:
    """Returns whether another reading of the scaling would have been seen."""
    if outcome.deviation is not None or outcome.form == "default":
        return True
    return outcome.effect > 10 * AGREEMENT if outcome.effect is not None else (outcome.served or TRAINED) > TRAINED
