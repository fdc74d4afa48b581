"""Compares a runtime's table with what the author meant."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ropectl.errors import ConfigError
from ropectl.printable import first_line
from ropectl.records import Problem, ReadingEvidence, RuntimeReading
from ropectl.rope.frequencies import RopeFrequencies
from ropectl.runtimes.runtime import CheckpointFacts
from ropectl.runtimes.tables import Table
from ropectl.runtimes.views import CannotLoadError, View

#: Largest relative difference that counts as the same: the float32 arithmetic of all runtimes stays below.
DEVIATION_TOLERANCE = 1e-5

#: Families that normalize queries and keys after they were rotated, unless ``use_qk_norm`` is false: A changes nothing.
NORMALIZED = ("llama4_text",)

#: Problems that a flag of the launch command solves.
SERVING_CODES = ("length-capped", "length-multiplied", "position-table-short")

#: A pair below this stands still: its angle stays under 1e-6 within a million tokens [radians/token].
STANDING = 1e-12


def relative_difference(actual: Sequence[float], meant: Sequence[float]) -> float:
    """Returns the largest relative difference of a frequency, shape (P,) each; 1 where one turns that should stand still."""
    return max(
        abs(one - other) / other if other else float(one > STANDING) for one, other in zip(actual, meant, strict=True)
    )


def read(
    runtime: str,
    version: str,
    facts: CheckpointFacts,
    view_of: Callable[[CheckpointFacts], View],
    table_of: Callable[[View], Table],
    serve: Callable[[View], tuple[int | None, list[Problem]]],
    evidence: ReadingEvidence,
) -> RuntimeReading:
    """Returns what one version makes of a checkpoint.

    Args:
        runtime: Its name.
        version: Its version.
        facts: The checkpoint.
        view_of: Returns what it reads of the config.
        table_of: Returns what it computes from that.
        serve: Returns the tokens that it serves by default, None for no limit, and the red lines about them.
        evidence: How its rules are known.
    """
    if evidence.kind == "unknown":
        return RuntimeReading(runtime, version, None, None, None, None, None, None, (), evidence)
    rope_type = None
    try:
        view = view_of(facts)
        rope_type = view.rope_type
        table = table_of(view)
        usable, problems = serve(view)
        found = {length: table.frequencies(length) for length in facts.lengths}
    except (CannotLoadError, ConfigError, TypeError, ValueError, ZeroDivisionError, OverflowError) as error:
        impossible = f"stops on an impossible value: {first_line(error)}"
        problem = error.problem if isinstance(error, CannotLoadError) else Problem("cannot-load", impossible)
        return RuntimeReading(runtime, version, False, rope_type, None, None, None, None, (problem,), evidence)
    frequencies = found[facts.target_length]
    deviation = max(relative_difference(found[n].inv_freq, facts.meant(n).inv_freq) for n in facts.lengths)
    lines = (*_frequency_lines(facts, view, table, found, deviation), *table.problems, *problems)
    return RuntimeReading(
        runtime,
        version,
        True,
        rope_type,
        frequencies.inv_freq,
        frequencies.attention_factor,
        deviation,
        usable,
        tuple(dict.fromkeys(lines)),
        evidence,
    )


def _frequency_lines(
    facts: CheckpointFacts, view: View, table: Table, found: dict[int, RopeFrequencies], deviation: float
) -> list[Problem]:
    """Returns the causes of what differs; a difference without a known cause is reported as it is."""
    lines: list[Problem] = []
    if deviation > DEVIATION_TOLERANCE:
        lines = [*view.causes, *table.causes] or [
            Problem("frequencies-differ", "computes other frequencies than were meant")
        ]
    if facts.model_type in NORMALIZED and facts.section.get("use_qk_norm", True):
        return lines
    for n in facts.lengths:
        actual, meant = found[n].attention_factor, facts.meant(n).attention_factor
        explained = any(line.code in ("factor-ignored", "unscaled-in-gguf") for line in lines)
        if abs(actual - meant) > DEVIATION_TOLERANCE * meant and not explained:
            why = "; ".join(cause.text for cause in table.attention_causes)
            code = table.attention_causes[0].code if table.attention_causes else "attention-factor-misread"
            text = f"attention factor {actual:.4f} in place of {meant:.4f}"
            lines.append(Problem(code, f"{text}: {why}" if why else text))
            break
    return lines


def length_lines(usable: int, target: int, how: str = "") -> list[Problem]:
    """Returns the red line about a length that is served by default, if it is not the target [tokens].

    Args:
        usable: What is served.
        target: What is meant to work.
        how: Why, appended to the sentence.
    """
    if usable > target:
        return [Problem("length-multiplied", f"serves {usable} tokens, meant are {target}{how}")]
    if usable < target:
        return [Problem("length-capped", f"serves {usable} of {target} tokens{how}")]
    return []
