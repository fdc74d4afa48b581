"""What a comparison consists of: which methods, which lengths, and what to say about them beforehand."""

from __future__ import annotations

from collections.abc import Sequence

from ropectl.data.tokens import DocumentSet
from ropectl.errors import ConfigError
from ropectl.evaluate.config import CompareConfig
from ropectl.evaluate.setup import Setup, default_lengths, missing_lengths_notes
from ropectl.records import FEW_DOCUMENTS
from ropectl.rope.method import ScalingMethod
from ropectl.rope.methods.none import NoScaling
from ropectl.rope.notes import method_notes
from ropectl.rope.registry import all_methods

#: The extension factor where none is asked for.
DEFAULT_FACTOR = 4.0


def choose_methods(setup: Setup, config: CompareConfig) -> tuple[list[ScalingMethod], list[str]]:
    """Returns the methods to compare, the unscaled baseline first, each once; and what to say about them."""
    notes = list(setup.source.rope.warnings)
    chosen = [setup.method(spec) for spec in config.methods]
    existing = setup.source.rope.method
    if not config.methods and existing.name != "none" and not config.replace:
        notes.append(
            f"{setup.source.name} is already scaled: {existing.label} is compared with no scaling. "
            "To compare every method in its place: --replace."
        )
    elif not config.methods:
        for name, kind in all_methods().items():
            missing = kind.missing(kind.fill_factor({}, setup.factor or DEFAULT_FACTOR, setup.geometry))
            if missing:
                notes.append(
                    f"{name} is not compared: it needs {', '.join(missing)}. To include it: -m {name}:{missing[0]}=..."
                )
            else:
                chosen.append(setup.method(name))
    methods = list(dict.fromkeys([NoScaling(), existing, *chosen]))
    for method in methods:
        notes.extend(method_notes(method, setup.geometry, seq_len=setup.trained_length))
    return methods, notes


def comparison_target(setup: Setup, config: CompareConfig, methods: Sequence[ScalingMethod]) -> int:
    """Returns the context that the comparison is about: what was asked for, else the largest factor's [tokens]."""
    factors = [float(method.factor) for method in methods if hasattr(method, "factor")]
    factor = setup.factor or max(factors, default=DEFAULT_FACTOR)
    return config.target_length or setup.geometry.target_length(factor)


def choose_lengths(
    setup: Setup, config: CompareConfig, methods: Sequence[ScalingMethod], shortest: int
) -> tuple[list[int], list[str]]:
    """Returns the lengths to compare at, the trained one always among them; and what to say about them.

    Args:
        setup: The model.
        config: What was asked for.
        methods: What is compared; their largest factor is the target where none is named.
        shortest: No length may be below this [tokens].

    Raises:
        ConfigError: If a length is below ``shortest``.
    """
    trained = setup.trained_length
    if not config.lengths:
        target = comparison_target(setup, config, methods)
        lengths = [length for length in default_lengths(trained, target) if length >= min(shortest, trained)]
    else:
        lengths = sorted({*config.lengths, trained})
    if lengths[0] < shortest:
        raise ConfigError(
            f"length = {lengths[0]} tokens is too short for a passkey prompt, which takes {shortest} with this tokenizer.",
            f"Use lengths of at least {shortest}, or --no-passkey.",
        )
    if config.lengths and trained not in config.lengths:
        return lengths, [f"The trained length {trained} is measured too: verdicts are made against it."]
    return lengths, []


def document_notes(chosen: DocumentSet, lengths: Sequence[int], text: str) -> list[str]:
    """Returns where documents are too short, or too few for a verdict."""
    notes = missing_lengths_notes(chosen, lengths, text)
    longest, count = chosen.length, len(chosen.documents)
    if count < FEW_DOCUMENTS:
        notes.append(
            f"{count} document{'s' if count > 1 else ''} of {text} scored, at {longest} tokens: few for a verdict (at least {FEW_DOCUMENTS})."
        )
    return notes
