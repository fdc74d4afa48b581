"""Where the time and the memory of a comparison go, on a model of SmolLM2-135M's size with random weights.

Time: the share of a whole comparison's wall time, loading and tokenizing included, that is spent inside forward passes
(decoder and output head). Memory: the peak resident set of scoring one long document and one grid of passkeys, above
what the weights and the key-value cache take. Each part runs in a process of its own.

    python scripts/bench/compare.py [--length 16384] [--threads 2]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

from ropectl.builtin import TINY_MODEL_DIR
from ropectl.compare.run import compare_methods
from ropectl.data.tokens import DocumentSet, TokenizedDocument
from ropectl.evaluate import forward
from ropectl.evaluate.config import CompareConfig
from ropectl.evaluate.perplexity.protocols.prefix import Prefix
from ropectl.evaluate.perplexity.runner import measure_perplexity
from ropectl.evaluate.perplexity.windows import PassOptions, PerplexityRequest
from ropectl.hf.config.geometry import describe_rope
from ropectl.hf.model import cache as key_value_cache
from ropectl.rope.registry import parse_method

TRAINED, CHUNK = 512, 512
PARTS = ("time", "whole", "whole in the heap", "chunks", "heap", "concatenated")


def make_model(length: int = TRAINED) -> LlamaForCausalLM:
    """A Llama of SmolLM2-135M's size."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=49_152, hidden_size=576, intermediate_size=1536, num_hidden_layers=30, num_attention_heads=9,
        num_key_value_heads=3, max_position_embeddings=length, tie_word_embeddings=True, bos_token_id=0,
        eos_token_id=None,
    )  # fmt: skip
    return LlamaForCausalLM(config).eval()


def time_share() -> dict[str, Any]:
    """Seconds of a comparison of three methods at twice the trained length, and those inside forward passes."""
    inside, started = [0.0], []

    def enter(module: Any, arguments: Any) -> None:
        started.append(time.perf_counter())

    def leave(module: Any, arguments: Any, output: Any) -> None:
        inside[0] += time.perf_counter() - started.pop()

    with tempfile.TemporaryDirectory() as folder:
        make_model().save_pretrained(folder)
        AutoTokenizer.from_pretrained(TINY_MODEL_DIR).save_pretrained(folder)
        from ropectl.evaluate import setup

        load = setup.load_model

        def watched(*arguments: Any) -> Any:
            model = load(*arguments)
            for module in (model.get_decoder(), model.get_output_embeddings()):
                module.register_forward_pre_hook(enter)
                module.register_forward_hook(leave)
            return model

        setup.load_model = watched
        config = CompareConfig(
            model=folder, methods=("pi", "dynamic-ntk"), factor=2, lengths=(512, 1024), documents=2, trials=2, depths=3
        )
        began = time.perf_counter()
        record = compare_methods(config, Path(folder) / "run").record
        total = time.perf_counter() - began
    kinds = {"prefix", "tail", "passkey"}
    assert {cell["kind"] for cell in record["manifest"]["cells"]} == kinds and not any(
        r["errors"] for r in record["rows"]
    )
    return {"total": total, "inside": inside[0]}


def status_mib(name: str) -> float:
    """MiB of this process, as Linux says."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(name))
    return int(line.split()[1]) / 1024


def peak_memory(length: int, chunk: int | None) -> dict[str, Any]:
    """MiB of scoring one document above weights and cache."""
    model = make_model(length)
    ids = torch.randint(0, 49_152, (length,)).tolist()
    documents = DocumentSet([TokenizedDocument("random", ids)], length, 1, length, None)
    geometry = describe_rope(model.config.to_dict()).geometry
    short = DocumentSet([TokenizedDocument("short", ids[:64])], 64, 1, 64, None)
    warm_up = PerplexityRequest(parse_method("none"), geometry, short, [64])
    measure_perplexity(model, Prefix(), warm_up)  # what torch sets up once
    request = PerplexityRequest(parse_method("yarn:factor=2"), geometry, documents, [length])
    Path("/proc/self/clear_refs").write_text("5")  # Linux: the peak begins anew
    before = status_mib("VmRSS")
    began = time.perf_counter()
    [point] = measure_perplexity(model, Prefix(), request, PassOptions(prefill_chunk=chunk))
    seconds = time.perf_counter() - began
    peak = status_mib("VmHWM")
    config = model.config
    width = config.num_key_value_heads * config.head_dim
    cache = 2 * config.num_hidden_layers * width * length * 4 / 2**20 if chunk else 0.0
    return {"above_weights": peak - before, "cache": cache, "nll": point.nll_sum / point.num_tokens, "seconds": seconds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--length", type=int, default=16_384)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--part", choices=PARTS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    if arguments.part:
        if arguments.part == "concatenated":  # as transformers itself grows a cache
            forward.make_room = lambda cache, length: None
        if arguments.part in ("heap", "whole in the heap", "concatenated"):  # large blocks as the C library places them
            key_value_cache.map_large_blocks = forward.map_large_blocks = lambda: False
        chunk = None if arguments.part.startswith("whole") else CHUNK
        found = time_share() if arguments.part == "time" else peak_memory(arguments.length, chunk)
        print(json.dumps(found))
        return
    results = {}
    for part in PARTS:
        command = [
            sys.executable,
            __file__,
            "--part",
            part,
            "--length",
            str(arguments.length),
            "--threads",
            str(arguments.threads),
        ]
        results[part] = json.loads(
            subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1]
        )
    share = results["time"]["inside"] / results["time"]["total"]
    print(f"time: {share:.1%} of {results['time']['total']:.1f} s inside forward passes")
    whole = results["whole"]
    for part in ("whole", "whole in the heap"):
        found = results[part]
        print(
            f"memory, {arguments.length} tokens in one pass{part.removeprefix('whole')}: {found['above_weights']:.0f} MiB above "
            f"the weights ({found['seconds']:.0f} s)"
        )
    ways = (
        ("chunks", "as ropectl runs them"),
        ("heap", "large blocks in the heap"),
        ("concatenated", "and a cache that concatenates"),
    )
    for part, how in ways:
        found = results[part]
        assert abs(whole["nll"] - found["nll"]) < 1e-4 * whole["nll"], "all ways give the same loss"
        print(
            f"memory, {arguments.length} tokens in chunks of {CHUNK}, {how}: "
            f"{found['above_weights'] - found['cache']:.0f} MiB above weights and cache of {found['cache']:.0f} MiB "
            f"({found['seconds']:.0f} s)"
        )


if __name__ == "__main__":
    main()
