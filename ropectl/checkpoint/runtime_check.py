"""``verify-runtime``: which reading of a checkpoint another program computes.

The program is started in an environment of its own, or is a server that runs already. It is asked for the
log-probabilities of a text; transformers computes those of the same tokens under every known reading.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from ropectl.checkpoint.endpoint.client import Client
from ropectl.checkpoint.endpoint.detect import find_server
from ropectl.checkpoint.verify.answer import Answer
from ropectl.checkpoint.verify.asking import ask_server, read_key
from ropectl.checkpoint.verify.checked_text import text_ids
from ropectl.checkpoint.verify.known_readings import KnownReading, known_readings
from ropectl.checkpoint.verify.likelihoods import own_likelihoods
from ropectl.checkpoint.verify.program import ask_program, check_format, checked_python
from ropectl.checkpoint.verify.reference import read_reference
from ropectl.checkpoint.verify.verdict import make_record
from ropectl.errors import ConfigError
from ropectl.evaluate.shared_config import DEFAULT_TEXT, Text
from ropectl.hf.config.dialects import text_section
from ropectl.hf.config.families import LATENT_ATTENTION_KEY
from ropectl.hf.config.source import ModelSource, read_config
from ropectl.hf.model.loading import LoadOptions
from ropectl.hf.model_settings import INPUTS, AllowPickle, Device, OriginalLength, Strict, TrustRemoteCode
from ropectl.hf.run_names import check_device
from ropectl.hf.tensors.fit import check_tensors
from ropectl.option import Option, Panel
from ropectl.records import to_json
from ropectl.reporter import Reporter
from ropectl.runtimes.facts import llama_config, patch_facts, source_facts
from ropectl.runtimes.matrix import find_probe
from ropectl.setting_types import Settings, Tokens

#: Tokens compared where no length is named and the checkpoint is meant for more.
MAX_DEFAULT_LENGTH = 4096


class RuntimeCheckSettings(Settings):
    """The settings of ``verify-runtime``."""

    model: Annotated[str, Field(description="checkpoint folder, or .gguf file for llama.cpp"), Option(metavar="MODEL")]
    runtime: Annotated[
        str | None,
        Field(description="runtime to start: vllm or llama.cpp"),
        Option(Panel.runtime, "NAME", offers="asked_runtimes"),
    ] = None
    python: Annotated[
        Path | None,
        Field(description="Python of the environment that holds the runtime"),
        Option(Panel.runtime, "PATH"),
        INPUTS,
    ] = None
    endpoint: Annotated[
        str | None,
        Field(description="address of a running server instead: vLLM, sglang or llama-server"),
        Option(Panel.runtime, "URL"),
    ] = None
    served_model: Annotated[
        str | None,
        Field(description="name under which the server serves the checkpoint"),
        Option(Panel.runtime, "NAME", ("--model",), "the only one"),
    ] = None
    api_key_env: Annotated[
        str | None,
        Field(description="environment variable that holds the server's key"),
        Option(Panel.runtime, "NAME"),
    ] = None
    timeout: Annotated[
        float,
        Field(gt=0, le=86_400, description="longest wait for an answer of the server [seconds]"),
        Option(Panel.runtime, "S"),
    ] = 600.0
    reference: Annotated[
        str | None,
        Field(description="folder that a GGUF file was converted from, to compute in place of the file"),
        Option(Panel.runtime, "FOLDER", offers="models"),
        INPUTS,
    ] = None
    text: Text = DEFAULT_TEXT
    length: Annotated[
        Tokens | None,
        Field(ge=8, description="tokens to run [tokens]"),
        Option(Panel.measurement, "N", default="what the checkpoint is meant for, at most 4k"),
    ] = None
    positions: Annotated[
        int | None,
        Field(ge=8, description="tokens to compare, evenly spread"),
        Option(Panel.measurement, "N", default="all; 128 for llama-server, which takes a request for each"),
    ] = None
    original_length: OriginalLength = None
    trust_remote_code: TrustRemoteCode = False
    strict: Strict = False
    allow_pickle: AllowPickle = False
    device: Device = "auto"

    def check_typed(self) -> None:
        """Checks the device."""
        check_device(self.device)


def verify_runtime(settings: RuntimeCheckSettings, reporter: Reporter | None = None) -> dict[str, Any]:
    """Returns which reading of a checkpoint another program computes, as the JSON values of a record.

    Args:
        settings: The checkpoint, the program and the text.
        reporter: Shows progress and notes.

    Raises:
        ConfigError: If the checkpoint is not in the program's format, or there is no such Python or server.
        MeasurementError: If the program fails.
    """
    reporter = reporter or Reporter()
    _check_together(settings)
    probe = None if settings.runtime is None else find_probe(settings.runtime)
    read = settings.original_length, settings.trust_remote_code
    given = read_config(settings.model, None, *read, strict=settings.strict)
    source = given if settings.reference is None else read_reference(settings.reference, given, *read, settings.strict)
    if source.adapter is not None:
        raise ConfigError(
            f"{source.name} is an adapter, and the runtime would only see its base.",
            f"Merge it first: ropectl patch {shlex.quote(source.name)} -o merged",
        )
    if probe is not None and settings.runtime is not None:
        check_format(settings.runtime, probe, given)
    python = None if settings.python is None else checked_python(settings.python)
    check_tensors(source)
    for note in source.rope.notes:
        reporter.note(note)
    target = max(source.rope.capacity(source.rope.method) or 0, source.rope.max_position_embeddings)
    length = _length(settings, source, target)
    options = LoadOptions("float32", settings.device, settings.trust_remote_code, settings.allow_pickle)

    def make_ids(count: int) -> list[int]:
        return text_ids(settings.text, source, options, count)

    if probe is not None and python is not None and settings.runtime is not None:
        ids = make_ids(length)
        reporter.start(f"{len(ids)} tokens in {settings.runtime}")
        answer = ask_program(settings.runtime, probe, python, given, ids, settings.positions)
    else:
        answer = _ask_endpoint(settings, source, make_ids, length, reporter)
    readings = _readings(given, source, target, answer)
    found = own_likelihoods(source, options, readings, answer.ids, answer.passages, reporter)
    return to_json(make_record(settings.model, settings.reference, source, target, answer, found))


def _check_together(settings: RuntimeCheckSettings) -> None:
    """Checks that settings name one program, and nothing that another way of asking would need.

    Raises:
        ConfigError: If they do not.
    """
    if (settings.runtime is None) == (settings.endpoint is None):
        what = "which program to ask" if settings.runtime is None else "one program, not two"
        raise ConfigError(
            f"Say {what}.", "Type --runtime NAME --python PATH to start one, or --endpoint URL for a running server."
        )
    if settings.runtime is not None and settings.python is None:
        raise ConfigError(
            "--runtime needs the Python of the environment that holds it.",
            f"Type for example: --runtime {settings.runtime} --python ENV/bin/python",
        )
    fields = type(settings).model_fields
    of_other = ("python",) if settings.endpoint is not None else ("served_model", "api_key_env", "timeout")
    idle = [name for name in of_other if getattr(settings, name) != fields[name].default]
    if idle:
        option = "--model" if idle[0] == "served_model" else f"--{idle[0].replace('_', '-')}"
        way = "--endpoint" if settings.endpoint is not None else "--runtime"
        raise ConfigError(f"{option} has no effect with {way}.", "Leave it out.")


def _length(settings: RuntimeCheckSettings, source: ModelSource, target: int) -> int:
    """Returns how long the text is [tokens].

    Raises:
        ConfigError: If more is asked for than the checkpoint is meant for: programs refuse more than it declares.
    """
    if settings.length is not None and settings.length >= target:
        raise ConfigError(
            f"length = {settings.length} is not below what {source.name} is meant for, {target} tokens, and the runtime "
            "generates one more.",
            f"Type for example: --length {target - 1}",
        )
    return settings.length or min(target, MAX_DEFAULT_LENGTH) - 1


def _ask_endpoint(
    settings: RuntimeCheckSettings,
    source: ModelSource,
    make_ids: Callable[[int], list[int]],
    length: int,
    reporter: Reporter,
) -> Answer:
    client = Client(str(settings.endpoint), read_key(settings.api_key_env), settings.timeout)
    server = find_server(client, settings.served_model)
    reporter.note(f"{client.url} is {server.kind}{f' {server.version}' if server.version else ''}.")
    trained = source.rope.geometry.original_max_position_embeddings
    return ask_server(server, make_ids, length, trained, settings.positions, reporter)


def _readings(given: ModelSource, source: ModelSource, target: int, answer: Answer) -> list[KnownReading]:
    """Returns the readings of the checkpoint; a GGUF file's own keys make one where a folder is the reference."""
    rope = source.rope
    facts = source_facts(source, None)
    if facts is None:  # a GGUF file: what runtimes make of the same scaling in a config
        facts = patch_facts(llama_config(rope.geometry), rope.geometry, rope.method, source.name, target_length=target)
    lengths = [passage.num_tokens for passage in answer.passages]
    own_keys = ("gguf-keys", "as the keys of the GGUF file say", given.rope.method, given.rope.geometry)
    others = [own_keys] if given is not source else []
    is_latent = text_section(source.config).get(LATENT_ATTENTION_KEY) is not None
    return known_readings(rope.method, rope.geometry, target, lengths, facts, others, is_latent)
