"""Scripts that a runtime's own Python runs: token ids in, log-probabilities out. They import nothing of ropectl."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ropectl.errors import ConfigError

_FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Probe:
    """How a runtime is asked for log-probabilities.

    Attributes:
        script: The file that its Python runs, with a model and a JSON file of token ids.
        reads_gguf: Whether it reads GGUF files, and not checkpoint folders.
    """

    script: Path
    reads_gguf: bool


PROBES = {
    "vllm": Probe(_FOLDER / "vllm_logprobs.py", reads_gguf=False),
    "llama.cpp": Probe(_FOLDER / "llamacpp_logprobs.py", reads_gguf=True),
}


def find_probe(runtime: str) -> Probe:
    """Returns how a runtime is asked.

    Raises:
        ConfigError: If ropectl does not know how.
    """
    if runtime not in PROBES:
        raise ConfigError(f"There is no probe for the runtime {runtime!r}.", f"Known: {', '.join(PROBES)}.")
    return PROBES[runtime]
