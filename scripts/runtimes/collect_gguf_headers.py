"""What llama.cpp's converter writes for a LLaMA whose config is incomplete, contradictory or in either dialect.

The files are those of ``tests/runtimes/cases.py``; what comes out is kept in ``tests/runtimes/gguf_headers.json``, which a test
compares with the rules of llama.cpp.

    python scripts/runtimes/collect_gguf_headers.py --converter-python P
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from ropectl.gguf.architectures import ROPE_FREQS
from ropectl.gguf.header import read_floats, read_header
from ropectl.runs import write_json
from scripts.runtimes.collect_llama_cpp import Converter
from scripts.runtimes.llama_cpp_cases import SIZES
from scripts.runtimes.shrunken import write_checkpoint
from tests.runtimes.cases import files_in_the_wild

OUT = Path(__file__).parents[2] / "tests" / "runtimes" / "gguf_headers.json"
KEYS = (
    "context_length",
    "rope.freq_base",
    "rope.scaling.type",
    "rope.scaling.factor",
    "rope.scaling.original_context_length",
)


def header_of(file: Path) -> dict[str, Any]:
    """Returns the rotary keys and the divisors of a file."""
    header = read_header(file)
    found: dict[str, Any] = {key: header.own(key) for key in KEYS if header.own(key) is not None}
    divisors = read_floats(file, header, ROPE_FREQS)
    return {**found, **({"divisors": [float(f"{value:.7g}") for value in divisors]} if divisors else {})}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--converter-python", type=Path, required=True)
    converter = Converter(parser.parse_args().converter_python.absolute())
    results = {}
    with TemporaryDirectory() as scratch:
        base, folder, file = Path(scratch) / "base", Path(scratch) / "model", Path(scratch) / "model.gguf"
        write_checkpoint("llama", base, SIZES)
        folder.mkdir()
        os.link(base / "model.safetensors", folder / "model.safetensors")
        config = json.loads((base / "config.json").read_text())
        plain = {key: value for key, value in config.items() if "rope" not in key and "position" not in key}
        for name, content in files_in_the_wild().items():
            rotary = {key: value for key, value in content.items() if "rope" in key or "position" in key}
            (folder / "config.json").write_text(json.dumps({**plain, **rotary}))
            stops = converter.convert(folder, file, 1, False)["stops"]
            results[name] = {"stops": stops} if stops else header_of(file)
    converter.close()
    write_json(OUT, results)


if __name__ == "__main__":
    main()
