"""The settings of published numbers, as data: a preset sets everything that changes the meaning of a number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ropectl.errors import ConfigError
from ropectl.evaluate.config import PerplexityConfig
from ropectl.names import unknown_choice


@dataclass(frozen=True)
class Preset:
    """The settings of one publication.

    Attributes:
        name: Its name for ``--preset``.
        reference: Their source.
        protocol: The protocol.
        stride: Tokens from one window to the next; None if there is one window a document.
        bos: The policy for the beginning-of-sequence token.
        shows_window_mean: Whether the published number is exp of the mean of window means, which is then shown
            next to the token-weighted one.
    """

    name: str
    reference: str
    protocol: str
    stride: int | None
    bos: str
    shows_window_mean: bool

    def settings(self) -> dict[str, Any]:
        """Returns the settings, by name."""
        return {"protocol": self.protocol, "bos": self.bos, **({"stride": self.stride} if self.stride else {})}


PRESETS = {
    preset.name: preset
    for preset in (
        Preset("pi", "Position Interpolation, arXiv 2306.15595, section 3.2", "sliding", 256, "auto", False),
        Preset("yarn", "github.com/jquesnelle/yarn, eval/perplexity.py --truncate", "prefix", None, "available", True),
        Preset("longlora", "github.com/dvlab-research/LongLoRA, eval.py", "overlapping", 256, "never", True),
    )
}


def check_lengths(preset: str | None, lengths: Sequence[int]) -> None:
    """Checks that windows of every length are longer than the stride of a preset, which sets it.

    Raises:
        ConfigError: If one is not.
    """
    stride = None if preset is None else PRESETS[preset].stride
    if stride is not None and min(lengths) <= stride:
        raise ConfigError(
            f"--preset {preset} sets stride = {stride}, which is not possible at length {min(lengths)}: a window there has "
            f"at most {min(lengths) - 1} tokens to score.",
            f"Use longer lengths, at least {stride + 1}, or leave out the preset.",
        )


def apply_preset(config: PerplexityConfig) -> PerplexityConfig:
    """Returns the settings with those of their preset filled in.

    Raises:
        ConfigError: If the preset is unknown, or a setting that was given contradicts it.
    """
    if config.preset is None:
        return config
    if config.preset not in PRESETS:
        raise unknown_choice("preset", config.preset, PRESETS)
    wanted = PRESETS[config.preset].settings()
    for name in ("protocol", "stride", "bos"):
        given, value = getattr(config, name), wanted.get(name)
        if name in config.model_fields_set and given is not None and given != value:
            does = f"sets {name} = {value}" if value is not None else f"has no {name}"
            raise ConfigError(
                f"--preset {config.preset} {does}: {name} = {given} contradicts it.",
                f"Leave out --{name}, or the preset.",
            )
    return config.model_copy(update=wanted)
