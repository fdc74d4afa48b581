"""Decides which method a request means on a model that may be scaled already: never stacked, never lost."""

from __future__ import annotations

from enum import Enum

from ropectl.errors import ConfigError, MethodError
from ropectl.hf.config.geometry import RopeDescription
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.method import MAX_FACTOR, ScalingMethod, short_spec
from ropectl.rope.registry import parse_spec, takes_factor
from ropectl.slips import LARGEST_USUAL_FACTOR


class Policy(Enum):
    """What to do with the scaling that a checkpoint has when another is wanted."""

    refuse = "refuse"
    #: The new method by the product of both factors, counted from the trained length.
    compose = "compose"
    #: The new method as it is, counted from the trained length.
    replace = "replace"


def check_target(geometry: RopeGeometry, target_length: int) -> None:
    """Checks that some method can reach a wanted length.

    Raises:
        ConfigError: If it is more than any factor makes of the trained length.
    """
    trained = geometry.original_max_position_embeddings
    if target_length > MAX_FACTOR * trained:
        raise ConfigError(
            f"target-length = {target_length} is {target_length / trained:.4g} times the trained length of {trained} tokens; "
            f"methods extend by at most {MAX_FACTOR:g}.",
            f"Type for example: --target-length {4 * trained}",
        )


def resolve_factor(geometry: RopeGeometry, factor: float | None, target_length: int | None) -> float | None:
    """Returns the extension factor that ``--factor`` and ``--target-length`` mean together.

    Raises:
        ConfigError: If they contradict each other, or the target is below the trained length.
    """
    if target_length is None:
        return factor
    trained = geometry.original_max_position_embeddings
    implied = target_length / trained
    check_target(geometry, target_length)
    if implied < 1:
        raise ConfigError(
            f"target-length = {target_length} is below the trained length of {trained} tokens.",
            f"Did you mean --factor {target_length}?"
            if target_length <= LARGEST_USUAL_FACTOR
            else f"Type for example: --target-length {4 * trained}",
        )
    if factor is not None and geometry.target_length(factor) == target_length:
        return factor  # the target is the factor, rounded to a token
    if factor is not None:
        raise ConfigError(
            f"--factor {factor:g} and --target-length {target_length} contradict each other: {target_length} / {trained} = {implied:g}.",
            "Give one of them.",
        )
    return implied


def extent_option(factor: float | None, target_length: int | None) -> str:
    """Returns how the extent was asked for, for messages; not both are None."""
    return f"--target-length {target_length}" if factor is None else f"--factor {factor:g}"


def idle_factor(spec: str, geometry: RopeGeometry, factor: float, option: str, because: str = "") -> ConfigError:
    """Returns the error for an extension factor that nothing reads.

    Args:
        spec: The spec of a method that does not take it.
        geometry: The model's.
        factor: The factor.
        option: How it was asked for.
        because: Why nothing else reads it, as the end of a sentence.
    """
    name = parse_spec(spec)[0].name
    is_decided = takes_factor(name, factor, geometry)
    way = f"let it decide the parameters: -m {name}" if is_decided else "name another method, such as -m yarn"
    return ConfigError(
        f"{short_spec(spec)} takes no extension factor, so {option} changes nothing{because}.",
        f"Leave it out, or {way}.",
    )


def idle_replace(name: str, replace: bool, *methods: ScalingMethod) -> list[str]:
    """Returns a note where ``--replace`` finds no scaling.

    Args:
        name: The model, for the note.
        replace: Whether it was asked for.
        methods: The scalings that are there.
    """
    if not replace or any(method.name != "none" for method in methods):
        return []
    return [f"--replace changes nothing: {name} has no scaling to set aside."]


def choose_method(
    name: str, rope: RopeDescription, wanted: ScalingMethod, policy: Policy, composable: bool = True
) -> ScalingMethod:
    """Returns the method that a wanted one means on a model.

    Args:
        name: The model, for messages.
        rope: What its config says.
        wanted: The method that the user gave.
        policy: What to do with scaling that is there already.
        composable: Whether this command can compose, for the message.

    Raises:
        MethodError: If the method does not fit, or the model is scaled and the policy is to refuse.
    """
    wanted.frequencies(rope.geometry)  # finds parameters that do not fit this geometry
    existing = rope.method
    is_taken = existing.name != "none" and wanted.name != "none"
    if policy is Policy.compose and existing.name == "none":
        raise MethodError(f"{name} has no scaling that {wanted.label} could be composed with.", "Leave out --compose.")
    if policy is Policy.compose:
        return compose(existing, wanted, rope.geometry)
    if is_taken and policy is Policy.refuse:
        raise MethodError(
            f"{name} is already scaled: {existing.label} over a trained length of "
            f"{rope.geometry.original_max_position_embeddings} tokens. {wanted.label} would not be added to that but replace it.",
            _ways_on(rope, wanted, composable),
        )
    return wanted


def compose(existing: ScalingMethod, wanted: ScalingMethod, geometry: RopeGeometry) -> ScalingMethod:
    """Returns ``wanted`` with the product of both factors: one scaling, counted from the trained length.

    Raises:
        MethodError: If one of the two has no factor.
    """
    for method in (existing, wanted):
        if method.name != "none" and not hasattr(method, "factor"):
            raise MethodError(
                f"{method.label} has no extension factor, so it cannot be composed with another.",
                "Give the method for the whole extension: --replace",
            )
    total = getattr(existing, "factor", 1.0) * getattr(wanted, "factor", 1.0)
    if wanted.name == "none":
        raise MethodError("none adds nothing to compose.", "To remove the scaling: --replace -m none")
    fixed = [name for name in wanted.missing({"factor": total}) if name != "factor"]
    fixed += ["attention_factor"] if getattr(wanted, "attention_factor", None) is not None else []
    if fixed:
        raise MethodError(
            f"{wanted.label} gives {', '.join(fixed)} for its own factor; composed to {total:g} they would no longer fit.",
            f"Give the method for the whole extension: --replace -m {wanted.name}:factor={total:g},...",
        )
    _, parameters = parse_spec(str(wanted))
    return wanted.create({**parameters, "factor": total})


def _ways_on(rope: RopeDescription, wanted: ScalingMethod, composable: bool) -> str:
    replaced = f"To replace it: --replace ({_outcome(wanted, rope.geometry)})."
    if not composable:
        return replaced
    try:
        composed = compose(rope.method, wanted, rope.geometry)
    except MethodError:
        return replaced
    return f"{replaced} To extend what is there further: --compose ({_outcome(composed, rope.geometry)})."


def _outcome(method: ScalingMethod, geometry: RopeGeometry) -> str:
    trained = geometry.original_max_position_embeddings
    length = "follows the length" if method.depends_on_seq_len else f"{method.target_length(geometry)} tokens"
    return f"{method.label} over {trained}: {length}"
