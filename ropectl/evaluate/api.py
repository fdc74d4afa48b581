"""One measurement of one method: configuration in, JSON document out.

What runs models is imported where it is first needed: loading torch takes seconds, and a typing error is
told without it.
"""

from __future__ import annotations

from typing import Any

from ropectl.errors import ConfigError
from ropectl.evaluate.config import PerplexityConfig
from ropectl.evaluate.reporter import Reporter, SilentReporter
from ropectl.evaluate.setup import Setup, default_lengths, missing_lengths_notes
from ropectl.records import SCHEMA_VERSION, to_json
from ropectl.rope.method import ScalingMethod
from ropectl.rope.notes import method_notes
from ropectl.runs import command_line, package_versions

PROTOCOLS = ("prefix", "tail")


def evaluate_perplexity(config: PerplexityConfig | None = None, reporter: Reporter | None = None) -> dict[str, Any]:
    """Returns perplexity over context lengths of one model under one method.

    Args:
        config: What to measure; by default ``builtin:tiny`` as it is, on ``builtin:stdlib``.
        reporter: Told about progress and notes.

    Raises:
        RopectlError: If the request cannot work; found before weights load.
    """
    config, reporter = config or PerplexityConfig(), reporter or SilentReporter()
    if config.protocol not in PROTOCOLS:
        raise ConfigError(f"protocol = {config.protocol!r} is not possible: allowed are {', '.join(PROTOCOLS)}.")
    setup = Setup.of(config)
    method, lengths, notes = _method_and_lengths(setup, config.method, config.lengths)
    documents = setup.documents(lengths)
    from ropectl.evaluate.perplexity import measure_perplexity, measure_tail, num_tail_targets, tokens_to_run

    passes: dict[str, Any] = {
        "layers": setup.source.rope.layer_type,
        "capacity": setup.source.rope.capacity(method),
        "prefill_chunk": config.prefill_chunk,
        "batch_size": config.batch_size,
        "progress": reporter.advance,
    }
    num_targets = num_tail_targets(lengths)
    for note in (*notes, *missing_lengths_notes(documents, lengths, config.text)):
        reporter.note(note)
    model = setup.model
    reporter.start(tokens_to_run(config.protocol, method, lengths, documents))
    reporter.cell(method.label, config.protocol)
    if config.protocol == "tail":
        points = measure_tail(model, method, setup.geometry, documents, lengths, num_targets, **passes)
    else:
        points = measure_perplexity(model, method, setup.geometry, documents, lengths, **passes)
    return {
        **_header(setup, method),
        "text": config.text,
        "protocol": config.protocol,
        "points": [to_json(point) for point in points],
        "manifest": {
            **_manifest(setup),
            "documents": [document.name for document in documents.documents],
            "tokens_sha256": documents.fingerprint(),
            **({"tail_targets_per_document": num_targets} if config.protocol == "tail" else {}),
        },
    }


def _method_and_lengths(
    setup: Setup, spec: str | None, lengths: tuple[int, ...]
) -> tuple[ScalingMethod, list[int], list[str]]:
    """The method, the lengths, and what to say about them once everything else is checked too."""
    if spec is None and setup.factor is not None:
        raise ConfigError(
            "--factor and --target-length need a method to apply them to.", "Type for example: -m yarn --factor 4"
        )
    if spec is None and setup.config.replace:
        raise ConfigError(
            "--replace needs a method to put in place of the checkpoint's scaling.",
            "Type for example: --replace -m none",
        )
    method = setup.method(spec)
    notes = [*setup.source.rope.warnings, *method_notes(method, setup.geometry, seq_len=setup.trained_length)]
    if setup.factor is not None and not type(method).fill_factor({}, setup.factor, setup.geometry):
        notes.append(
            f"{method.label} has no extension factor: the one asked for decides only up to which length is measured."
        )
    chosen = sorted(set(lengths)) or default_lengths(setup.trained_length, setup.target(method))
    limit = setup.source.rope.capacity(method)
    beyond = [str(length) for length in chosen if limit is not None and length > limit]
    if beyond:
        notes.append(
            f"Beyond what {method.label} is made for ({limit} tokens): {', '.join(beyond)}. Measured, and marked."
        )
    return method, chosen, [*notes, *setup.window_notes(chosen), *setup.attention_notes(chosen)]


def _header(setup: Setup, method: ScalingMethod) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        "model": setup.config.model,
        "method": str(method),
        "geometry": setup.geometry.to_json(),
    }


def _manifest(setup: Setup) -> dict[str, Any]:
    return {
        "command": command_line(),
        "config": setup.config.model_dump(mode="json"),
        "versions": package_versions(),
        "bos_token_id": setup.bos_token_id,
    }
