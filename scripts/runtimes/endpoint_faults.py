"""Real servers with one fault each, provoked by its real flag, and the reading that ``verify-runtime --endpoint`` names.

    python scripts/runtimes/endpoint_faults.py MODEL.gguf --llamacpp-python P --vllm-python P --work FOLDER

MODEL.gguf is SmolLM2-135M-Instruct, the environments are those of ``proof.py``. The model is scaled by YaRN with
factor 4, its trained length taken to be 512 tokens; the text has 800, for llama-server 640. What transformers computes under each
reading is computed once and kept in the folder, and so is each finished row (``results.json``): it goes on from there.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ropectl.checkpoint.endpoint.client import Client
from ropectl.checkpoint.endpoint.detect import find_server
from ropectl.checkpoint.patching import patch_checkpoint
from ropectl.checkpoint.settings import PatchSettings
from ropectl.checkpoint.verify.asking import ask_server
from ropectl.checkpoint.verify.checked_text import text_ids
from ropectl.checkpoint.verify.known_readings import known_readings
from ropectl.checkpoint.verify.likelihoods import Likelihoods, own_likelihoods
from ropectl.checkpoint.verify.passages import one_passage, spread
from ropectl.checkpoint.verify.verdict import make_record
from ropectl.errors import ConfigError
from ropectl.gguf.header import read_header
from ropectl.gguf.writer import write_gguf
from ropectl.hf.config.source import ModelSource, read_config
from ropectl.hf.model.loading import LoadOptions
from ropectl.records import to_json
from ropectl.reporter import Reporter
from ropectl.runs import write_json
from ropectl.runtimes.facts import source_facts

TRAINED, FACTOR, NUM_TOKENS = 512, 4, 800
#: llama-server takes a request for each token: fewer of a shorter text.
FEW_TOKENS, NUM_POSITIONS = 640, 256
A = 1.1386294361119891
#: Written into a copy of the file: what ``llama-server --override-kv`` does with it.
ATTENTION_KEY = "llama.rope.scaling.attn_factor"
OPTIONS = LoadOptions("float32", "cpu")


@dataclass(frozen=True)
class Fault:
    """A server that is started in one way.

    Attributes:
        server: ``llama-server`` or ``vllm``.
        flags: What it is started with, as a person types it.
        expected: The code that has to be named.
        weights: Type of the weights.
    """

    server: str
    flags: str
    expected: str
    weights: str = "F32"

    @property
    def name(self) -> str:
        """Its row."""
        return " ".join(filter(None, (self.server, self.weights, self.flags)))


def _override(**block: Any) -> str:
    block = {
        "rope_type": "yarn",
        "rope_theta": 1e5,
        "factor": 4.0,
        "original_max_position_embeddings": TRAINED,
        **block,
    }
    return f"--hf-overrides {json.dumps({'rope_parameters': block}, separators=(',', ':'))}"


_BFLOAT16, _FLOAT32 = "--dtype bfloat16", "--dtype float32"
FAULTS = (
    Fault("llama-server", "", "as-meant", "Q8_0"),
    Fault("llama-server", "", "as-meant", "Q4_1"),
    Fault("llama-server", "--rope-scaling none", "unscaled", "Q8_0"),
    # The loader puts its own factor in the place of this flag's; only the key of the file multiplies it.
    Fault("llama-server", f"--yarn-attn-factor {A:.6f}", "as-meant", "Q8_0"),
    Fault("llama-server", f"{ATTENTION_KEY}={A:.6f}", "attention-factor-twice", "Q4_1"),
    Fault("llama-server", "--rope-freq-base 10000", "theta-dropped", "Q8_0"),
    Fault("llama-server", "-c 512", "as-meant, capped at 512", "Q8_0"),
    Fault("llama-server", "--yarn-orig-ctx 2048", "original-length-ignored", "Q4_1"),
    Fault("llama-server", "", "as-meant", "BF16"),
    Fault("llama-server", f"{ATTENTION_KEY}={1 / A:.6f}", "attention-factor-missing", "Q8_0"),
    Fault("llama-server", "--rope-freq-base 30000", "none", "Q8_0"),
    Fault("llama-server", "--rope-scale 16", "factor-twice", "Q4_1"),
    Fault("llama-server", "--rope-scaling linear", "type-pi", "Q8_0"),
    Fault("llama-server", "--rope-scaling none", "unscaled", "Q4_1"),
    Fault("llama-server", "", "as-meant", "F32"),
    Fault("vllm", _BFLOAT16, "as-meant", "BF16"),
    Fault("vllm", f"{_BFLOAT16} {_override(rope_type='default')}", "unscaled", "BF16"),
    Fault("vllm", f"{_FLOAT32} {_override(attention_factor=1.0)}", "attention-factor-missing"),
    Fault("vllm", f"{_BFLOAT16} {_override(attention_factor=round(A * A, 6))}", "attention-factor-twice", "BF16"),
    Fault("vllm", f"{_FLOAT32} {_override(rope_theta=1e4)}", "theta-dropped"),
    Fault("vllm", f"{_FLOAT32} --max-model-len 640", "as-meant, capped at 640"),
    Fault("vllm", f"{_FLOAT32} {_override(original_max_position_embeddings=2048)}", "original-length-ignored"),
    Fault("vllm", _FLOAT32, "as-meant"),
    Fault("vllm", f"{_FLOAT32} {_override(factor=16.0)}", "factor-twice"),
    Fault("vllm", f"{_FLOAT32} {_override(rope_theta=3e4)}", "none"),
)


def prepare(model: Path, work: Path) -> ModelSource:
    """Writes the checkpoint, and a GGUF file for each type of weights; returns the checkpoint."""
    scale = {"method": "yarn", "factor": FACTOR, "original_length": TRAINED}
    if not (work / "yarn4").is_dir():
        patch_checkpoint(PatchSettings(model=str(model), method="none", out=work / "base"))
        patch_checkpoint(PatchSettings(model=str(work / "base"), out=work / "yarn4", link=True, **scale))
    for kind in sorted({fault.weights for fault in FAULTS}):
        if (work / f"{kind}.gguf").is_file():
            continue
        make = Path(__file__).with_name("make_f32_gguf.py")
        subprocess.run([sys.executable, make, model, work / f"plain-{kind}.gguf", kind], check=True)
        patch_checkpoint(PatchSettings(gguf_patch=work / f"plain-{kind}.gguf", out=work / f"{kind}.gguf", **scale))
        (work / f"plain-{kind}.gguf").unlink()
    return read_config(str(work / "yarn4"))


def likelihoods(source: ModelSource, ids: list[int], work: Path) -> Likelihoods:
    """Returns every token under every reading, computed once. No reading follows the length here."""
    rope, target = source.rope, source.rope.max_position_embeddings
    readings = known_readings(rope.method, rope.geometry, target, [TRAINED, len(ids)], source_facts(source, None))
    file, codes = work / "likelihoods.json", [reading.code for reading in readings]
    if not file.is_file() or json.loads(file.read_text())["codes"] != codes:
        found = own_likelihoods(
            source, OPTIONS, readings, ids, one_passage(len(ids), spread(len(ids), None)), Reporter()
        )
        assert not found.skipped
        write_json(file, {"codes": codes, "logprobs": found.logprobs})
    return Likelihoods(readings, json.loads(file.read_text())["logprobs"], {})


def free_port() -> int:
    """Returns a port on which nobody listens."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def start(fault: Fault, work: Path, pythons: dict[str, Path], port: int) -> subprocess.Popen[bytes]:
    """Starts a server."""
    python = str(pythons[fault.server])
    flags = fault.flags.split()
    if fault.server == "vllm":
        command = [
            python, "-m", "vllm.entrypoints.openai.api_server", "--model", str(work / "yarn4"), "--enforce-eager",
            "--port", str(port), "--max-num-seqs", "2", *flags,
        ]  # fmt: skip
    else:
        script, file = Path(__file__).with_name("serve_llamacpp.py"), work / f"{fault.weights}.gguf"
        if flags and flags[0].startswith(ATTENTION_KEY):
            keys = {ATTENTION_KEY: float(flags.pop().partition("=")[2])}
            write_gguf(file, read_header(file), work / "changed.gguf", keys, {}, ())
            file = work / "changed.gguf"
        command = [python, str(script), str(file), "--port", str(port), *flags]
    log = (work / "server.log").open("wb")
    more = {"VLLM_CPU_KVCACHE_SPACE": "1", "HF_HUB_OFFLINE": "1"}
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log, env={**os.environ, **more})


def wait(client: Client, process: subprocess.Popen[bytes], seconds: float = 900) -> Any:
    """Returns the server once it answers."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if process.poll() is not None:
            raise SystemExit(f"The server ended with code {process.returncode}: see server.log.")
        try:
            return find_server(client, None)
        except ConfigError:
            time.sleep(1)
    raise SystemExit("The server does not answer: see server.log.")


def check(fault: Fault, source: ModelSource, ids: list[int], found: Likelihoods, work: Path, pythons: Any) -> Any:
    """Returns the record of one row."""
    port = free_port()
    process = start(fault, work, pythons, port)
    try:
        server = wait(Client(f"http://127.0.0.1:{port}"), process)
        length, wanted = (FEW_TOKENS, NUM_POSITIONS) if server.one_by_one else (len(ids), None)
        answer = ask_server(server, lambda count: ids[:count], length, TRAINED, wanted, Reporter())
    finally:
        process.terminate()
        process.wait(60)
    rows = [[row[position - 1] for position in answer.positions] for row in found.logprobs]
    mine = Likelihoods(found.readings, rows, {})
    record = make_record(source.name, None, source, source.rope.max_position_embeddings, answer, mine)
    return {**to_json(record), "positions": answer.positions, "logprobs": answer.logprobs}


def named(record: dict[str, Any]) -> str:
    """Returns what a record says, as :attr:`Fault.expected` writes it."""
    return record["verdict"] + (f", capped at {record['capped_at']}" if record["capped_at"] else "")


def short(flags: str) -> str:
    """Returns flags without the type of the weights, and without the keys of a block that are as they should be."""
    for same in (
        "--dtype float32",
        "--dtype bfloat16",
        '"rope_type":"yarn",',
        '"rope_theta":100000.0,',
        '"factor":4.0,',
    ):
        flags = flags.replace(same, "")
    return flags.replace(f'"original_max_position_embeddings":{TRAINED}', "...").strip()


def table(results: dict[str, Any]) -> str:
    """Returns the results as Markdown."""
    lines = ["| server | weights | flags | named | margin | noise |", "|---" * 6 + "|"]
    for fault in FAULTS:
        record = results.get(fault.name)
        if record is not None:
            margin = (
                ""
                if record["margin"] is None
                else f"{record['margin']:.2f} ({record['margin_low']:.2f} to {record['margin_high']:.2f})"
            )
            flags = short(fault.flags)
            said = named(record) + ("" if named(record) == fault.expected else f" **in place of {fault.expected}**")
            cells = [
                fault.server,
                fault.weights,
                f"`{flags}`" if flags else "none",
                said,
                margin,
                f"{record['noise']:.0e}",
            ]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--vllm-python", type=Path)
    parser.add_argument("--llamacpp-python", type=Path)
    parser.add_argument("--work", type=Path, default=Path("endpoint-faults"))
    arguments = parser.parse_args()
    pythons = {"vllm": arguments.vllm_python, "llama-server": arguments.llamacpp_python}
    work = arguments.work.absolute()
    work.mkdir(exist_ok=True)
    source = prepare(arguments.model, work)
    ids = text_ids("builtin:stdlib", source, OPTIONS, NUM_TOKENS)
    found = likelihoods(source, ids, work)
    file = work / "results.json"
    results = json.loads(file.read_text()) if file.is_file() else {}
    for fault in FAULTS:
        if fault.name in results or pythons[fault.server] is None:
            continue
        results[fault.name] = check(fault, source, ids, found, work, pythons)
        write_json(file, results)
        print(f"{fault.name}: {named(results[fault.name])}", file=sys.stderr, flush=True)
    print(table(results))
    wrong = [fault.name for fault in FAULTS if fault.name in results and named(results[fault.name]) != fault.expected]
    raise SystemExit(f"Named wrongly: {', '.join(wrong)}" if wrong else 0)


if __name__ == "__main__":
    main()
