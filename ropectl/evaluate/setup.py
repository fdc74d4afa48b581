"""Everything that a measurement needs of a model: cheap checks first, weights last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ropectl.data.sources import check_source, open_source
from ropectl.data.tokens import DocumentSet, bos_token
from ropectl.errors import ConfigError, DataError
from ropectl.evaluate.scored_text import window_tokens
from ropectl.evaluate.shared_config import ModelConfig, TextConfig
from ropectl.hf.config.dialects import text_section
from ropectl.hf.config.geometry import window_note
from ropectl.hf.config.policy import Policy, choose_method, idle_replace, resolve_factor
from ropectl.hf.config.source import ModelSource, read_source
from ropectl.hf.model.loading import LoadOptions, load_model, load_tokenizer
from ropectl.hf.tensors.fit import check_tensors
from ropectl.records import FEW_DOCUMENTS
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.method import ScalingMethod
from ropectl.rope.registry import parse_method
from ropectl.setting_types import make_config

#: Attention scores are float32.
BYTES_PER_SCORE = 4


@dataclass(frozen=True)
class Setup:
    """A model to measure; tokenizer and weights load when first asked for.

    Attributes:
        config: The settings.
        source: The checkpoint's config, read.
        factor: Wanted extension factor; None if none was named.
    """

    config: ModelConfig
    source: ModelSource
    factor: float | None

    @classmethod
    def of(cls, config: ModelConfig, weights: bool = True) -> Setup:
        """Returns the setup, after reading the model's config and checking what can be checked with it.

        Args:
            config: The settings.
            weights: Whether the weights are meant too, so that they have to fit the config.

        Raises:
            ConfigError: If the model is not there, contradicts itself, or an option is impossible.
        """
        source = read_source(config)
        setup = cls(config, source, resolve_factor(source.rope.geometry, config.factor, config.target_length))
        _ = setup.load_options  # checks them
        if weights:
            check_tensors(source)
        if (text := getattr(config, "text", None)) is not None:
            check_source(text)  # before the tokenizer, which takes seconds to import
        return setup

    @property
    def geometry(self) -> RopeGeometry:
        """The geometry that the model was trained with."""
        return self.source.rope.geometry

    @property
    def trained_length(self) -> int:
        """L [tokens]."""
        return self.geometry.original_max_position_embeddings

    @property
    def notes(self) -> list[str]:
        """What a person should know about the config, and about options that it makes idle."""
        return [
            *self.source.rope.notes,
            *idle_replace(self.source.name, self.config.replace, self.source.rope.method),
        ]

    def method(self, spec: str | None) -> ScalingMethod:
        """Returns the method that a spec names on this model; the checkpoint's own without one.

        Raises:
            MethodError: If the spec is wrong, or the checkpoint is scaled already and ``replace`` is not set.
        """
        existing = self.source.rope.method
        if spec is None:
            adapter = self.source.adapter
            if adapter is not None and not adapter.is_described:
                raise ConfigError(
                    f"{self.source.name} does not say the scaling it was trained with: it has no ropectl.json.",
                    "Name it: -m SPEC (or -m none if it was trained without).",
                )
            return existing
        wanted = parse_method(spec, self.factor, self.geometry)
        if wanted == existing:
            return existing
        policy = Policy.replace if self.config.replace else Policy.refuse
        return choose_method(self.source.name, self.source.rope, wanted, policy, composable=False)

    def target(self, method: ScalingMethod) -> int:
        """Returns the context to measure up to: the one asked for, else what the method is made for [tokens]."""
        if self.config.target_length is not None:
            return self.config.target_length
        if self.factor is not None:
            return self.geometry.target_length(self.factor)
        return self.source.rope.capacity(method) or self.trained_length

    def window_notes(self, lengths: Sequence[int]) -> list[str]:
        """Returns a warning where the model's attention window ends before the longest length."""
        note = window_note(self.source.rope, max(lengths))
        return [note] if note else []

    def attention_notes(self, lengths: Sequence[int]) -> list[str]:
        """Returns a warning where the attention implementation holds the whole score matrix of a layer."""
        if self.config.attention != "eager":
            return []
        heads = int(text_section(self.source.config).get("num_attention_heads", 1))
        size = BYTES_PER_SCORE * heads * max(lengths) ** 2 / 2**30
        return [
            f"eager attention holds {heads} x {max(lengths)} x {max(lengths)} scores a layer, about {size:.1f} GiB in float32; "
            "--attention sdpa does not."
        ]

    @cached_property
    def load_options(self) -> LoadOptions:
        """The way weights are loaded."""
        asked = self.config
        return LoadOptions(asked.dtype, asked.device, asked.trust_remote_code, asked.allow_pickle, asked.attention)

    @cached_property
    def tokenizer(self) -> Any:
        """The model's tokenizer."""
        return load_tokenizer(self.source, self.load_options)

    @cached_property
    def bos_token_id(self) -> int | None:
        """The token that every window and prompt begins with; None for none."""
        return bos_token(self.tokenizer, self.config.bos)

    @cached_property
    def model(self) -> Any:
        """The model; weights load here."""
        return load_model(self.source, self.load_options)

    def release(self) -> None:
        """Releases the weights; they load again when next asked for."""
        vars(self).pop("model", None)

    @property
    def vocabulary(self) -> int | None:
        """Tokens that the model knows; None if its config does not say."""
        size = text_section(self.source.config).get("vocab_size")
        return size if isinstance(size, int) else None

    def documents(self, lengths: list[int], document_tokens: int | None = None) -> DocumentSet:
        """Returns the documents that are scored at these lengths, or the windows that they are cut into.

        Args:
            lengths: Context lengths [tokens].
            document_tokens: Most tokens of each; None cuts them at the longest length that they have.

        Raises:
            ConfigError: If documents are to be cut into windows shorter than every length.
            DataError: If no document reaches even the shortest length.
        """
        from ropectl.data.selection import select_documents, select_windows  # numpy loads here

        config = self.config
        assert isinstance(config, TextConfig)
        size = window_tokens(config, lengths, document_tokens)
        source, most = open_source(config.text), config.most_units
        tokenizer, bos, vocabulary = self.tokenizer, self.bos_token_id, self.vocabulary
        if size is None:
            chosen = select_documents(
                source, tokenizer, bos, lengths, most, vocabulary, document_tokens, few=FEW_DOCUMENTS
            )
        else:
            chosen = select_windows(source, tokenizer, bos, lengths, most, size, vocabulary)
        if not chosen.documents:
            raise DataError(
                f"{config.text}: none of {chosen.num_seen} documents has {min(lengths)} tokens; the longest has {chosen.longest}.",
                f"Use lengths of at most {chosen.longest}, or longer text."
                if chosen.longest > 1
                else "Give longer text: --text FILE",
            )
        return chosen


def default_lengths(trained_length: int, target_length: int) -> list[int]:
    """Returns half the trained length, the trained length, and doublings of it up to the target, which is always there."""
    lengths = {max(2, trained_length // 2), trained_length, max(target_length, trained_length)}
    length = trained_length * 2
    while length < target_length:
        lengths.add(length)
        length *= 2
    return sorted(lengths)


def load_patched(
    model: str, method: str | None = None, *, seq_len: int | None = None, **options: Any
) -> tuple[Any, Any]:
    """Returns a model under a method, and its tokenizer.

    Args:
        model: Folder, hub id, ``.gguf`` file, adapter folder or ``builtin:tiny``.
        method: Method spec; the checkpoint's own scaling where it is None.
        seq_len: The length that a length-dependent method is frozen at [tokens].
        options: Further settings of :class:`~ropectl.evaluate.shared_config.ModelConfig`, such as ``dtype`` and ``device``.

    Raises:
        RopectlError: If it cannot be loaded, or the method does not fit.
    """
    from ropectl.hf.model.patch import apply_rope  # torch loads here

    setup = Setup.of(make_config(ModelConfig, {"model": model, **options}))
    scaling = setup.method(method)
    tokenizer, loaded = setup.tokenizer, setup.model
    apply_rope(loaded, scaling, geometry=setup.geometry, seq_len=seq_len, layers=setup.source.rope.layer_type)
    return loaded, tokenizer
