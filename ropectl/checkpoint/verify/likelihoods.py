"""Log-probabilities of the same tokens under each reading, from the checkpoint itself in transformers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ropectl.checkpoint.verify.known_readings import KnownReading
from ropectl.checkpoint.verify.passages import Passage
from ropectl.checkpoint.verify.rotation import Rotation
from ropectl.errors import ConfigError, PatchError
from ropectl.hf.config.source import ModelSource
from ropectl.hf.model.loading import LoadOptions, load_model, ran_on
from ropectl.records import RanOn
from ropectl.reporter import Reporter
from ropectl.rope.frequencies import RopeFrequencies


@dataclass(frozen=True)
class Likelihoods:
    """The log-probabilities of one text under the readings.

    Attributes:
        readings: Those that could be computed, in the order given.
        logprobs: One list a reading, one number a compared position [nats].
        skipped: Why the others could not be computed, by code.
        ran_on: What they were computed on.
    """

    readings: list[KnownReading]
    logprobs: list[list[float]]
    skipped: dict[str, str]
    ran_on: RanOn = field(default_factory=RanOn)


def own_likelihoods(
    source: ModelSource,
    options: LoadOptions,
    readings: Sequence[KnownReading],
    ids: Sequence[int],
    passages: Sequence[Passage],
    reporter: Reporter,
) -> Likelihoods:
    """Returns what transformers computes under each reading; the weights are loaded once.

    Each table is run once, over the longest sequence that it serves.

    Args:
        source: The checkpoint.
        options: How it is loaded.
        readings: The readings; the first is computed without any change to the model, unless it follows the length.
        ids: The text.
        passages: What is compared.
        reporter: Shows progress.

    Raises:
        PatchError: If the first reading cannot be computed.
    """
    trained = readings[0].below.geometry.original_max_position_embeddings
    longest: dict[RopeFrequencies, int] = {}
    for reading in readings:
        for passage in passages:
            table = reading.rotation(passage.num_tokens, trained).frequencies(passage.num_tokens)
            longest[table] = max(longest.get(table, 0), passage.num_tokens)
    model = load_model(source, options)
    reporter.start("readings in transformers", float(sum(longest.values())))
    done: dict[RopeFrequencies, list[float]] = {}
    kept, found, skipped = [], [], {}
    for number, reading in enumerate(readings):
        row: list[float] = []
        try:
            for passage in passages:
                rotation = reading.rotation(passage.num_tokens, trained)
                table = rotation.frequencies(passage.num_tokens)
                if table not in done:
                    rotated = None if number == 0 and not rotation.method.depends_on_seq_len else rotation
                    done[table] = _logprobs(model, source, rotated, passage.num_tokens, ids[: longest[table]])
                    reporter.advance(longest[table])
                row += [done[table][position - 1] for position in passage.positions]
        except (PatchError, ConfigError) as error:
            if number == 0:
                raise
            skipped[reading.code] = error.message
            continue
        kept.append(reading)
        found.append(row)
    return Likelihoods(kept, found, skipped, ran_on(model))


def _logprobs(
    model: object, source: ModelSource, rotation: Rotation | None, num_tokens: int, ids: Sequence[int]
) -> list[float]:
    """Returns the log-probability of every token but the first [nats]; None for the rotation computes the model as it is."""
    import torch

    from ropectl.evaluate.forward import Forward
    from ropectl.hf.model.patch import apply_rope

    tokens = torch.tensor([list(ids)])
    if rotation is None:
        nll = Forward.of(model).token_nll(tokens)
    else:
        seq_len = num_tokens if rotation.method.depends_on_seq_len else None
        layers = source.rope.layer_type
        with apply_rope(model, rotation.method, geometry=rotation.geometry, seq_len=seq_len, layers=layers):  # type: ignore[arg-type]
            nll = Forward.of(model).token_nll(tokens)
    return [-value for value in nll[0].tolist()]
