"""What the installed transformers makes of a config: its own classes are asked, wherever they were not run before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timezone
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from ropectl.errors import ConfigError, UnsupportedModelError
from ropectl.printable import first_line
from ropectl.records import Problem, ReadingEvidence, RuntimeReading
from ropectl.rope.frequencies import RopeFrequencies
from ropectl.runtimes.judge import DEVIATION_TOLERANCE, read, relative_difference
from ropectl.runtimes.runtime import CheckpointFacts
from ropectl.runtimes.tables import Table
from ropectl.runtimes.views import CannotLoadError, View, v5_block


@cache
def installed_version() -> str | None:
    """Returns the release of transformers that is installed; None if there is none."""
    try:
        return version("transformers")
    except PackageNotFoundError:
        return None


def built_reading(
    predicted: Callable[[ReadingEvidence], RuntimeReading],
    facts: CheckpointFacts,
    serve: Callable[[View], tuple[int | None, list[Problem]]],
) -> RuntimeReading:
    """Returns what the installed classes build, in the words of the rules where these say the same.

    Args:
        predicted: Returns what the rules say, given how it is known.
        facts: The checkpoint.
        serve: As for :func:`ropectl.runtimes.judge.read`.
    """
    today = datetime.now(timezone.utc).date().isoformat()
    evidence = ReadingEvidence("run", installed_version(), today, "the installed classes, without weights")
    expected = predicted(evidence)
    try:
        built = _build(facts)
    except UnsupportedModelError as error:
        return predicted(ReadingEvidence("unknown", source=first_line(error)))
    except CannotLoadError as error:
        if expected.loads is False:
            return expected
        return replace(
            read("transformers", expected.version, facts, _view, _raising(error), serve, evidence), rope_type=None
        )
    counts = {len(built[length].inv_freq) for length in facts.lengths} - {facts.geometry.num_pairs}
    if counts:
        text = f"rotates {counts.pop()} pairs, not {facts.geometry.num_pairs}"
        problem = Problem("frequencies-differ", text)
        rope_type, factor = _view(facts).rope_type, built[facts.target_length].attention_factor
        inv_freq = built[facts.target_length].inv_freq
        return replace(
            expected,
            loads=True,
            rope_type=rope_type,
            inv_freq=inv_freq,
            attention_factor=factor,
            max_deviation=None,
            problems=(problem,),
        )
    found = read("transformers", expected.version, facts, _view, lambda view: Table(built.__getitem__), serve, evidence)
    return expected if _agree(expected, found) else found


def _build(facts: CheckpointFacts) -> dict[int, RopeFrequencies]:
    from transformers import CONFIG_MAPPING

    from ropectl.hf.model.built_tables import built_tables

    model_type = facts.config.get("model_type")
    if model_type not in CONFIG_MAPPING and "auto_map" in facts.config:
        raise UnsupportedModelError(f"{model_type} comes with its own code")
    if model_type not in CONFIG_MAPPING:
        raise CannotLoadError(f"no model type {model_type!r}", "no-such-model-type")
    try:
        return built_tables(facts.config, facts.layer_type, facts.lengths)
    except UnsupportedModelError:
        raise
    except ConfigError as error:
        raise CannotLoadError(f"stops: {first_line(error)}") from error


def _raising(error: CannotLoadError) -> Callable[[View], Table]:
    def table(view: View) -> Table:
        raise error

    return table


def _view(facts: CheckpointFacts) -> View:
    """Returns the little that a reading shows of a view; nothing is computed from it."""
    block, geometry = v5_block(facts), facts.geometry
    rope_type = str(block.get("rope_type") or block.get("type") or "default")
    length = geometry.original_max_position_embeddings
    return View(rope_type, block, geometry.rope_theta, length, None, geometry.rotary_dim, facts.model_type)


def _agree(left: RuntimeReading, right: RuntimeReading) -> bool:
    """Returns whether two readings say the same of the frequencies and the factor on them."""
    if not (left.inv_freq and right.inv_freq) or len(left.inv_freq) != len(right.inv_freq):
        return False
    factors = abs((left.attention_factor or 0) - (right.attention_factor or 0)) <= DEVIATION_TOLERANCE
    deviations = abs((left.max_deviation or 0) - (right.max_deviation or 0)) <= DEVIATION_TOLERANCE * (
        1 + (right.max_deviation or 0)
    )
    return factors and deviations and relative_difference(left.inv_freq, right.inv_freq) <= DEVIATION_TOLERANCE
