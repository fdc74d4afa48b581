"""The method and lengths that settings ask for, and the manifest of a record, for all single measurements."""

from __future__ import annotations

from typing import Any

from ropectl.errors import ConfigError
from ropectl.evaluate.setup import Setup, default_lengths
from ropectl.hf.config.policy import extent_option, idle_factor
from ropectl.hf.model.loading import ran_on
from ropectl.rope.method import ScalingMethod
from ropectl.rope.notes import method_notes
from ropectl.rope.registry import takes_factor
from ropectl.runs import command_line, package_versions


def asked_method(setup: Setup, spec: str | None, has_lengths: bool) -> tuple[ScalingMethod, list[str]]:
    """Returns the method that was asked for, the checkpoint's own without a spec, and notes on it.

    Args:
        setup: The model.
        spec: Method spec; None for the checkpoint's own scaling.
        has_lengths: Whether lengths were named, so that an extension factor decides none.

    Raises:
        ConfigError: If an option has nothing to act on.
        MethodError: If the spec is wrong, or the checkpoint is scaled already.
    """
    if spec is None and setup.factor is not None:
        raise ConfigError(
            "--factor and --target-length need a method to apply them to.", "Type for example: -m yarn --factor 4"
        )
    if spec is None and setup.config.replace:
        raise ConfigError(
            "--replace needs a method to replace the checkpoint's scaling with.",
            "Type for example: --replace -m none",
        )
    method = setup.method(spec)
    notes = [*setup.notes, *method_notes(method, setup.geometry, seq_len=setup.trained_length)]
    if spec is not None and setup.factor is not None and not takes_factor(spec, setup.factor, setup.geometry):
        option = extent_option(setup.config.factor, setup.config.target_length)
        if has_lengths:
            raise idle_factor(spec, setup.geometry, setup.factor, option, " beside lengths that are named")
        notes.append(
            f"{method.label} takes no extension factor: {option} only decides the longest length that is measured."
        )
    return method, notes


def method_and_lengths(
    setup: Setup, spec: str | None, lengths: tuple[int, ...]
) -> tuple[ScalingMethod, list[int], list[str]]:
    """Returns the method, the lengths, and notes on them for when everything else is checked too.

    Args:
        setup: The model.
        spec: Method spec; None for the checkpoint's own scaling.
        lengths: Wanted lengths; by default those around the trained one up to the target [tokens].

    Raises:
        ConfigError: If an option has nothing to act on.
        MethodError: If the spec is wrong, or the checkpoint is scaled already.
    """
    method, notes = asked_method(setup, spec, bool(lengths))
    chosen = sorted(set(lengths)) or default_lengths(setup.trained_length, setup.target(method))
    limit = setup.source.rope.capacity(method)
    beyond = [str(length) for length in chosen if limit is not None and length > limit]
    if beyond:
        notes.append(
            f"Past the length that {method.label} is made for ({limit} tokens): {', '.join(beyond)}. Measured and marked."
        )
    return method, chosen, [*notes, *setup.window_notes(chosen), *setup.attention_notes(chosen)]


def manifest(setup: Setup) -> dict[str, Any]:
    """Returns what is needed to make a record again, and what it was measured on."""
    return {
        **vars(ran_on(setup.model)),
        "command": command_line(),
        "config": setup.config.model_dump(mode="json"),
        "versions": package_versions(),
        "bos_token_id": setup.bos_token_id,
    }
