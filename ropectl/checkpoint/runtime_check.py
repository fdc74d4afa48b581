"""``verify-runtime``: compares transformers and another runtime on the same text, token by token.

The runtime is in an environment of its own, whose Python runs a small script that comes with ropectl and returns
log-probabilities. Any difference then comes from how the runtime reads the checkpoint.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from ropectl.data.sources import open_source
from ropectl.errors import ConfigError, DataError, MeasurementError
from ropectl.evaluate.shared_config import DEFAULT_TEXT, Text
from ropectl.hf.config.source import ModelSource, read_config
from ropectl.hf.model.loading import LoadOptions, load_model, load_tokenizer
from ropectl.hf.model_settings import INPUTS, AllowPickle, OriginalLength, Strict, TrustRemoteCode
from ropectl.hf.tensors.fit import check_tensors
from ropectl.option import Option, Panel
from ropectl.records import SCHEMA_VERSION
from ropectl.reporter import Reporter
from ropectl.runs import command_line, package_versions
from ropectl.runtimes.matrix import find_probe
from ropectl.setting_types import Settings, Tokens

#: Mean difference over the text that counts as the same computation in float32 [nats a token].
AGREEMENT = 1e-3

#: Tokens compared where no length is named and the checkpoint is meant for more.
MAX_DEFAULT_LENGTH = 4096


class RuntimeCheckSettings(Settings):
    """The settings of ``verify-runtime``."""

    model: Annotated[str, Field(description="checkpoint folder, or .gguf file for llama.cpp"), Option(metavar="MODEL")]
    runtime: Annotated[
        str, Field(description="runtime: vllm or llama.cpp"), Option(Panel.runtime, "NAME", offers="asked_runtimes")
    ]
    python: Annotated[
        Path,
        Field(description="Python of the environment that holds the runtime"),
        Option(Panel.runtime, "PATH"),
        INPUTS,
    ]
    text: Text = DEFAULT_TEXT
    length: Annotated[
        Tokens | None,
        Field(ge=8, description="tokens to run [tokens]"),
        Option(Panel.measurement, "N", default="what the checkpoint is meant for, at most 4k"),
    ] = None
    positions: Annotated[
        int | None,
        Field(ge=1, description="tokens to compare, evenly spread"),
        Option(Panel.measurement, "N", default="all"),
    ] = None
    original_length: OriginalLength = None
    trust_remote_code: TrustRemoteCode = False
    strict: Strict = False
    allow_pickle: AllowPickle = False


def verify_runtime(settings: RuntimeCheckSettings, reporter: Reporter | None = None) -> dict[str, Any]:
    """Returns how much the log-probabilities of a runtime and of transformers differ on one checkpoint.

    Args:
        settings: The checkpoint, the runtime and the text.
        reporter: Shows progress and notes.

    Raises:
        ConfigError: If the checkpoint is not in the runtime's format, or there is no such Python.
        MeasurementError: If the runtime fails.
    """
    reporter = reporter or Reporter()
    probe = find_probe(settings.runtime)
    source = read_config(
        settings.model, None, settings.original_length, settings.trust_remote_code, strict=settings.strict
    )
    if (source.gguf_file is not None) != probe.reads_gguf:
        wanted = "a .gguf file" if probe.reads_gguf else "a checkpoint folder"
        raise ConfigError(f"{settings.runtime} reads {wanted}; {settings.model} is not one.", f"Give {wanted}.")
    if source.adapter is not None:
        raise ConfigError(
            f"{settings.model} is an adapter, and the runtime would only see its base.",
            f"Merge it first: ropectl patch {shlex.quote(settings.model)} -o merged",
        )
    python = settings.python.expanduser().absolute()  # the runtime starts in another folder; links stay, as in venvs
    if not (python.is_file() and os.access(python, os.X_OK)):
        raise ConfigError(
            f"There is no Python at {settings.python}.", "Give the environment's: --python ENV/bin/python"
        )
    check_tensors(source)
    for warning in source.rope.warnings:
        reporter.note(warning)
    target = max(source.rope.capacity(source.rope.method) or 0, source.rope.max_position_embeddings)
    if settings.length is not None and settings.length >= target:  # runtimes refuse more than the checkpoint declares
        raise ConfigError(
            f"length = {settings.length} is not below what {source.name} is meant for, {target} tokens, and the runtime "
            "generates one more.",
            f"Type for example: --length {target - 1}",
        )
    options = LoadOptions("float32", "cpu", settings.trust_remote_code, settings.allow_pickle)
    ids = _token_ids(settings, source, options, settings.length or min(target, MAX_DEFAULT_LENGTH) - 1)
    positions = _positions(len(ids), settings.positions)
    reporter.start(f"{len(ids)} tokens in transformers")
    ours = _own_logprobs(source, options, ids)
    reporter.start(f"{len(ids)} tokens in {settings.runtime}")
    place = Path(source.location) / (source.gguf_file or "")
    location = str(place.absolute()) if place.exists() else source.location  # else it is on the hub
    theirs = _run(python, probe.path, location, ids, positions)
    return _record(settings, source, ids, positions, [ours[position - 1] for position in positions], theirs)


def _token_ids(settings: RuntimeCheckSettings, source: ModelSource, options: LoadOptions, length: int) -> list[int]:
    """Returns the beginning of the first document that is long enough."""
    tokenizer = load_tokenizer(source, options)
    longest = 0
    for document in open_source(settings.text):
        ids = list(document.input_ids or tokenizer(document.text[: 20 * length])["input_ids"])
        if len(ids) >= length:
            return ids[:length]
        longest = max(longest, len(ids))
    raise DataError(
        f"{settings.text}: no document has {length} tokens; the longest has {longest}.", f"Use --length {longest}."
    )


def _positions(num_tokens: int, wanted: int | None) -> list[int]:
    if wanted is None or wanted >= num_tokens - 1:
        return list(range(1, num_tokens))
    return sorted({round(1 + k * (num_tokens - 2) / max(wanted - 1, 1)) for k in range(wanted)})


def _own_logprobs(source: ModelSource, options: LoadOptions, ids: list[int]) -> list[float]:
    import torch

    from ropectl.evaluate.forward import Forward

    nll: list[float] = Forward.of(load_model(source, options)).token_nll(torch.tensor([ids]))[0].tolist()
    return [-value for value in nll]


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


def _record(
    settings: RuntimeCheckSettings,
    source: ModelSource,
    ids: Sequence[int],
    positions: Sequence[int],
    ours: Sequence[float],
    theirs: dict[str, Any],
) -> dict[str, Any]:
    differences = [theirs_one - own for own, theirs_one in zip(ours, theirs["logprobs"], strict=True)]
    magnitudes = sorted(abs(difference) for difference in differences)
    mean = sum(magnitudes) / len(magnitudes)
    trained = source.rope.geometry.original_max_position_embeddings
    past = [abs(d) for d, position in zip(differences, positions, strict=True) if position >= trained]
    return {
        "schema_version": SCHEMA_VERSION,
        "model": settings.model,
        "method": str(source.rope.method),
        "geometry": source.rope.geometry.to_json(),
        "runtime": settings.runtime,
        "runtime_version": theirs["version"],
        "num_tokens": len(ids),
        "num_compared": len(differences),
        "num_past_trained_length": len(past),
        "nll_transformers": -sum(ours) / len(ours),
        "nll_runtime": -sum(theirs["logprobs"]) / len(ours),
        "mean_difference": mean,
        "mean_difference_past_trained_length": sum(past) / len(past) if past else None,
        "max_difference": magnitudes[-1],
        "allowed": AGREEMENT,
        "agrees": mean <= AGREEMENT,
        "versions": package_versions(),
        "command": command_line(),
    }
