"""Runs a program in an environment of its own, whose Python runs a small script that comes with ropectl."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from ropectl.checkpoint.verify.answer import Answer
from ropectl.checkpoint.verify.passages import one_passage, spread
from ropectl.errors import ConfigError, MeasurementError
from ropectl.hf.config.source import ModelSource
from ropectl.runtimes.runtime import Probe


def checked_python(given: Path) -> Path:
    """Returns the path of an environment's Python.

    Raises:
        ConfigError: If there is none.
    """
    python = given.expanduser().absolute()  # the runtime starts in another folder; links stay, as in venvs
    if not (python.is_file() and os.access(python, os.X_OK)):
        what = f"{given} is not a program" if python.exists() else f"There is no Python at {given}"
        raise ConfigError(f"{what}.", "Give the environment's: --python ENV/bin/python")
    return python


def check_format(runtime: str, probe: Probe, source: ModelSource) -> None:
    """Checks that a runtime reads this kind of file.

    Raises:
        ConfigError: If it does not.
    """
    if (source.gguf_file is not None) != probe.reads_gguf:
        wanted = "a .gguf file" if probe.reads_gguf else "a checkpoint folder"
        raise ConfigError(f"{runtime} reads {wanted}; {source.name} is not one.", f"Give {wanted}.")


def ask_program(
    runtime: str, probe: Probe, python: Path, source: ModelSource, ids: list[int], wanted: int | None
) -> Answer:
    """Returns what a runtime computes, in float32 on the CPU.

    Args:
        runtime: Its name.
        probe: The script.
        python: The environment's Python.
        source: The checkpoint that it is given.
        ids: The text.
        wanted: How many tokens are compared; None for all.

    Raises:
        MeasurementError: If it fails.
    """
    place = Path(source.location) / (source.gguf_file or "")
    location = str(place.absolute()) if place.exists() else source.location  # else it is on the hub
    positions = spread(len(ids), wanted)
    result = _run(python, probe.path, location, ids, positions)
    return Answer(runtime, result["version"], ids, one_passage(len(ids), positions), result["logprobs"])


def _run(python: Path, script: Path, location: str, ids: list[int], positions: list[int]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as scratch:
        task = Path(scratch) / "ids.json"
        task.write_text(json.dumps({"token_ids": ids, "positions": positions}))
        command = [str(python), str(script), location, str(task)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=scratch)
    lines = done.stdout.strip().splitlines()
    try:
        result: dict[str, Any] = json.loads(lines[-1])
    except (IndexError, ValueError):
        last = "\n".join((done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[-5:])
        raise MeasurementError(f"The runtime failed with exit code {done.returncode}:\n{last}") from None
    return result
