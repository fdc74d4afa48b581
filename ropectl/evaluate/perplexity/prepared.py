"""A measurement of perplexity before weights load: everything checked that can be checked without them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ropectl.data.tokens import DocumentSet
from ropectl.errors import ConfigError
from ropectl.evaluate.config import PerplexityConfig
from ropectl.evaluate.perplexity.find_protocol import all_protocols, find_protocol
from ropectl.evaluate.perplexity.presets import apply_preset, check_lengths
from ropectl.evaluate.perplexity.protocol import PerplexityProtocol
from ropectl.evaluate.perplexity.windows import PerplexityRequest
from ropectl.evaluate.request import method_and_lengths
from ropectl.evaluate.scored_text import text_notes
from ropectl.evaluate.setup import Setup
from ropectl.evaluate.shared_config import ModelConfig
from ropectl.hf.model_settings import CHECKPOINT, SCALING
from ropectl.rope.methods.none import NoScaling

#: Documents of sliding windows are cut at this multiple of the longest window.
DOCUMENT_WINDOWS = 2


@dataclass(frozen=True)
class PreparedPerplexity:
    """A checked request; nothing in it needs torch.

    Attributes:
        config: The settings.
        setup: The measured model.
        protocol: The protocol.
        request: The measurement.
        key_setup: The model that chooses key tokens; None if the measured model does, or none are chosen.
        notes: Notes to show beforehand.
    """

    config: PerplexityConfig
    setup: Setup
    protocol: PerplexityProtocol
    request: PerplexityRequest
    key_setup: Setup | None
    notes: list[str]

    @property
    def baseline(self) -> PerplexityRequest | None:
        """The unscaled model on the same targets, at lengths up to the trained one; None if there is nothing to compare."""
        lengths = [length for length in self.request.lengths if length <= self.setup.trained_length]
        if not lengths or not self.protocol.has_baseline or self.request.method == NoScaling():
            return None
        capacity = self.setup.source.rope.capacity(NoScaling())
        return replace(self.request, method=NoScaling(), lengths=lengths, capacity=capacity)


def prepare_perplexity(config: PerplexityConfig) -> PreparedPerplexity:
    """Returns the request, checked.

    Args:
        config: The settings.

    Raises:
        RopectlError: If the request cannot work.
    """
    config = apply_preset(config)
    protocol = find_protocol(config.protocol)
    _check_what_only_others_take(config, protocol)
    setup = Setup.of(config)
    method, lengths, notes = method_and_lengths(setup, config.method, config.lengths)
    no_documents_yet = DocumentSet([], 0, 0, 0, None)
    request = PerplexityRequest(
        method, setup.geometry, no_documents_yet, lengths, config.stride,
        short_context=config.short_context, capacity=setup.source.rope.capacity(method),
    )  # fmt: skip
    check_lengths(config.preset, lengths)
    request = protocol.completed(request)
    document_tokens = _document_tokens(config, protocol, lengths)
    key_setup = _key_setup(config, setup)
    documents = setup.documents(lengths, document_tokens)
    notes.extend(text_notes(documents, lengths, config))
    if "key_model" in protocol.takes:
        notes.extend(_key_notes(key_setup, lengths))
    return PreparedPerplexity(config, setup, protocol, replace(request, documents=documents), key_setup, notes)


def _check_what_only_others_take(config: PerplexityConfig, protocol: PerplexityProtocol) -> None:
    known = all_protocols().values()
    for name in sorted(frozenset().union(*(one.takes for one in known)) - protocol.takes):
        if getattr(config, name, None) is not None:
            fitting = ", ".join(one.name for one in known if name in one.takes)
            raise ConfigError(
                f"--{name.replace('_', '-')} has no meaning in protocol {protocol.name}.", f"It belongs to: {fitting}."
            )


def _document_tokens(config: PerplexityConfig, protocol: PerplexityProtocol, lengths: Sequence[int]) -> int | None:
    """Returns the number of tokens that documents are cut to; None for the longest length that they have."""
    if "document_tokens" not in protocol.takes:
        return None
    if config.document_tokens is None:
        return DOCUMENT_WINDOWS * max(lengths)
    if isinstance(config.split, int) and config.split != config.document_tokens:
        raise ConfigError(
            f"document-tokens = {config.document_tokens} contradicts split = {config.split}, which makes documents of that "
            "many tokens.",
            "Leave out --document-tokens, or use --split auto.",
        )
    if config.document_tokens < max(lengths):
        raise ConfigError(
            f"document-tokens = {config.document_tokens} is less than the longest length, {max(lengths)}: every length "
            "has to score the same documents.",
            f"Use --document-tokens {max(lengths)} or more, or shorter lengths.",
        )
    return config.document_tokens


def _key_setup(config: PerplexityConfig, setup: Setup) -> Setup | None:
    """Returns the model that chooses key tokens, its tokenizer checked; None if the measured model does."""
    if config.key_model is None:
        return None
    of_the_measured = {*CHECKPOINT.names(ModelConfig), *SCALING.names(ModelConfig)}
    shared = {name: getattr(config, name) for name in ModelConfig.model_fields if name not in of_the_measured}
    key_setup = Setup.of(ModelConfig(model=config.key_model, **shared))
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
            "how much it gains from a long context, their perplexity little. To compare models: --key-model MODEL"
        ]
    limit = key_setup.source.rope.capacity(key_setup.method(None))
    if limit is None or limit >= max(lengths):
        return []
    return [
        f"{key_setup.source.name} chooses key tokens past the length that it is made for ({limit} tokens): its choice there says "
        "little. A model with a longer context chooses better."
    ]
