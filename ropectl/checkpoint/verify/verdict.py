"""From likelihoods to the record: the reading that fits, and how well the others do."""

from __future__ import annotations

import statistics

from ropectl.checkpoint.verify.answer import Answer
from ropectl.checkpoint.verify.judgement import Judgement, judge
from ropectl.checkpoint.verify.known_readings import AS_MEANT
from ropectl.checkpoint.verify.likelihoods import Likelihoods
from ropectl.hf.config.source import ModelSource
from ropectl.records import NONE, UNDECIDED, ReadingFit, RuntimeCheckRecord
from ropectl.runs import command_line, package_versions
from ropectl.runtimes.evidence import AGREEMENT


def make_record(
    model: str, reference: str | None, source: ModelSource, target: int, answer: Answer, found: Likelihoods
) -> RuntimeCheckRecord:
    """Returns the record of one check.

    Args:
        model: The checkpoint, as the user wrote it.
        reference: The folder that was computed in its place; None for none.
        source: What was computed.
        target: The context that it is meant for [tokens].
        answer: What the program said.
        found: What transformers computes under each reading, the one that was meant first.
    """
    trained = source.rope.geometry.original_max_position_embeddings
    is_beyond = [position >= trained for position in answer.positions]
    judged = judge(answer.logprobs, found.logprobs, is_beyond)
    meant, codes = judged.fits[0], [reading.code for reading in found.readings]
    alike = [codes[k] for k, fit in enumerate(judged.fits) if fit.fits and k != judged.winner and not judged.reason]
    verdict = NONE if judged.reason else UNDECIDED if judged.winner is None else codes[judged.winner]
    margin = judged.margin
    return RuntimeCheckRecord(
        **vars(found.ran_on),
        model=model,
        method=str(source.rope.method),
        geometry=source.rope.geometry,
        runtime=answer.runtime,
        runtime_version=answer.version,
        num_tokens=len(answer.ids),
        num_compared=len(answer.logprobs),
        num_past_trained_length=sum(is_beyond),
        nll_transformers=-statistics.fmean(found.logprobs[0]),
        nll_runtime=-statistics.fmean(answer.logprobs),
        mean_difference=meant.distance,
        mean_difference_past_trained_length=meant.beyond,
        max_difference=meant.largest,
        allowed=AGREEMENT,
        agrees=meant.distance <= AGREEMENT,
        verdict=verdict,
        reason=judged.reason,
        as_meant=verdict == AS_MEANT and answer.capped_at is None,
        noise=judged.fits[judged.nearest].distance,
        margin=None if margin is None else margin.mean,
        margin_low=None if margin is None else margin.low,
        margin_high=None if margin is None else margin.high,
        alike=alike,
        capped_at=answer.capped_at,
        target_length=target,
        reference=reference,
        server=answer.server,
        readings=_fits(found, judged),
        skipped=found.skipped,
        versions=package_versions(),
        command=command_line(),
    )


def _fits(found: Likelihoods, judged: Judgement) -> list[ReadingFit]:
    """Returns the readings, nearest first."""
    rows = zip(found.readings, judged.fits, found.logprobs, strict=True)
    fits = [
        ReadingFit(
            code=reading.code,
            text=reading.text,
            runtimes=list(reading.runtimes),
            nll=-statistics.fmean(logprobs),
            distance=fit.distance,
            distance_below=fit.below,
            distance_beyond=fit.beyond,
            largest=fit.largest,
            behind=fit.behind.mean,
            behind_low=fit.behind.low,
            behind_high=fit.behind.high,
            fits=fit.fits,
        )
        for reading, fit, logprobs in rows
    ]
    return sorted(fits, key=lambda fit: fit.distance)
