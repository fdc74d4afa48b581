"""The methods worth testing for a length, by rule from a config alone, with reasons and the commands that test them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ropectl.advise.inspected import Inspected
from ropectl.advise.next_commands import NextCommands
from ropectl.advise.requests import ChoiceSettings
from ropectl.errors import ConfigError, MethodError
from ropectl.hf.config.family_patch import family_patch
from ropectl.hf.config.policy import check_target
from ropectl.names import name_hint
from ropectl.records import RuntimeReading
from ropectl.rope.choose import Candidate, choose, slowing_text
from ropectl.rope.frequencies import critical_dimension
from ropectl.rope.method import ScalingMethod
from ropectl.rope.registry import all_methods
from ropectl.rope.tuning import Tuning
from ropectl.runtimes.matrix import all_runtimes, read_all

#: The largest factor that ropectl's published measurements reach.
MEASURED_FACTOR = 4


@dataclass(frozen=True)
class Chooser:
    """Chooses methods for a model, or for plain numbers.

    Attributes:
        subject: The model's config, or plain numbers.
        target_length: The wanted length [tokens].
        tuning: The amount of training that is planned.
        runtime: The runtime that has to compute the method; None for any.
    """

    subject: Inspected
    target_length: int
    tuning: Tuning
    runtime: str | None

    @classmethod
    def of(cls, settings: ChoiceSettings) -> Chooser:
        """Reads the config.

        Raises:
            ConfigError: If it is broken, the runtime is unknown, or no method extends so far.
        """
        if settings.target_length is None:
            raise ConfigError("--choose needs the length that is wanted.", "Type for example: --target-length 32k")
        if settings.model.partition(":")[0] in all_methods():
            raise ConfigError(
                f"{settings.model} is a method; --choose takes a model.",
                "Leave it out to choose for builtin:tiny, or name a folder.",
            )
        names = [one.name for one in all_runtimes()]
        if settings.runtime is not None and settings.runtime not in names:
            raise MethodError(f"There is no runtime {settings.runtime!r}.", name_hint(settings.runtime, names))
        subject = Inspected.of(settings.subject())
        check_target(subject.geometry, settings.target_length)
        return cls(subject, settings.target_length, Tuning(settings.tuning), settings.runtime)

    @property
    def trained(self) -> int:
        """L [tokens]."""
        return self.subject.geometry.original_max_position_embeddings

    @property
    def existing(self) -> ScalingMethod:
        """The scaling that the model has."""
        return self.subject.method(None)

    @property
    def _next(self) -> NextCommands:
        return NextCommands(self.subject, self.target_length, self.tuning)

    def record(self) -> dict[str, Any]:
        """Returns the advice as JSON values: what to try first, and then, with reasons; what was passed over, notes, commands."""
        enough = self._enough()
        header = {
            "model": None if self.subject.setup is None else self.subject.settings.model,
            "geometry": self.subject.geometry.to_json(),
            "existing": str(self.existing),
            "trained_length": self.trained,
            "target_length": self.target_length,
            "factor": self.target_length / self.trained,
            "tuning": self.tuning.value,
            "runtime": self.runtime,
        }
        if enough is not None:
            commands = self._next.check()
            return {
                **header,
                "first": None,
                "picks": [],
                "passed": [],
                "notes": [enough, *self.subject.notes(self.existing)],
                "recipe": None,
                "commands": commands,
            }
        choice = choose(self.subject.geometry, self.target_length, self.tuning, self._obstacle)
        return {
            **header,
            "first": choice.picks[0].method.name if choice.picks else None,
            "picks": [self._pick(candidate) for candidate in choice.picks],
            "passed": [vars(passed) for passed in choice.passed],
            "notes": self._notes(bool(choice.picks)),
            "recipe": self._next.recipe() if choice.picks else None,
            "commands": self._next.after([one.method for one in choice.picks]) if choice.picks else [],
        }

    def _enough(self) -> str | None:
        """Returns why no scaling is needed; None where it is."""
        if self.target_length <= self.trained:
            return (
                f"{self.target_length} tokens are within the trained length of {self.trained}, taken as given: there is nothing "
                "to scale. Measure whether the model uses so many."
            )
        setup = self.subject.setup
        if setup is None or self.existing.name == "none":
            return None
        capacity = setup.source.rope.capacity(self.existing)
        if capacity is not None and capacity < self.target_length:
            return None
        made_for = "follows the length" if capacity is None else f"is made for {capacity} tokens"
        return (
            f"{self.subject.name} is scaled already: {self.existing.label} {made_for}, which covers {self.target_length}. "
            "Measure whether it really does."
        )

    def _obstacle(self, method: ScalingMethod) -> str | None:
        """Returns why the model's family or the runtime cannot use a method; None where both can."""
        setup = self.subject.setup
        if setup is not None:
            try:
                family_patch(method, self.subject.geometry, setup.source.config, self._frozen(method))
            except MethodError as error:
                return error.message
        if self.runtime is None:
            return None
        newest = [one for one in self._readings(method) if one.runtime == self.runtime][-1]
        if newest.ok:
            return None
        reason = newest.problems[0].text if newest.problems else newest.evidence.source
        return f"{newest.runtime} {newest.version}: {reason}."

    def _frozen(self, method: ScalingMethod) -> int | None:
        """Returns the length at which a length-dependent method is frozen; None for other methods."""
        return self.target_length if method.depends_on_seq_len else None

    def _readings(self, method: ScalingMethod) -> list[RuntimeReading]:
        facts = self.subject.facts(method, self._frozen(method), self.target_length)
        return read_all(facts) if facts else []

    def _pick(self, candidate: Candidate) -> dict[str, Any]:
        method = candidate.method
        computes = "any length" if candidate.computes is None else f"{candidate.computes} tokens"
        reasons = [f"It computes {computes} with rotations seen in training."]
        if not candidate.reaches(self.target_length):
            reasons = [
                f"It computes {candidate.computes} of {self.target_length} tokens; training has to teach the rest."
            ]
        if method.depends_on_seq_len:
            reasons.append(f"It is the trained model up to {self.trained} tokens; to serve it, freeze one length.")
        else:
            reasons.append(f"It {slowing_text(candidate)}.")
        if method.guide is not None:
            reasons.append(f"Worth using: {method.guide.use}")
        served = [reading for reading in self._readings(method) if reading.ok]
        return {
            "method": str(method),
            "name": method.name,
            "computes": candidate.computes,
            "crowding": candidate.crowding,
            "shift": candidate.shift,
            "depends_on_seq_len": method.depends_on_seq_len,
            "reasons": reasons,
            "runtimes": [{"runtime": reading.runtime, "version": reading.version} for reading in served],
        }

    def _notes(self, has_picks: bool) -> list[str]:
        geometry, factor = self.subject.geometry, self.target_length / self.trained
        notes = [
            f"Arithmetic on the config alone. Nothing was measured: no method is known to reach {self.target_length} tokens on "
            f"this model, and the trained length of {self.trained} is taken as given."
        ]
        if not has_picks:
            notes.append("No method remains. Ask for a shorter length, another runtime, or more training.")
        if self.existing.name != "none":
            notes.append(
                f"{self.subject.name} is scaled already: {self.existing.label}. The methods would replace it, counted from "
                f"the trained {self.trained} tokens. If its weights were trained with that scaling, extend it instead: "
                "ropectl patch --compose."
            )
        if critical_dimension(geometry) >= geometry.turning_pairs:
            notes.append(
                f"Every pair completes a turn within {self.trained} tokens, so no angle beyond them is new, and arithmetic cannot "
                "tell the methods apart. Measure the unscaled model first."
            )
        if factor > MEASURED_FACTOR:
            notes.append(
                f"The factor is {factor:.4g}. ropectl's own measurements end at {MEASURED_FACTOR}: expect the measured reach to "
                "end before the computed one, and look at every length of the table."
            )
        if self.subject.setup is not None:
            said = self.subject.setup.source.rope.said_length
            if said is not None and said >= self.target_length:
                notes.append(
                    f"By the {said} tokens that the config says there is nothing to scale up to {self.target_length}."
                )
            notes += self.subject.notes(self.existing)
        return list(dict.fromkeys(notes))
