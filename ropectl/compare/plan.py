"""What a comparison consists of: which methods, which lengths, and what to say about them beforehand."""

from __future__ import annotations

from collections.abc import Sequence

from ropectl.data.tokens import DocumentSet
from ropectl.evaluate.config import CompareConfig
from ropectl.evaluate.reach import FEW_DOCUMENTS
from ropectl.evaluate.reporter import Reporter
from ropectl.evaluate.setup import Setup, default_lengths
from ropectl.rope.method import ScalingMethod
from ropectl.rope.methods.none import NoScaling
from ropectl.rope.notes import method_notes
from ropectl.rope.registry import all_methods

#: The extension factor where none is asked for.
DEFAULT_FACTOR = 4.0


def choose_methods(setup: Setup, config: CompareConfig, reporter: Reporter) -> list[ScalingMethod]:
    """Returns the methods to compare, the unscaled baseline first, each once."""
    baseline = NoScaling()
    if config.methods:
        chosen = [setup.method(spec) for spec in config.methods]
    else:
        chosen = []
        for name, kind in all_methods().items():
            missing = kind.missing(kind.fill_factor({}, setup.factor or DEFAULT_FACTOR, setup.geometry))
            if missing:
                reporter.note(
                    f"{name} is not compared: it needs {', '.join(missing)}. To include it: -m {name}:{missing[0]}=..."
                )
            else:
                chosen.append(setup.method(name))
    existing = setup.source.rope.method
    if existing.name != "none" and existing not in chosen:
        chosen.insert(0, existing)
    for method in chosen:
        for note in method_notes(method, setup.geometry, seq_len=setup.trained_length):
            reporter.note(note)
    return list(dict.fromkeys([baseline, *chosen]))


def choose_lengths(
    setup: Setup, config: CompareConfig, methods: Sequence[ScalingMethod], reporter: Reporter
) -> list[int]:
    """Returns the lengths to compare at; one up to the trained length is always among them."""
    trained = setup.trained_length
    if not config.lengths:
        factors = [float(method.factor) for method in methods if hasattr(method, "factor")]
        factor = setup.factor or max(factors, default=DEFAULT_FACTOR)
        target = config.target_length or setup.geometry.target_length(factor)
        return default_lengths(trained, target)
    lengths = sorted(set(config.lengths))
    if trained not in lengths:
        reporter.note(f"The trained length {trained} is measured too: verdicts are made against it.")
        lengths = sorted([*lengths, trained])
    return lengths


def note_documents(chosen: DocumentSet, lengths: Sequence[int], text: str, reporter: Reporter) -> None:
    """Says where documents are too short or too few for a verdict."""
    longest, count = chosen.length, len(chosen.documents)
    missing = [str(length) for length in lengths if length > longest]
    if missing:
        reporter.note(f"{text} has no document of {', '.join(missing)} tokens: perplexity there is n/a.")
    if count < FEW_DOCUMENTS:
        reporter.note(
            f"Only {count} document{'s' if count > 1 else ''} of {text} reach {longest} tokens: few for a verdict (at least {FEW_DOCUMENTS})."
        )
