"""What to type next, after each command: notes on stderr, whose commands carry the settings at hand and run as printed.

``methods --choose`` and ``patch`` have commands that belong to their result: those of the advice, and how each runtime is
started. They are in its record, and on stdout.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ropectl.advise.next_commands import result_name
from ropectl.hf.model_settings import CHECKPOINT, PERMISSION
from ropectl.option import command_words
from ropectl.printable import printable

if TYPE_CHECKING:
    from pydantic import BaseModel

    from ropectl.advise.requests import InspectSettings
    from ropectl.checkpoint.settings import PatchSettings
    from ropectl.rope.method import ScalingMethod
    from ropectl.train.settings import FinetuneSettings

#: Passkey prompts fit into lengths from here on, whatever the tokenizer [tokens].
ROOM_FOR_PASSKEYS = 256

#: Where a server of vLLM or sglang listens by default, and llama-server.
ENDPOINT, GGUF_ENDPOINT = "http://localhost:8000", "http://localhost:8080"


def show(steps: Sequence[str], form: str) -> None:
    """Prints next steps as notes, one line each; none beside JSON, which is for programs."""
    from ropectl.cli.output import next_step

    for step in steps if form != "json" else ():
        next_step(step)


def after_dry_run(lacks_place: bool = False) -> list[str]:
    """Returns how to do what was only planned.

    Args:
        lacks_place: Whether the command has to be told where to write.
    """
    return [f"To do it: the same command {'with -o PLACE in place of' if lacks_place else 'without'} --dry-run."]


def after_inspection(settings: InspectSettings, shown: Iterable[str | None], geometry: Mapping[str, Any]) -> list[str]:
    """Returns the command that measures what was computed; for a model without scaling, the one that chooses methods.

    Args:
        settings: What was inspected.
        shown: The methods that were shown: without any in the settings, the model's own scaling.
        geometry: What the model was trained with, as JSON values.
    """
    if settings.geometry is not None:
        return []
    if settings.methods or any(method not in (None, "none") for method in shown):
        return _step("To measure it", "compare-methods", _comparison(settings, methods=settings.methods))
    from ropectl.advise.requests import ChoiceSettings

    shared = {name: getattr(settings, name) for name in _given(settings, ChoiceSettings)}
    words = command_words(
        "methods",
        ChoiceSettings(**{**shared, "target_length": 4 * geometry["original_max_position_embeddings"]}),
    )
    return _command("Methods to try for a longer context", [*words, "--choose"])


def after_explanation(kind: type[ScalingMethod]) -> list[str]:
    """Returns the command that measures a method; empty where it takes more than a factor."""
    from ropectl.rope.geometry import RopeGeometry

    usual = RopeGeometry(rotary_dim=128, rope_theta=10_000.0, original_max_position_embeddings=4096)
    if kind.missing(kind.fill_factor({}, 4.0, usual)):
        return []
    words = ["ropectl", "compare-methods", *([] if kind.name == "none" else ["-m", kind.name]), "--factor", "4"]
    return _command("To measure it, here on the built-in model", words)


def after_measurement(settings: BaseModel, out: Path | None) -> list[str]:
    """Returns the page about a record that was written, and the command that compares the same with no scaling.

    Args:
        settings: Of ``eval-perplexity``, ``eval-passkey`` or ``eval-tasks``.
        out: The record; None if it was only printed.
    """
    page = [] if out is None else _command("A page about it", ["ropectl", "report", str(out)])
    method = getattr(settings, "method", None)
    compared = _comparison(settings, methods=() if method is None else (method,))
    about = "Methods side by side" + ("" if method is None else ", with no scaling and any other -m NAME")
    return [*page, *_step(about, "compare-methods", compared)]


def after_script(script: Path) -> list[str]:
    """Returns the command that runs a script of ``harness``."""
    return _command("To run it, with pip install 'ropectl[harness]'", ["python", str(script)])


def before_training(settings: FinetuneSettings) -> list[str]:
    """Returns a hint where a training measures nothing on the way, early enough to begin again."""
    if settings.eval_every is not None:
        return []
    text = "" if settings.text.startswith("builtin:") else " --eval-text FILE"
    return [
        "No held-out text is measured while it trains, and the last state is written, not the best. To measure some: "
        f"--eval-every 50{text}"
    ]


def after_training(settings: FinetuneSettings, record: Mapping[str, Any]) -> list[str]:
    """Returns the command that compares the tuned model with the one that it was made from.

    Args:
        settings: Of the training.
        record: The record of the tuned checkpoint.
    """
    changes: dict[str, Any] = {"others": (record["output"],), "methods": (settings.method,) if settings.method else ()}
    if settings.compose:
        changes |= {"methods": (record["method"],), "replace": True, "factor": None, "target_length": None}
    if settings.eval_text is not None:
        changes |= {"text": settings.eval_text, "documents": settings.eval_documents}
    if settings.eval_lengths:
        changes["lengths"] = settings.eval_lengths
    is_held_out = settings.eval_text is not None or settings.text.startswith("builtin:")
    own = "" if is_held_out else " (--text FILE for text like yours that it was not trained on)"
    compared = _comparison(settings, ("bos", "attention", "strict"), **changes)
    return _step(f"Beside the model that it was made from{own}", "compare-methods", compared)


def after_patch(settings: PatchSettings) -> list[str]:
    """Returns the command that asks a running server what it computes; for an adapter, the one that measures it."""
    from ropectl.checkpoint.runtime_check import RuntimeCheckSettings

    shared = {name: getattr(settings, name) for name in PERMISSION.names(RuntimeCheckSettings)}
    if settings.merge is False:
        return _command("To measure it", ["ropectl", "compare-methods", str(settings.out)])
    where = ENDPOINT if settings.gguf_patch is None else GGUF_ENDPOINT
    asked = RuntimeCheckSettings(model=str(settings.out), endpoint=where, **shared)
    return _step("Whether a server that runs it computes what is meant", "verify-runtime", asked)


def after_comparison(record: Mapping[str, Any], folder: Path, settings: BaseModel) -> list[str]:
    """Returns the page about a comparison, and the checkpoint of its pick.

    Args:
        record: The comparison as JSON values.
        folder: Its run folder.
        settings: Its settings.
    """
    return [
        *_command("A page about them", ["ropectl", "report", str(folder)]),
        *_checkpoint_of_pick(record, settings),
    ]


def _checkpoint_of_pick(record: Mapping[str, Any], settings: BaseModel) -> list[str]:
    pick = record["pick"]
    if pick is None or pick["model"] != record["model"]:
        return []
    if pick["training"] is not None:
        rows = (row for row in record["rows"] if row["training"] and row["training"]["id"] == pick["training"])
        place = next(rows)["training"].get("checkpoint")
        return [f"The pick's checkpoint: {place}"] if place else []
    existing = record["manifest"]["existing"].get(pick["model"], "none")
    if pick["method"] in ("none", existing):
        return []
    from ropectl.checkpoint.settings import PatchSettings
    from ropectl.rope.registry import parse_method

    method, target = parse_method(pick["method"]), record["target_length"]
    changes = {"method": pick["method"], "replace": existing != "none", "out": result_name(pick["model"], method)}
    if method.depends_on_seq_len:
        changes["freeze_at"] = target
    if method.depends_on_seq_len or not hasattr(method, "factor"):  # else the factor says it
        changes["target_length"] = target
    shared = {name: getattr(settings, name) for name in _of_checkpoint(settings, PatchSettings)}
    return _step("The pick as a checkpoint", "patch", PatchSettings(**{**shared, **changes}))


def _comparison(settings: BaseModel, names: Sequence[str] | None = None, **changes: Any) -> BaseModel:
    """Returns the settings of a comparison of the same model, read and run in the same way.

    Args:
        settings: Of another command.
        names: The further settings that mean the same in both; by default all but limits and what seeds are for.
        changes: Settings in place of those.
    """
    from ropectl.evaluate.config import CompareConfig
    from ropectl.evaluate.shared_config import VERDICT

    scaling = ("factor", "target_length", "replace")
    wanted = {*scaling, *_of_checkpoint(settings, CompareConfig), *(names or CompareConfig.model_fields)}
    shared = [
        name
        for name in _given(settings, CompareConfig)
        if name in wanted and VERDICT not in CompareConfig.model_fields[name].metadata
    ]
    found = {**{name: getattr(settings, name) for name in shared}, **changes}
    if any(length < ROOM_FOR_PASSKEYS for length in found.get("lengths", ())):
        found["passkey"] = False
    return CompareConfig(**found)


def _given(settings: BaseModel, kind: type[BaseModel]) -> list[str]:
    """Returns the settings that were given and that another command has too."""
    return [name for name in kind.model_fields if name in settings.model_fields_set and hasattr(settings, name)]


def _of_checkpoint(settings: BaseModel, kind: type[BaseModel]) -> list[str]:
    """Returns the settings that say which checkpoint it is and how it is read."""
    names = {*CHECKPOINT.names(kind), *PERMISSION.names(kind)}
    return [name for name in _given(settings, kind) if name in names]


def _step(about: str, name: str, settings: BaseModel) -> list[str]:
    return _command(about, command_words(name, settings))


def _command(about: str, words: Sequence[str]) -> list[str]:
    """Returns a note with a command; none where a name holds characters that cannot be printed."""
    line = shlex.join(words)
    return [f"{about}: {line}"] if printable(line) == line else []
