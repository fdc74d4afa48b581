"""The base class of runtimes: what one makes of a checkpoint, and what a person types to start it."""

from __future__ import annotations

import shlex
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from ropectl.hf.config.dialects import text_section
from ropectl.records import NextStep, RuntimeReading
from ropectl.rope.frequencies import RopeFrequencies
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.method import ScalingMethod


@dataclass(frozen=True)
class CheckpointFacts:
    """A config.json and what its author meant by it.

    Attributes:
        config: The content of ``config.json`` as it stands on disk; the text part may be nested.
        geometry: What the model was trained with.
        method: What the config's author meant. For a length-dependent method that the config carries frozen
            at one length, that is the frozen table, not the method it came from.
        target_length: The context that is meant to work [tokens].
        location: Where the checkpoint is: a folder or a hub id.
        tokenizer_max_length: ``model_max_length`` of the tokenizer, where it is a real limit [tokens].
        layer_type: For a config with one block per layer type: the block that is scaled.
    """

    config: Mapping[str, Any]
    geometry: RopeGeometry
    method: ScalingMethod
    target_length: int
    location: str
    tokenizer_max_length: int | None = None
    layer_type: str | None = None

    @property
    def section(self) -> Mapping[str, Any]:
        """The part of the config that describes the text model."""
        return text_section(self.config)

    @property
    def shell_location(self) -> str:
        """The place of the checkpoint, as one word of a shell command."""
        return shlex.quote(self.location)

    @property
    def model_type(self) -> str:
        """The family, as transformers calls it."""
        return str(self.section.get("model_type") or self.config.get("model_type") or "llama")

    @property
    def lengths(self) -> tuple[int, ...]:
        """The sequence lengths at which frequencies are compared [tokens].

        The trained one and the target; for a method that follows the length and has no longer target, twice the
        trained one too.
        """
        trained = self.geometry.original_max_position_embeddings
        beyond = {2 * trained} if self.method.depends_on_seq_len and self.target_length <= trained else set()
        return tuple(sorted({trained, self.target_length, *beyond}))

    def meant(self, seq_len: int) -> RopeFrequencies:
        """Returns the frequencies that the author meant for a sequence of ``seq_len`` tokens."""
        return self.method.frequencies(self.geometry, seq_len)


@dataclass(frozen=True)
class Probe:
    """The script that asks a runtime for log-probabilities, to be compared with those of transformers.

    Attributes:
        script: File in ``runtimes/probes`` that the runtime's own Python runs: token ids in, log-probabilities out.
        reads_gguf: Whether it reads GGUF files, and not checkpoint folders.
    """

    script: str
    reads_gguf: bool = False

    @property
    def path(self) -> Path:
        """The path of the script."""
        return Path(__file__).parent / "probes" / self.script


class Runtime(ABC):
    """A program that runs checkpoints. Each is a file of this package with one subclass, which the matrix finds."""

    name: ClassVar[str]
    #: Place in the table.
    order: ClassVar[int] = 50
    #: How ``verify-runtime`` runs it; None where it cannot.
    probe: ClassVar[Probe | None] = None

    @abstractmethod
    def readings(self, facts: CheckpointFacts) -> list[RuntimeReading]:
        """Returns what each of its versions makes of a checkpoint."""

    @abstractmethod
    def next_step(self, facts: CheckpointFacts) -> NextStep:
        """Returns how to start it on a checkpoint, or why not to."""
