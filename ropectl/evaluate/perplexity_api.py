"""Perplexity of one method: configuration in, JSON document out.

What runs models is imported where it is first needed: loading torch takes seconds, and a typing error is
told without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ropectl.data.tokens import DocumentSet
from ropectl.errors import ConfigError
from ropectl.evaluate.config import ModelConfig, PerplexityConfig
from ropectl.evaluate.presets import apply_preset, check_lengths
from ropectl.evaluate.protocols import PROTOCOLS, find_protocol
from ropectl.evaluate.protocols.protocol import Options, Protocol, Request, tokens_of
from ropectl.evaluate.protocols.tail import num_tail_targets
from ropectl.evaluate.request import header, manifest, method_and_lengths
from ropectl.evaluate.setup import Setup, missing_lengths_notes
from ropectl.evaluate.statistics import BOOTSTRAP_SEED, RESAMPLES
from ropectl.evaluate.verdict import perplexity_verdict
from ropectl.records import PerplexityPoint, to_json
from ropectl.reporter import Reporter
from ropectl.rope.method import ScalingMethod
from ropectl.rope.methods.none import NoScaling

#: Documents of sliding windows are cut at this multiple of the longest window.
DOCUMENT_WINDOWS = 2

#: Settings that only some protocols have a use for.
_SPECIAL = ("stride", "document_tokens", "short_context", "key_model", "tolerance")


@dataclass(frozen=True)
class _Plan:
    """A checked request: nothing in it needs torch."""

    config: PerplexityConfig
    setup: Setup
    protocol: Protocol
    request: Request
    key_setup: Setup | None

    @property
    def baseline(self) -> Request | None:
        """The unscaled model on the same targets, at lengths up to the trained one; None where there is none."""
        lengths = [length for length in self.request.lengths if length <= self.setup.trained_length]
        if not lengths or not self.protocol.has_baseline or self.request.method == NoScaling():
            return None
        return replace(self.request, method=NoScaling(), lengths=lengths)

    def options(self, setup: Setup, method: ScalingMethod, reporter: Reporter) -> Options:
        """How passes of a model are run."""
        rope = setup.source.rope
        return Options(
            rope.layer_type, rope.capacity(method), self.config.prefill_chunk, self.config.batch_size, reporter.advance
        )

    def measure(self, request: Request, reporter: Reporter) -> list[PerplexityPoint]:
        """Runs the protocol."""
        reporter.cell(request.method.label, self.protocol.name)
        options = self.options(self.setup, request.method, reporter)
        return self.protocol.measure(self.setup.model, request, options, self.protocol)


def evaluate_perplexity(config: PerplexityConfig | None = None, reporter: Reporter | None = None) -> dict[str, Any]:
    """Returns perplexity over context lengths of one model under one method.

    Where the method is not ``none``, the unscaled model scores the same targets at the lengths up to the trained one.

    Args:
        config: What to measure; by default ``builtin:tiny`` as it is, on ``builtin:stdlib``.
        reporter: Told about progress and notes.

    Raises:
        RopectlError: If the request cannot work; found before weights load.
    """
    reporter = reporter or Reporter()
    plan, notes = _plan(apply_preset(config or PerplexityConfig()))
    for note in notes:
        reporter.note(note)
    request, baseline = plan.request, plan.baseline
    if plan.key_setup is not None:
        request = replace(request, keys=_chosen_by(plan, plan.key_setup, reporter))
    _ = plan.setup.model
    requests = [request] if baseline is None else [request, baseline]
    reporter.start("measuring", sum(tokens_of(plan.protocol.passes(one), one.documents) for one in requests))
    points = plan.measure(request, reporter)
    unscaled = plan.measure(baseline, reporter) if baseline is not None else []
    return {
        **header(plan.setup, request.method),
        "text": plan.config.text,
        "protocol": plan.protocol.name,
        "preset": plan.config.preset,
        "stride": request.stride,
        "bos": _bos(plan.setup),
        "points": [to_json(point) for point in points],
        "unscaled": [to_json(point) for point in unscaled],
        **perplexity_verdict(plan.protocol.name, points, unscaled, request, plan.config.tolerance),
        "manifest": _manifest(plan, request),
    }


def _plan(config: PerplexityConfig) -> tuple[_Plan, list[str]]:
    """Everything that can be checked before weights load, and what to say about it."""
    protocol = find_protocol(config.protocol)
    for name in _SPECIAL:
        if getattr(config, name) is not None and name not in protocol.takes:
            fitting = ", ".join(one.name for one in PROTOCOLS.values() if name in one.takes)
            raise ConfigError(
                f"--{name.replace('_', '-')} means nothing in protocol {protocol.name}.", f"It belongs to: {fitting}."
            )
    setup = Setup.of(config)
    method, lengths, notes = method_and_lengths(setup, config.method, config.lengths)
    stride = config.stride
    if stride is None and protocol.default_stride is not None:
        stride = min(protocol.default_stride, max(1, min(lengths) // 2))
    request = Request(
        method,
        setup.geometry,
        DocumentSet([], 0, 0, 0, None),
        lengths,
        stride,
        num_tail_targets(lengths) if protocol.name == "tail" else None,
        config.short_context,
    )
    check_lengths(config.preset, lengths)
    protocol.check(request)
    document_tokens = _document_tokens(config, protocol, lengths)
    key_setup = _key_setup(config, setup)
    documents = setup.documents(lengths, document_tokens)
    notes.extend(missing_lengths_notes(documents, lengths, config.text))
    if protocol.name == "key-tokens":
        notes.extend(_key_notes(key_setup, lengths))
    return _Plan(config, setup, protocol, replace(request, documents=documents), key_setup), notes


def _document_tokens(config: PerplexityConfig, protocol: Protocol, lengths: Sequence[int]) -> int | None:
    if "document_tokens" not in protocol.takes:
        return None
    if config.document_tokens is None:
        return DOCUMENT_WINDOWS * max(lengths)
    if config.document_tokens < max(lengths):
        raise ConfigError(
            f"document-tokens = {config.document_tokens} is less than the longest length, {max(lengths)}: every length "
            "has to score the same documents.",
            f"Use --document-tokens {max(lengths)} or more, or shorter lengths.",
        )
    return config.document_tokens


def _key_setup(config: PerplexityConfig, setup: Setup) -> Setup | None:
    """The model that chooses key tokens, its tokenizer checked; None where the measured model does."""
    if config.key_model is None:
        return None
    names = ("dtype", "device", "attention", "bos", "prefill_chunk", "trust_remote_code", "allow_pickle")
    key_setup = Setup.of(ModelConfig(model=config.key_model, **{name: getattr(config, name) for name in names}))
    same = key_setup.tokenizer.get_vocab() == setup.tokenizer.get_vocab()
    if not same or key_setup.bos_token_id != setup.bos_token_id:
        raise ConfigError(
            f"--key-model {config.key_model} has another tokenizer than {config.model}: the tokens it chooses are not "
            "tokens of the measured model.",
            "Name a model of the same family.",
        )
    return key_setup


def _key_notes(key_setup: Setup | None, lengths: Sequence[int]) -> list[str]:
    if key_setup is None:
        return [
            "The measured model chooses its own key tokens, each of which then has a loss below 2 nats: their share says "
            "how much it draws from afar, their perplexity little. For one that compares models: --key-model MODEL"
        ]
    limit = key_setup.source.rope.capacity(key_setup.method(None))
    if limit is None or limit >= max(lengths):
        return []
    return [
        f"{key_setup.source.name} chooses key tokens beyond the {limit} tokens that it is made for: what it finds there "
        "says little. A model with a longer context chooses better."
    ]


def _chosen_by(plan: _Plan, key_setup: Setup, reporter: Reporter) -> dict[int, Any]:
    """Key tokens in the eyes of the other model, which is let go of again."""
    from ropectl.evaluate.key_tokens import choose_key_tokens

    method = key_setup.method(None)
    request = replace(
        plan.request,
        method=method,
        geometry=key_setup.geometry,
        lengths=plan.request.possible,
        measured_trained_length=plan.setup.trained_length,
    )
    model = key_setup.model
    reporter.start("measuring", tokens_of(plan.protocol.passes(request), request.documents))
    reporter.cell(method.label, f"key tokens of {key_setup.source.name}")
    keys = choose_key_tokens(model, request, plan.options(key_setup, method, reporter))
    del model
    key_setup.release()
    return keys


def _bos(setup: Setup) -> dict[str, Any]:
    token = setup.bos_token_id
    name = None if token is None else str(setup.tokenizer.convert_ids_to_tokens(token))
    return {"policy": setup.config.bos, "token_id": token, "token": name}


def _manifest(plan: _Plan, request: Request) -> dict[str, Any]:
    documents = request.documents
    model = plan.setup.model
    return {
        **manifest(plan.setup),
        "documents": [document.name for document in documents.documents],
        "document_tokens": [len(document.input_ids) for document in documents.documents],
        "tokens_sha256": documents.fingerprint(),
        "dtype": str(model.dtype).removeprefix("torch."),
        "device": str(model.device),
        "bootstrap": {"resamples": RESAMPLES, "seed": BOOTSTRAP_SEED},
        **({"tail_targets_per_document": request.num_targets} if request.num_targets is not None else {}),
    }
