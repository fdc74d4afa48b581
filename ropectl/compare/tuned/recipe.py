"""The recipe by which every method is trained: a file of settings, some of which the comparison decides itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ropectl.config_file import MAX_BYTES, read_yaml
from ropectl.data.sources import same_source
from ropectl.errors import ConfigError
from ropectl.evaluate.config import CompareConfig
from ropectl.evaluate.setup import Setup
from ropectl.file_reading import check_ordinary, read_text
from ropectl.hf.model_settings import CHECKPOINT, PERMISSION, SCALING
from ropectl.rope.method import ScalingMethod
from ropectl.setting_types import make_config
from ropectl.train.settings import RUN, FinetuneSettings

#: Groups of settings that the file must not contain, and why.
_DECIDED = {
    CHECKPOINT: "the model is the comparison's",
    PERMISSION: "the model is the comparison's",
    SCALING: "each method is trained",
    RUN: "the comparison keeps its trainings",
}

#: Settings that the file must not contain, and why.
REFUSED: Mapping[str, str] = {
    **{name: reason for group, reason in _DECIDED.items() for name in group.names(FinetuneSettings)},
    "early_stop": "methods would be trained for different numbers of steps",
    "cp_size": "a comparison runs as one process",
}


@dataclass(frozen=True)
class Recipe:
    """The settings that all trainings of a comparison share.

    Attributes:
        file: The file that they come from.
        content: Its text.
        given: The settings in it, checked.
        shared: The same, completed by the defaults.
    """

    file: Path
    content: str
    given: Mapping[str, Any]
    shared: FinetuneSettings

    @classmethod
    def read(cls, file: Path) -> Recipe:
        """Reads the file.

        Raises:
            ConfigError: If it cannot be read, or sets what the comparison decides or what is impossible.
        """
        check_ordinary(file, "The settings of finetune are read from a file.")  # every worker reads it again
        given = read_yaml(file)
        refused = [name for name in REFUSED if name in given]
        if refused:
            described = "; ".join(f"{name.replace('_', '-')} ({REFUSED[name]})" for name in refused)
            raise ConfigError(
                f"{file} sets what a comparison decides itself: {described}.",
                "Take it out of the file. Model, methods and factor are named on the command line, or with --config.",
            )
        try:
            shared = make_config(FinetuneSettings, dict(given))
        except ConfigError as error:
            raise ConfigError(f"{file}: {error.message}", error.hint) from None
        return cls(file, read_text(file, MAX_BYTES), {name: getattr(shared, name) for name in given}, shared)

    def settings(self, setup: Setup, method: ScalingMethod, target_length: int, freeze: bool) -> FinetuneSettings:
        """Returns the settings of one method's training, without a place to write to.

        Args:
            setup: The model.
            method: The method.
            target_length: The context that the comparison is about: where the file names no ``seq_len``, every
                method is trained on sequences of it, or with skipped positions of the trained length [tokens].
            freeze: Write the frequencies of the target length, because no config can express the method.
        """
        existing = setup.source.rope.method
        keeps = method == existing and method.name != "none"
        follows = method.depends_on_seq_len and not hasattr(method, "factor")
        default = setup.trained_length if self.shared.positions == "pose" else target_length
        seq_len = self.shared.seq_len or default
        config = setup.config
        defaults = {
            "bos": config.bos,
            "attention": config.attention,
            "device": "cpu" if config.device == "cpu" else "auto",
        }
        decided = {name: getattr(config, name) for g in (CHECKPOINT, PERMISSION) for name in g.names(FinetuneSettings)}
        scaling = {
            "method": None if keeps else str(method),
            "replace": existing.name != "none" and not keeps,
            "target_length": target_length if follows and not keeps and not freeze else None,
            "freeze_at": max(target_length, seq_len) if freeze else None,
        }
        return make_config(FinetuneSettings, {**defaults, **self.given, **decided, **scaling, "seq_len": seq_len})

    def to_json(self) -> dict[str, Any]:
        """Returns the file and the settings, as a record holds them."""
        shared = self.shared.model_dump(mode="json", exclude=set(REFUSED))
        return {"file": str(self.file), "content": self.content, "settings": shared}


def read_recipe(config: CompareConfig) -> Recipe | None:
    """Returns the recipe of a comparison; None if it trains nothing.

    Raises:
        ConfigError: If the file cannot be used, or trains on the text that is measured.
    """
    if config.finetune is None:
        return None
    recipe = Recipe.read(config.finetune)
    if same_source(recipe.shared.text, config.text):
        raise ConfigError(
            f"{recipe.file} trains on {config.text}, which is also the text that is measured.",
            "Name text that no method is trained on: --text SOURCE",
        )
    return recipe
