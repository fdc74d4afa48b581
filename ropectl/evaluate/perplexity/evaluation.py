"""Perplexity of one method: settings in, record out.

Whatever runs models is imported where it is first needed: loading torch takes seconds, and a typing error is
reported without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ropectl.data.units import drawn_unit
from ropectl.evaluate.config import PerplexityConfig
from ropectl.evaluate.cost import ForwardCost
from ropectl.evaluate.judging.paired import loss_difference
from ropectl.evaluate.judging.statistics import BOOTSTRAP_SEED, RESAMPLES
from ropectl.evaluate.judging.verdict_sentences import perplexity_verdict
from ropectl.evaluate.judging.verdicts import Reached, models_verdicts, reached, short_delta, short_lengths
from ropectl.evaluate.perplexity.prepared import PreparedPerplexity, prepare_perplexity
from ropectl.evaluate.perplexity.protocols.key_tokens import KeyTokens
from ropectl.evaluate.perplexity.windows import PassOptions, PerplexityRequest, WindowWork, work_of
from ropectl.evaluate.request import manifest
from ropectl.evaluate.setup import Setup
from ropectl.evaluate.shared_config import MODELS_TOLERANCE
from ropectl.records import (
    Bootstrap,
    Difference,
    FirstToken,
    ModelsReach,
    PerplexityManifest,
    PerplexityPoint,
    PerplexityRecord,
    to_json,
)
from ropectl.reporter import Reporter
from ropectl.rope.methods.none import NoScaling
from ropectl.timing.operations import NOTHING, Cost


def evaluate_perplexity(config: PerplexityConfig | None = None, reporter: Reporter | None = None) -> dict[str, Any]:
    """Returns perplexity over context lengths of one model under one method.

    If the method is not ``none``, the unscaled model scores the same targets at the lengths up to the trained one.

    Args:
        config: What to measure; by default ``builtin:tiny`` as it is, on ``builtin:stdlib``.
        reporter: Receives progress and notes.

    Returns:
        A :class:`~ropectl.records.PerplexityRecord` as plain JSON values.

    Raises:
        RopectlError: If the request cannot work; found before weights load.
    """
    reporter = reporter or Reporter()
    asked = prepare_perplexity(config or PerplexityConfig())
    for note in asked.notes:
        reporter.note(note)
    request, baseline = asked.request, asked.baseline
    if asked.key_setup is not None:
        request = replace(request, keys=_keys_of(asked, asked.key_setup, reporter))
    _ = asked.setup.model
    requests = [request] if baseline is None else [request, baseline]
    works = [_work(asked, asked.setup, one) for one in requests]
    cost = sum((work.cost for work in works), NOTHING)
    reporter.start("measuring", sum(work.tokens for work in works), cost=cost)
    points, *unscaled = [_measured(asked, one, reporter, work.cost) for one, work in zip(requests, works, strict=True)]
    return to_json(_record(asked, request, points, unscaled[0] if unscaled else []))


def _options(asked: PreparedPerplexity, setup: Setup, reporter: Reporter) -> PassOptions:
    config = asked.config
    progress = ForwardCost.of(setup.source.config).reported(reporter.advance)
    return PassOptions(setup.source.rope.layer_type, config.prefill_chunk, config.batch_size, progress)


def _work(asked: PreparedPerplexity, setup: Setup, request: PerplexityRequest) -> WindowWork:
    """Returns what a request takes on a model."""
    options = PassOptions(prefill_chunk=asked.config.prefill_chunk, batch_size=asked.config.batch_size)
    forward = ForwardCost.of(setup.source.config)
    return work_of(asked.protocol.passes(request), request.documents, forward, options)


def _measured(
    asked: PreparedPerplexity, request: PerplexityRequest, reporter: Reporter, cost: Cost
) -> list[PerplexityPoint]:
    """Returns the points of a request, run on the measured model."""
    from ropectl.evaluate.perplexity.runner import measure_perplexity

    reporter.cell(request.method.label, asked.protocol.name, cost)
    return measure_perplexity(asked.setup.model, asked.protocol, request, _options(asked, asked.setup, reporter))


def _record(
    asked: PreparedPerplexity,
    request: PerplexityRequest,
    points: list[PerplexityPoint],
    unscaled: list[PerplexityPoint],
) -> PerplexityRecord:
    trained, config = request.trained_length, asked.config
    models = Reached(None, None, [])
    tolerance = MODELS_TOLERANCE if config.tolerance is None else config.tolerance
    reference = points if request.method == NoScaling() else unscaled
    at_trained = next((point for point in reference if point.context_length == trained), None)
    clusters = request.documents.clusters
    if asked.protocol.judges_models:
        models = reached(models_verdicts(points, at_trained, tolerance, clusters), trained)
    delta = short_delta(points, unscaled, trained, clusters)
    return PerplexityRecord(
        model=config.model,
        method=str(request.method),
        geometry=asked.setup.geometry,
        text=config.text,
        protocol=asked.protocol.name,
        preset=config.preset,
        stride=request.stride,
        bos=_first_token(asked.setup),
        points=points,
        unscaled=unscaled,
        reach=ModelsReach(*models),
        differences=_differences(asked.protocol.name, points, unscaled, clusters),
        short_delta=None if delta is None else delta.value,
        short_delta_ci_low=None if delta is None else delta.ci_low,
        short_delta_ci_high=None if delta is None else delta.ci_high,
        verdict=perplexity_verdict(
            models, at_trained, delta, short_lengths(points, unscaled, trained), trained, tolerance, _drawn(request)
        ),
        manifest=_manifest(asked.setup, request),
    )


def _drawn(request: PerplexityRequest) -> str:
    """Returns what intervals are over."""
    return drawn_unit(request.documents.split, request.documents.shared_clusters)


def _differences(
    protocol: str,
    points: Sequence[PerplexityPoint],
    unscaled: Sequence[PerplexityPoint],
    clusters: Sequence[int] | None,
) -> list[Difference]:
    """Returns how much higher the loss is than the unscaled model's, at the lengths that it was measured at."""
    ours = {point.context_length: point for point in points}
    found = [loss_difference(protocol, ours[theirs.context_length], theirs, clusters) for theirs in unscaled]
    return [difference for difference in found if difference is not None]


def _keys_of(asked: PreparedPerplexity, key_setup: Setup, reporter: Reporter) -> dict[int, Any]:
    """Returns the key tokens that the other model chooses; its weights are released afterwards."""
    from ropectl.evaluate.perplexity.runner import losses_of

    method = key_setup.method(None)
    request = replace(
        asked.request,
        method=method,
        geometry=key_setup.geometry,
        lengths=asked.request.possible,
        measured_trained_length=asked.setup.trained_length,
    )
    losses = losses_of(key_setup.model, request, _options(asked, key_setup, reporter))
    work = _work(asked, key_setup, request)
    reporter.start("measuring", work.tokens, cost=work.cost)
    reporter.cell(method.label, f"key tokens of {key_setup.source.name}", work.cost)
    keys = KeyTokens().choose(request, losses)
    del losses  # it holds the model
    key_setup.release()
    return keys


def _first_token(setup: Setup) -> FirstToken:
    token = setup.bos_token_id
    name = None if token is None else str(setup.tokenizer.convert_ids_to_tokens(token))
    return FirstToken(setup.config.bos, token, name)


def _manifest(setup: Setup, request: PerplexityRequest) -> PerplexityManifest:
    documents = request.documents
    return PerplexityManifest(
        **manifest(setup),
        documents=[document.name for document in documents.documents],
        document_tokens=[len(document.input_ids) for document in documents.documents],
        tokens_sha256=documents.fingerprint(),
        split=documents.split,
        clusters=documents.shared_clusters,
        bootstrap=Bootstrap(RESAMPLES, BOOTSTRAP_SEED),
        tail_targets_per_document=request.num_targets,
    )
