"""What is known of a checkpoint, what a runtime makes of it, and what a person types to start it."""

from __future__ import annotations

import shlex
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from ropectl.hf.config.dialects import text_section
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
        """Where the checkpoint is, as one word of a shell command."""
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
class Problem:
    """A red line.

    Attributes:
        code: Stable name of the kind, such as ``theta-dropped``.
        text: One short sentence with the numbers; says nothing of the version, so that equal ones can be grouped.
    """

    code: str
    text: str


@dataclass(frozen=True)
class RuntimeReading:
    """What one version of a runtime makes of a checkpoint.

    Attributes:
        runtime: Name of the runtime.
        version: The version whose rules these are.
        loads: Whether the model can be built at all.
        rope_type: What the runtime takes the file to be; None if it gets not so far.
        inv_freq: (P,) frequencies for a sequence of the target length [radians/token].
        attention_factor: A, on cos and sin, at the target length.
        max_deviation: Largest relative difference of a frequency from what the author meant, over the lengths that
            are compared; 1 where a pair turns that was meant to stand still.
        usable_length: Tokens that the runtime serves by itself; None where it sets no limit.
        problems: The red lines; empty if the runtime computes what was meant.
    """

    runtime: str
    version: str
    loads: bool
    rope_type: str | None
    inv_freq: tuple[float, ...] | None
    attention_factor: float | None
    max_deviation: float | None
    usable_length: int | None
    problems: tuple[Problem, ...]

    @property
    def ok(self) -> bool:
        """Whether the runtime computes and serves what the author meant."""
        return self.loads and not self.problems

    def to_json(self) -> dict[str, Any]:
        """Returns the reading as JSON values."""
        return {
            **vars(self),
            "inv_freq": None if self.inv_freq is None else list(self.inv_freq),
            "problems": [vars(problem) for problem in self.problems],
            "ok": self.ok,
        }


@dataclass(frozen=True)
class NextStep:
    """How to start one runtime on a checkpoint, or why not to.

    Attributes:
        runtime: Name of the runtime.
        command: What a person types; None if refused.
        refusal: The reason, and what to do instead; None if there is a command.
        notes: What to know beside it.
    """

    runtime: str
    command: str | None
    refusal: str | None
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Returns the step as JSON values."""
        return {**vars(self), "notes": list(self.notes)}


@dataclass(frozen=True)
class Probe:
    """How a runtime is asked for log-probabilities, to be compared with those of transformers.

    Attributes:
        script: File in ``runtimes/probes`` that the runtime's own Python runs: token ids in, log-probabilities out.
        reads_gguf: Whether it reads GGUF files, and not checkpoint folders.
    """

    script: str
    reads_gguf: bool = False

    @property
    def path(self) -> Path:
        """Where the script is."""
        return Path(__file__).parent / "probes" / self.script


class Runtime(ABC):
    """One runtime: a file of this package with one subclass, which the matrix finds."""

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
