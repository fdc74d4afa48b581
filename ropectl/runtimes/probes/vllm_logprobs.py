"""Asks vLLM for the log-probability of tokens of a text given the tokens before them.

Run by the Python of an environment that holds vLLM; imports nothing else:

    python vllm_logprobs.py MODEL IDS.json > LOGPROBS.json

IDS.json is ``{"token_ids": [...], "positions": [...]}``; without ``positions`` every token but the first is
scored. The last line of the output is ``{"runtime", "version", "positions", "logprobs"}``: ``logprobs[k]``
[nats] belongs to ``token_ids[positions[k]]`` given all tokens before it. Weights, activations and cache are
float32; nothing is compiled and no prefix is cached, so that only the model is measured.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="checkpoint folder")
    parser.add_argument("ids", type=Path, help="JSON file with token_ids and, optionally, positions")
    arguments = parser.parse_args()
    given = json.loads(arguments.ids.read_text())
    token_ids = given["token_ids"]
    positions = given.get("positions") or list(range(1, len(token_ids)))

    os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "2")  # GiB
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    import vllm

    model = vllm.LLM(
        arguments.model,
        dtype="float32",
        enforce_eager=True,
        max_model_len=len(token_ids) + 1,
        skip_tokenizer_init=True,
        enable_prefix_caching=False,
    )
    wanted = vllm.SamplingParams(max_tokens=1, prompt_logprobs=0, detokenize=False)
    (output,) = model.generate([{"prompt_token_ids": token_ids}], wanted, use_tqdm=False)
    logprobs = [output.prompt_logprobs[position][token_ids[position]].logprob for position in positions]
    result = {"runtime": "vllm", "version": f"vllm {vllm.__version__}", "positions": positions, "logprobs": logprobs}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
