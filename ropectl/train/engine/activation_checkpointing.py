"""Activation checkpointing: activations are computed again in the backward pass instead of being kept."""

from __future__ import annotations

from typing import Any

from ropectl.errors import ConfigError


def check_choice(choice: str, device_type: str) -> None:
    """Checks that a choice is possible on a device.

    Raises:
        ConfigError: If it is not.
    """
    if choice == "offload" and device_type == "cpu":
        raise ConfigError(
            "activation-checkpointing = offload moves activations from an accelerator to the host; here they are already "
            "there.",
            "Type: --activation-checkpointing on",
        )


def checkpoint_activations(model: Any, choice: str) -> None:
    """Switches activation checkpointing on where it is asked for.

    Args:
        model: A transformers model.
        choice: ``off``, ``on`` or ``offload``.

    Raises:
        ConfigError: If offloading is not possible here.
    """
    if choice == "off":
        return
    if hasattr(model, "activation_checkpointing_enable"):
        model.activation_checkpointing_enable(offload=choice == "offload")
    elif choice == "offload":
        raise ConfigError(
            "activation-checkpointing = offload needs a newer transformers.", "Type: --activation-checkpointing on"
        )
    else:
        model.gradient_checkpointing_enable({"use_reentrant": False})
