"""The folder next to the result that holds a run: settings, metrics, saved states, the best weights.

    OUT.run/run.json             the settings that decide the result, and the environment
    OUT.run/metrics.jsonl        one line a step, one line a validation
    OUT.run/state-00000100/      everything needed to go on after step 100
    OUT.run/best/                the trained weights with the best validation

A state is written under another name and renamed once it is complete, so a kill at any moment leaves complete states
only. What was written is checked again before it is used: a full disk can cut a file short without an error.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ropectl.errors import ConfigError
from ropectl.json_reading import read_object
from ropectl.output_places import check_folder
from ropectl.printable import shown
from ropectl.runs import content_id, package_versions, write_json

PROGRESS, RUN, METRICS, BEST, LOCK = "progress.json", "run.json", "metrics.jsonl", "best", ".lock"
_STATE = re.compile(r"state-(\d{8})")


@dataclass(frozen=True)
class State:
    """A saved state of a run.

    Attributes:
        path: Its folder.
        progress: The progress of the run in this state; ``step`` is the number of finished steps.
    """

    path: Path
    progress: dict[str, Any]


class TrainingFolder:
    """The run folder that belongs to a result.

    Args:
        out: The place of the result; the run is kept next to it, as ``OUT.run``.
    """

    def __init__(self, out: Path) -> None:
        place = out.absolute()  # "." has no name of its own
        self.path = place.with_name(f"{place.name}.run")

    @property
    def metrics(self) -> Path:
        """The file of metrics."""
        return self.path / METRICS

    @property
    def best(self) -> Path:
        """The folder of the best weights."""
        return self.path / BEST

    @property
    def is_begun(self) -> bool:
        """True if a run has been written down here."""
        return (self.path / RUN).is_file()

    @property
    def data_fingerprint(self) -> str:
        """The fingerprint of the data that the run began with; empty where none can be read."""
        try:
            return str(read_object(self.path / RUN)["settings"]["data_fingerprint"])
        except (ConfigError, KeyError, TypeError):
            return ""

    def check_place(self) -> None:
        """Checks that nothing else is where the run is kept: a new run empties the folder.

        Raises:
            ConfigError: If something is.
        """
        check_folder(self.path)
        others = [p for p in self.path.iterdir() if not p.name.startswith(".")] if self.path.is_dir() else []
        if others and not self.is_begun:
            raise ConfigError(
                f"{self.path}, where the run is kept, holds other files, such as {min(others).name}, but no {RUN}.",
                "Choose another place: --out PATH",
            )

    def check_settings(self, settings: Mapping[str, Any], force: bool) -> list[str]:
        """Checks that a run here may be continued with these settings; returns notes about it.

        Raises:
            ConfigError: If the run began with other settings, and ``force`` is not set.
        """
        if not os.path.lexists(self.path / RUN):
            return []
        try:
            before = dict(read_object(self.path / RUN)["settings"])
        except (ConfigError, ValueError, KeyError, TypeError):
            if force:
                return [f"{self.path / RUN} cannot be read: the settings that the run began with are not known."]
            raise ConfigError(
                f"{self.path / RUN} cannot be read, so the settings of the run are not known.",
                "To begin again: --overwrite. To continue from its state anyway: --force",
            ) from None
        if content_id(before) == content_id(settings):
            return []
        changed = sorted(name for name in {*before, *settings} if before.get(name) != settings.get(name))
        if not force:
            described = [
                f"{name.replace('_', '-')} was {shown(before.get(name))}, is {shown(settings.get(name))}"
                for name in changed
            ]
            more = f"; and {len(described) - 3} more" if len(described) > 3 else ""
            raise ConfigError(
                f"{self.path} holds a run with other settings: {'; '.join(described[:3])}{more}.",
                "Another place: -o PATH. To begin again: --overwrite. To continue from its state anyway: --force",
            )
        return [f"Continuing although settings have changed: {', '.join(changed)}."]

    def begin(self, settings: Mapping[str, Any]) -> None:
        """Makes the folder and writes the settings of the run into it."""
        write_json(self.path / RUN, {"settings": dict(settings), "versions": package_versions()})

    def clear(self) -> None:
        """Removes the run."""
        found = self.path.iterdir() if self.path.is_dir() else ()
        for path in sorted(found, key=lambda each: each.name == RUN):  # RUN last: what a kill leaves is still a run
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            elif path.name != LOCK:  # the lock is held while this happens
                path.unlink(missing_ok=True)

    def describe_newest(self) -> str:
        """Returns, in words, which state a failed run can be continued from."""
        kept = self.states()
        return f"The state after step {kept[-1].progress['step']} is complete" if kept else "No state was saved yet"

    def states(self) -> list[State]:
        """Returns the complete saved states, oldest first."""
        found = []
        for path in sorted(self.path.glob("state-*")):
            progress = _complete_progress(path) if _STATE.fullmatch(path.name) else None
            if progress is not None:
                found.append(State(path, progress))
        return found

    def save(
        self,
        step: int,
        progress: Mapping[str, Any],
        keep: int,
        write: Callable[[Path], None],
        *,
        is_main: bool,
        barrier: Callable[[], None],
    ) -> None:
        """Writes a state, completely or not at all, and removes older ones.

        Args:
            step: Finished steps.
            progress: The progress to keep in the state.
            keep: Number of states that stay.
            write: Writes the state's files into a folder; called on every rank.
            is_main: Whether this rank makes, renames and removes folders.
            barrier: Waits for all ranks.
        """
        aside, final = self.path / f".state-{step:08d}.tmp", self.path / f"state-{step:08d}"
        if is_main:
            for leftover in self.path.glob(".state-*.tmp"):
                shutil.rmtree(leftover, ignore_errors=True)
            aside.mkdir(parents=True)
        barrier()
        try:
            write(aside)
            barrier()
            if is_main:
                sizes = {
                    path.relative_to(aside).as_posix(): path.stat().st_size
                    for path in aside.rglob("*")
                    if path.is_file()
                }
                write_json(aside / PROGRESS, {**progress, "step": step, "files": sizes})
                shutil.rmtree(final, ignore_errors=True)
                aside.rename(final)
                for state in self.states()[:-keep]:
                    shutil.rmtree(state.path, ignore_errors=True)
        except BaseException:
            if is_main:
                shutil.rmtree(aside, ignore_errors=True)
            raise
        barrier()

    def write_best(self, step: int, weights: dict[str, Any]) -> None:
        """Writes the weights of the best step so far; the main process calls it.

        Those of earlier steps stay as long as a saved state names them as its best: a killed run continues from there.
        """
        from safetensors.torch import save_file

        path = self.best_weights(step)
        path.parent.mkdir(parents=True, exist_ok=True)
        aside = path.with_name(f".{path.name}.tmp")
        save_file(weights, aside)
        aside.replace(path)
        needed = {step, *(state.progress.get("best_step") for state in self.states())}
        names = {self.best_weights(best).name for best in needed if best is not None}
        for other in path.parent.glob("*.safetensors"):
            if other.name not in names:
                other.unlink(missing_ok=True)

    def best_weights(self, step: int) -> Path:
        """Returns the file of the weights of a step that was the best."""
        return self.best / f"step-{step:08d}.safetensors"


def _complete_progress(path: Path) -> dict[str, Any] | None:
    """Returns the progress in a state if all its files are there with all their bytes; else None."""
    try:
        progress = read_object(path / PROGRESS)
        complete = all((path / name).stat().st_size == size for name, size in progress["files"].items())
    except (ConfigError, OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return progress if complete else None
