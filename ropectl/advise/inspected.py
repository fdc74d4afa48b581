"""A model's config, or plain numbers, and what they say under a method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ropectl.advise.requests import InspectSettings
from ropectl.errors import ConfigError, MethodError, UnsupportedModelError
from ropectl.evaluate.setup import Setup
from ropectl.evaluate.shared_config import ModelConfig
from ropectl.hf.config.family_patch import family_patch
from ropectl.hf.config.geometry import window_note
from ropectl.hf.config.policy import extent_option, idle_replace, resolve_factor
from ropectl.hf.model_settings import ConfigSettings
from ropectl.hf.tensors.fit import check_tensors
from ropectl.records import InspectionRecord
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.method import ScalingMethod
from ropectl.rope.registry import all_methods, check_distinct, parse_method, takes_factor
from ropectl.runtimes.facts import llama_config, patch_facts, source_facts
from ropectl.runtimes.runtime import CheckpointFacts

if TYPE_CHECKING:
    from ropectl.hf.self_test.code import RotaryCode


def _with_weights_named(setup: Setup) -> Setup:
    """Returns a setup with a warning where the weights beside the config are not those that it describes."""
    try:
        check_tensors(setup.source, complete=False)
    except ConfigError as error:
        rope = setup.source.rope
        warned = replace(rope, warnings=(*rope.warnings, error.message))
        return replace(setup, source=replace(setup.source, rope=warned))
    return setup


@dataclass(frozen=True)
class Inspected:
    """The subject of an inspection.

    Attributes:
        settings: What was asked for.
        geometry: What the model was trained with.
        factor: Wanted extension factor; None if none was named.
        setup: The model's config; None for plain numbers.
    """

    settings: InspectSettings
    geometry: RopeGeometry
    factor: float | None
    setup: Setup | None

    @classmethod
    def of(cls, settings: InspectSettings) -> Inspected:
        """Reads the model's config, or the numbers in its place.

        Raises:
            ConfigError: If either is broken or an option is impossible.
        """
        numbers = settings.geometry
        if numbers is None:
            shared = {name: getattr(settings, name) for name in ConfigSettings.model_fields}
            setup = _with_weights_named(Setup.of(ModelConfig(**shared), weights=False))
            return cls(settings, setup.geometry, setup.factor, setup)
        if "model" in settings.model_fields_set or settings.original_length is not None or settings.layers is not None:
            raise ConfigError(
                "--geometry gives all numbers itself: it cannot be combined with a model, --original-length or --layers."
            )
        geometry = RopeGeometry.parse(numbers)
        return cls(settings, geometry, resolve_factor(geometry, settings.factor, settings.target_length), None)

    @property
    def name(self) -> str:
        """The model's name for people."""
        return self.setup.source.name if self.setup else "plain numbers"

    def method(self, spec: str | None) -> ScalingMethod:
        """Returns the method that a spec names; the model's own without one."""
        if self.setup is not None:
            return self.setup.method(spec)
        return parse_method(spec or "none", self.factor, self.geometry)

    def methods(self, specs: Sequence[str], every: bool) -> list[ScalingMethod]:
        """Returns the methods to show, each once.

        Args:
            specs: The specs as typed. Without any it is the model's own scaling.
            every: Without specs but with a factor: add all methods that need nothing else.
        """
        chosen = [self.method(spec) for spec in specs] or [self.method(None)]
        check_distinct(specs, chosen[: len(specs)])
        if not specs and every and self.factor is not None:
            kinds = all_methods().items()
            fit = [n for n, kind in kinds if not kind.missing(kind.fill_factor({}, self.factor, self.geometry))]
            chosen += [self.method(name) for name in fit]
        return list(dict.fromkeys(chosen))

    def target(self, methods: Sequence[ScalingMethod]) -> int:
        """Returns L': the target that was asked for, else the largest that a method is made for, at least L [tokens]."""
        if self.factor is not None:
            return self.settings.target_length or self.geometry.target_length(self.factor)
        trained = self.geometry.original_max_position_embeddings
        aims = [self.setup.target(method) if self.setup else method.target_length(self.geometry) for method in methods]
        return max(trained, *aims)

    def declared(self, method: ScalingMethod) -> int | None:
        """Returns the context that a method aims at where the config says it; None where the method does [tokens]."""
        own = None if self.setup is None else self.setup.source.rope.target(method)
        return None if own == method.target_length(self.geometry) else own

    def with_model(self, shown: InspectionRecord, method: ScalingMethod, seq_len: int | None) -> InspectionRecord:
        """Returns an inspection with what the config says in addition to geometry and method; unchanged for plain numbers.

        A method that no config of this model can express has an empty block.
        """
        if self.setup is None:
            return shown
        rope = self.setup.source.rope
        try:
            block = family_patch(method, self.geometry, self.setup.source.config, seq_len).rope_parameters
        except MethodError:
            block = {}
        return replace(
            shown,
            rope_parameters=block,
            model=self.name,
            existing=str(rope.method),
            max_position_embeddings=rope.max_position_embeddings,
            pairing=rope.pairing,
            layer_type=rope.layer_type,
            layer_types=list(rope.layer_types),
            window=rope.window,
        )

    def notes(self, method: ScalingMethod) -> list[str]:
        """Returns warnings about the config, about options without effect, and about a method's target on this model."""
        idle = self._idle_factor(method)
        if self.setup is None:
            return [*idle_replace(self.name, self.settings.replace), *idle]
        window = window_note(self.setup.source.rope, self.settings.target_length or self.setup.target(method))
        return [*self.setup.notes, *idle, *([window] if window else [])]

    def _idle_factor(self, method: ScalingMethod) -> list[str]:
        """Returns a note if a method that was asked for takes no factor, and one is given."""
        asked, factor = self.settings, self.factor
        if factor is None:
            return []
        takes = [takes_factor(spec, factor, self.geometry) for spec in asked.methods if self.method(spec) == method]
        option = extent_option(asked.factor, asked.target_length)
        return [] if all(takes) else [f"{method.label} takes no extension factor: {option} does not change it."]

    def facts(
        self, method: ScalingMethod | None, seq_len: int | None, target_length: int | None
    ) -> CheckpointFacts | None:
        """Returns the facts for the runtimes; None for plain numbers, or a GGUF file, without a method.

        Args:
            method: The method of the patch; None for the model as it is.
            seq_len: The length at which a length-dependent method is frozen [tokens].
            target_length: The context that was asked for [tokens].
        """
        if self.setup is not None:
            return source_facts(self.setup.source, method, seq_len, target_length)
        if method is None:
            return None
        return patch_facts(llama_config(self.geometry), self.geometry, method, "MODEL", seq_len, target_length)

    def rotary_code(self) -> RotaryCode:
        """Returns the code that rotates queries and keys: the model's own, or that of a LLaMA with these numbers."""
        from ropectl.hf.config.source import source_config
        from ropectl.hf.self_test import code

        if self.setup is not None and self.setup.source.rope.layer_types:
            types = ", ".join(self.setup.source.rope.layer_types)
            raise UnsupportedModelError(
                f"--self-test checks a model with one rotary table; {self.name} has one for each of {types}.",
                "Without --self-test, inspect shows each of them: --layers TYPE",
            )
        trust = self.settings.trust_remote_code
        config = source_config(self.setup.source, trust) if self.setup else code.llama_config(self.geometry)
        return code.rotary_code(config, trust)
