"""Commands that test the chosen methods; they name the model and the length, and run as printed."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ropectl.advise.inspected import Inspected
from ropectl.hf.model_settings import CHECKPOINT, PERMISSION
from ropectl.lengths import format_length
from ropectl.rope.method import ScalingMethod
from ropectl.rope.tuning import Tuning

#: Settings of a training, by budget: light fits in the memory of short sequences, full trains on whole ones.
RECIPES: dict[Tuning, dict[str, Any]] = {
    Tuning.light: {"positions": "pose", "steps": 400},
    Tuning.full: {"steps": 1000, "short_fraction": 0.1},
}
RECIPE_FILE = "tune.yaml"


def result_name(model: str, method: ScalingMethod) -> str:
    """Returns a name for the checkpoint of a model under a method."""
    name = Path(model).name.removesuffix(".gguf").removeprefix("builtin:")
    return f"{name or 'model'}-{method.name}"


@dataclass(frozen=True)
class NextCommands:
    """The commands that test a choice of methods.

    Attributes:
        subject: The model's config, or plain numbers.
        target_length: The wanted length [tokens].
        tuning: The amount of training that is planned.
    """

    subject: Inspected
    target_length: int
    tuning: Tuning

    def _place(self) -> str:
        return shlex.quote(self.subject.settings.model)

    def _flags(self, replace: bool = True) -> str:
        """Returns the flags that select the model and its reading once more."""
        settings = self.subject.settings
        words = []
        for name in (*CHECKPOINT.changed(settings), *PERMISSION.changed(settings)):
            value = getattr(settings, name)
            if name != "model":
                words.append(f"--{name.replace('_', '-')}" + ("" if value is True else f" {shlex.quote(str(value))}"))
        if replace and self.subject.method(None).name != "none":
            words.append("--replace")
        return "".join(f" {word}" for word in words)

    def check(self) -> list[dict[str, str]]:
        """Returns the command that checks a model which needs no scaling."""
        if self.subject.setup is None:
            return []
        length = format_length(self.target_length)
        command = f"ropectl eval-passkey {self._place()} --length {length}{self._flags(replace=False)}"
        return [{"purpose": "Does it find what is far away?", "command": command}]

    def recipe(self) -> dict[str, str] | None:
        """Returns the settings file that a training takes; None where there is none."""
        if self.tuning is Tuning.none or self.subject.setup is None:
            return None
        lines = ["text: builtin:stdlib-train  # better: text of your own, such as books/*.txt"]
        lines += [f"{key}: {value}" for key, value in RECIPES[self.tuning].items()]
        return {"file": RECIPE_FILE, "content": "\n".join(lines) + "\n"}

    def after(self, methods: Sequence[ScalingMethod]) -> list[dict[str, str]]:
        """Returns the commands that test these methods; where one method is needed, the first is taken."""
        specs = "".join(f" -m {method.name}" for method in methods)
        target = f" --target-length {self.target_length}"
        numbers = self.subject.settings.geometry
        if numbers is not None:
            shown = f"ropectl inspect --geometry {shlex.quote(numbers)}{specs}{target}"
            return [{"purpose": "What does each compute?", "command": shown}]
        place, flags, first = self._place(), self._flags(), methods[0]
        compared = f"ropectl compare-methods {place}{specs}{target}{flags}"
        seq_len = f" --freeze-at {self.target_length}" if first.depends_on_seq_len else ""
        out = result_name(self.subject.settings.model, first)
        commands = [
            {"purpose": "What will a comparison take?", "command": f"{compared} --dry-run"},
            {"purpose": "Compare them as they are", "command": compared},
        ]
        if self.tuning is Tuning.none:
            command = f"ropectl patch {place} -m {first.name}{target}{seq_len}{flags} -o {shlex.quote(out)}"
            return [
                *commands,
                {
                    "purpose": "Once measured: write the one that you decide on (here the first choice)",
                    "command": command,
                },
            ]
        recipe = RECIPES[self.tuning]
        tuned = " ".join(f"--{key.replace('_', '-')} {value}" for key, value in recipe.items())
        return [
            *commands,
            {"purpose": f"Compare them after equal training ({RECIPE_FILE} above)", "command": f"{compared} --finetune {RECIPE_FILE}"},
            {
                "purpose": "Or train one (here the first choice)",
                "command": f"ropectl finetune {place} -m {first.name}{target} {tuned}{flags} -o {shlex.quote(f'{out}-tuned')}",
            },
        ]  # fmt: skip
