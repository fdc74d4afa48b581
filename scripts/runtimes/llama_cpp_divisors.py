"""Whether the graph of an architecture applies the divisors of a file: a tensor is written into one, and the file is run."""

from __future__ import annotations

from pathlib import Path

from ropectl.checkpoint.gguf_patch import patch_gguf
from ropectl.gguf import architectures
from ropectl.gguf.header import read_header
from ropectl.hf.config.source import read_config
from ropectl.rope.registry import parse_method
from scripts.runtimes.llama_cpp_cases import FACTOR, TRAINED


def write_divisors(source: Path, out: Path) -> None:
    """Writes a copy of a GGUF file with the divisors of a frozen ``dynamic-yarn``, whatever its architecture."""
    rope = read_config(str(source), original_length=TRAINED).rope
    architecture = read_header(source).architecture
    known = architecture in architectures.DIVISOR_TENSORS_READ
    reason = architectures.NOT_PATCHED.pop(architecture, None)
    if not known:
        architectures.DIVISOR_TENSORS_READ[architecture] = (architectures.ROPE_FREQS,)
    try:
        method, length = parse_method("dynamic-yarn"), FACTOR * TRAINED
        patch_gguf(source, out, method, rope.geometry, target_length=length, seq_len=length)
    finally:
        if not known:
            del architectures.DIVISOR_TENSORS_READ[architecture]
        if reason is not None:
            architectures.NOT_PATCHED[architecture] = reason
