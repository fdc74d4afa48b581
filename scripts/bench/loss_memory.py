"""Peak memory of scoring one long window with a 128k vocabulary: loss in chunks against whole logits.

Each way runs in a process of its own, which reports its peak resident set above what it held once the
model was loaded. Both give the same perplexity, which is asserted.

    python scripts/bench/loss_memory.py [--length 4096] [--vocabulary 131072]
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys

import torch
import torch.nn.functional as F
from transformers import LlamaConfig, LlamaForCausalLM

from ropectl.evaluate.forward import Forward

TOLERANCE = 1e-5


def peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(way: str, length: int, vocabulary: int) -> None:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=vocabulary, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
        max_position_embeddings=length, tie_word_embeddings=True,
    )  # fmt: skip
    model = LlamaForCausalLM(config).eval()
    ids = torch.randint(0, vocabulary, (1, length))
    forward = Forward.of(model)
    before = peak_mib()
    if way == "chunks":
        nll = forward.token_nll(ids)[0]
    else:
        with torch.inference_mode():
            nll = F.cross_entropy(
                model(input_ids=ids, use_cache=False).logits[0, :-1].float(), ids[0, 1:], reduction="none"
            )
    print(json.dumps({"mib": peak_mib() - before, "nll": nll.double().mean().item()}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--length", type=int, default=4096)
    parser.add_argument("--vocabulary", type=int, default=131_072)
    parser.add_argument("--way", choices=["chunks", "whole"], help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.way:
        measure(arguments.way, arguments.length, arguments.vocabulary)
        return
    results = {}
    for way in ("chunks", "whole"):
        command = [
            sys.executable,
            __file__,
            "--way",
            way,
            "--length",
            str(arguments.length),
            "--vocabulary",
            str(arguments.vocabulary),
        ]
        results[way] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert abs(results["chunks"]["nll"] - results["whole"]["nll"]) < TOLERANCE, results
    chunks, whole = results["chunks"]["mib"], results["whole"]["mib"]
    print(f"{arguments.length} tokens, vocabulary {arguments.vocabulary}, float32; peak above the loaded model")
    print(f"loss in chunks: {chunks:8.0f} MiB")
    print(f"whole logits:   {whole:8.0f} MiB")
    print(f"ratio:          {whole / chunks:8.1f}")


if __name__ == "__main__":
    main()
