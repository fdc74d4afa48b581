"""Plans a patch: decides on the method, the target length and the config, and checks them before a byte is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ropectl.checkpoint.settings import PatchSettings
from ropectl.errors import ConfigError, MethodError
from ropectl.hf.config.dialects import text_section
from ropectl.hf.config.families import family_of
from ropectl.hf.config.family_patch import declaring, family_patch
from ropectl.hf.config.geometry import RopeDescription, window_note
from ropectl.hf.config.policy import Policy, choose_method, extent_option, idle_factor, idle_replace, resolve_factor
from ropectl.hf.config.sidecar import Sidecar, frozen_method
from ropectl.hf.config.source import ModelSource
from ropectl.hf.config.writer import patched_config
from ropectl.rope.config_patch import RopeConfigPatch
from ropectl.rope.frequencies import reach_tokens
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.method import ScalingMethod, short_spec
from ropectl.rope.methods.abf import AdjustedBaseFrequency
from ropectl.rope.notes import computes_as_trained, method_notes
from ropectl.rope.registry import parse_method, takes_factor
from ropectl.runtimes.facts import NO_LIMIT


@dataclass(frozen=True)
class PatchPlan:
    """A scaling, decided for one checkpoint.

    Attributes:
        source: The checkpoint.
        method: The method that will be in force.
        seq_len: The length at which a length-dependent method is frozen [tokens]; None if it is not.
        patch: The method in the words of the config.
        target_length: The context that is meant to work [tokens].
        notes: What a person should know, most important first.
    """

    source: ModelSource
    method: ScalingMethod
    seq_len: int | None
    patch: RopeConfigPatch
    target_length: int
    notes: tuple[str, ...]

    @property
    def geometry(self) -> RopeGeometry:
        """The geometry that the model was trained with."""
        return self.source.rope.geometry

    @property
    def written_method(self) -> ScalingMethod:
        """The method that the config computes: the planned one, or the static one that it is frozen to."""
        if self.seq_len is None:
            return self.method
        return frozen_method(self.patch.rope_parameters, self.geometry, self.target_length)

    def sidecar(self) -> Sidecar:
        """Returns the content of the sidecar: what the config alone does not say."""
        return Sidecar(
            method=str(self.method),
            geometry=self.geometry,
            rope_parameters={**self.patch.rope_parameters, **self.patch.hints},
            max_position_embeddings=self.patch.max_position_embeddings,
            target_length=self.target_length,
            seq_len=self.seq_len,
            layer_type=self.source.rope.layer_type,
        )

    def config(self, on_disk: Mapping[str, Any], drop_code: bool = False) -> dict[str, Any]:
        """Returns the content of the new ``config.json``.

        Args:
            on_disk: The content of the old one.
            drop_code: Take out the references to code that comes with the checkpoint.
        """
        config = patched_config(on_disk, self.patch, self.source.rope.layer_type)
        if drop_code:
            config.pop("auto_map", None)
        return config

    def tokenizer_config(self, on_disk: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the content of the new ``tokenizer_config.json``: its limit is raised, as some runtimes obey it."""
        limit = on_disk.get("model_max_length")
        if isinstance(limit, int | float) and 0 < limit < min(NO_LIMIT, self.target_length):
            return {**on_disk, "model_max_length": self.target_length}
        return dict(on_disk)


def plan_patch(settings: PatchSettings, source: ModelSource, *others: ScalingMethod) -> PatchPlan:
    """Returns the plan for a checkpoint.

    Args:
        settings: What was asked for.
        source: The checkpoint.
        others: Further scalings that ``--replace`` sets aside.

    Raises:
        ConfigError: If the request cannot work, or would stack on or lose the scaling of the checkpoint.
    """
    rope = source.rope
    if settings.replace and settings.compose:
        raise ConfigError("--replace and --compose contradict each other.", "Give one of them.")
    if "auto_map" in source.config and not (settings.trust_remote_code or settings.drop_code):
        raise ConfigError(
            f"{source.name} brings its own model code (auto_map), and what that makes of a scaling is not known.",
            "To leave the code out and rely on the classes of transformers: --drop-code. To keep and run it: --trust-remote-code",
        )
    factor = resolve_factor(rope.geometry, settings.factor, settings.target_length)
    method = _method(settings, source, factor)
    seq_len = settings.freeze_at
    _check_freezing(method, source, seq_len)
    target = _target_length(settings, method, rope, factor, seq_len)
    patch = declaring(family_patch(method, rope.geometry, source.config, seq_len), method, target)
    is_kept = settings.method is None and method == rope.method
    if is_kept and family_of(text_section(source.config)).length_is_whole:
        patch = replace(patch, max_position_embeddings=rope.max_position_embeddings)
    notes = [
        *rope.notes,
        *idle_replace(source.name, settings.replace, rope.method, *others),
        *method_notes(method, rope.geometry, seq_len or rope.geometry.original_max_position_embeddings),
        *(_reach_notes(method, rope.geometry, target) if factor is not None else ()),
        *(_declared_notes(settings, rope, patch) if settings.gguf_patch is None else ()),
    ]
    if method.depends_on_seq_len and seq_len is None:
        notes.append(_DEPENDENT)
    window = window_note(rope, target)
    notes += [window] if window else []
    if "quantization_config" in source.config:
        notes.append("The weights are quantised; they are copied as they are.")
    return PatchPlan(source, method, seq_len, patch, target, tuple(notes))


#: A base that reaches further than was asked for is remarked upon from this ratio on.
_MUCH_FURTHER = 1.1

_DEPENDENT = (
    "The frequencies of this checkpoint follow the length. transformers decides anew at every forward pass, so in generation "
    "past the trained length the cache mixes keys of different frequencies, and results depend on the order of inputs. "
    "Other runtimes decide once, or not at all. For one fixed set of frequencies: --freeze-at N"
)


def _method(settings: PatchSettings, source: ModelSource, factor: float | None) -> ScalingMethod:
    rope = source.rope
    if settings.method is None:
        if factor is not None or settings.replace or settings.compose:
            raise ConfigError(
                "--factor, --target-length, --replace and --compose need a method.",
                "Type for example: -m yarn --factor 4",
            )
        if source.adapter is not None and not source.adapter.is_described:
            raise ConfigError(
                f"{source.name} does not say the scaling it was trained with: it has no ropectl.json.",
                "Name it: -m SPEC (or -m none if it was trained without).",
            )
        return rope.method
    policy = Policy.compose if settings.compose else Policy.replace if settings.replace else Policy.refuse
    method = choose_method(source.name, rope, parse_method(settings.method, factor, rope.geometry), policy)
    if factor is not None and not takes_factor(settings.method, factor, rope.geometry):
        _check_idle_factor(settings, method, rope.geometry, factor)
    return method


def _check_idle_factor(settings: PatchSettings, method: ScalingMethod, geometry: RopeGeometry, factor: float) -> None:
    """Refuses a factor that the method does not take, unless it says the target of a method that has none of its own."""
    assert settings.method is not None
    if isinstance(method, AdjustedBaseFrequency):
        return  # a base says no length: it is the one that the config declares
    target, option = geometry.target_length(factor), extent_option(settings.factor, settings.target_length)
    if not method.depends_on_seq_len:
        raise idle_factor(settings.method, geometry, factor, option)
    if settings.freeze_at not in (None, settings.target_length or target):
        raise ConfigError(
            f"--freeze-at {settings.freeze_at} is the length of {method.label}, so {option} changes nothing.",
            f"Leave it out, or type: --freeze-at {target}",
        )


def needs_freezing(method: ScalingMethod, source: ModelSource) -> bool:
    """Returns whether a method depends on the length in a way that no stock config of this checkpoint can express."""
    geometry = source.rope.geometry
    if not method.depends_on_seq_len:
        return False
    native, patch = method.native_config(geometry), family_patch(method, geometry, source.config, None)
    return native is None or native.rope_parameters["rope_type"] != patch.rope_parameters["rope_type"]


def _check_freezing(method: ScalingMethod, source: ModelSource, seq_len: int | None) -> None:
    """Refuses to freeze what does not depend on the length, and asks for a length where the config can hold only one."""
    if seq_len is not None and not method.depends_on_seq_len:
        raise ConfigError(
            f"{method.label} does not depend on the length, so there is nothing to freeze.", "Leave out --freeze-at."
        )
    trained = source.rope.geometry.original_max_position_embeddings
    hint = f"Type for example: --freeze-at {4 * trained}"
    if seq_len is not None and seq_len < trained:
        raise ConfigError(f"freeze-at = {seq_len} is below the trained length of {trained} tokens.", hint)
    if seq_len is not None and computes_as_trained(method, source.rope.geometry, seq_len):
        raise ConfigError(
            f"freeze-at = {seq_len} changes nothing: up to the trained length of {trained} tokens {method.label} is the "
            "unscaled model.",
            hint,
        )
    if seq_len is None and needs_freezing(method, source):
        length = 4 * trained
        raise MethodError(
            f"{method.label} computes other frequencies for every length, and no stock config of this model can express that.",
            f"To write the frequencies of one length, used at all lengths: --freeze-at {length}",
        )


def _target_length(
    settings: PatchSettings, method: ScalingMethod, rope: RopeDescription, factor: float | None, seq_len: int | None
) -> int:
    geometry = rope.geometry
    if seq_len is not None:
        return max(seq_len, geometry.original_max_position_embeddings)
    is_asked = factor is not None or method.depends_on_seq_len
    if is_asked and not hasattr(method, "factor"):  # it names no length itself
        return settings.target_length or geometry.target_length(factor or 1.0)
    return rope.target(method) if settings.method is None else method.target_length(geometry)


def _reach_notes(method: ScalingMethod, geometry: RopeGeometry, target: int) -> list[str]:
    """Returns a note where a base reaches another length than the one that was asked for, which the config declares."""
    if not isinstance(method, AdjustedBaseFrequency):
        return []
    reach = reach_tokens(geometry, method.frequencies(geometry))
    said = f"{method.label} computes up to {'any length' if reach is None else f'{reach} tokens'} with rotations seen in training"
    if reach is None or reach > _MUCH_FURTHER * target:
        return [f"{said}; the config declares the {target} that were asked for."]
    return [f"{said}, short of the {target} that were asked for."] if reach < target else []


def _declared_notes(settings: PatchSettings, rope: RopeDescription, patch: RopeConfigPatch) -> list[str]:
    """Returns a note where the config will declare less than the file did, or more without having been asked to."""
    before, after = rope.max_position_embeddings, patch.max_position_embeddings
    if after == before or (after > before and settings.method is not None):
        return []
    change = f"The declared length {'falls' if after < before else 'rises'} from {before} to {after} tokens"
    if patch.rope_parameters["rope_type"] == "linear":
        return [f"{change}: vLLM and sglang multiply it by the factor themselves."]
    return [
        f"{change}: that is what {short_spec(str(rope.method if settings.method is None else settings.method))} makes of {rope.geometry.original_max_position_embeddings}."
    ]
