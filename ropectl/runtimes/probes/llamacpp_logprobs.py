"""Asks llama.cpp for the log-probability of every token of a text given the tokens before it.

Run by the python of an environment that holds ``xllamacpp`` (prebuilt for CPUs); imports nothing else:

    python llamacpp_logprobs.py MODEL.gguf IDS.json > LOGPROBS.json

IDS.json is ``{"token_ids": [...], "positions": [...]}``; without ``positions`` every token but the first is
scored. LOGPROBS.json is ``{"runtime", "version", "positions", "logprobs"}``: ``logprobs[k]`` [nats] belongs
to ``token_ids[positions[k]]`` given all tokens before it.

How a token is scored is said in ``llamacpp_scorer.py``, which lies next to this file.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import xllamacpp
from llamacpp_scorer import Scorer, ScoringError

SCALING = {
    "none": "LLAMA_ROPE_SCALING_TYPE_NONE",
    "linear": "LLAMA_ROPE_SCALING_TYPE_LINEAR",
    "yarn": "LLAMA_ROPE_SCALING_TYPE_YARN",
    "longrope": "LLAMA_ROPE_SCALING_TYPE_LONGROPE",
}


def parse_arguments() -> argparse.Namespace:
    """The rotary options have the names and meanings of llama.cpp's own; without them the file decides."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, help="GGUF file")
    parser.add_argument("ids", type=Path, help="JSON file with token_ids and, optionally, positions")
    parser.add_argument("--context", type=int, help="context to allocate [tokens]; default: what the text needs")
    parser.add_argument("--threads", type=int, default=1, help="more are faster only where the cores are idle")
    parser.add_argument("--rope-scaling", choices=SCALING)
    parser.add_argument("--rope-scale", type=float, help="factor s; positions are divided by it")
    parser.add_argument("--rope-freq-base", type=float)
    parser.add_argument("--yarn-orig-ctx", type=int)
    parser.add_argument("--yarn-ext-factor", type=float)
    parser.add_argument("--yarn-attn-factor", type=float)
    parser.add_argument("--yarn-beta-fast", type=float)
    parser.add_argument("--yarn-beta-slow", type=float)
    return parser.parse_args()


def common_params(arguments: argparse.Namespace, num_tokens: int) -> Any:
    """Returns the settings of a server that computes as exactly as the file's weights allow."""
    params = xllamacpp.CommonParams()
    params.model.path = str(arguments.model)
    params.n_ctx = arguments.context or -(-(num_tokens + 1) // 256) * 256
    params.n_parallel = 1
    params.cpuparams.n_threads = arguments.threads
    params.cpuparams.poll = 0  # threads that wait do not spin: others may need the cores
    params.cache_type_k = params.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
    params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    params.fit_params = params.warmup = False
    params.verbosity = 1  # errors: why a file does not load
    if arguments.rope_scaling:
        params.rope_scaling_type = getattr(xllamacpp.llama_rope_scaling_type, SCALING[arguments.rope_scaling])
    if arguments.rope_scale:
        params.rope_freq_scale = 1.0 / arguments.rope_scale
    for name in (
        *("rope_freq_base", "yarn_orig_ctx", "yarn_ext_factor", "yarn_attn_factor", "yarn_beta_fast", "yarn_beta_slow"),
    ):
        if getattr(arguments, name) is not None:
            setattr(params, name, getattr(arguments, name))
    return params


def main() -> None:
    arguments = parse_arguments()
    given = json.loads(arguments.ids.read_text())
    token_ids = given["token_ids"]
    positions = given.get("positions") or list(range(1, len(token_ids)))
    if not all(0 < position < len(token_ids) for position in positions):
        raise SystemExit(f"Positions are from 1 to {len(token_ids) - 1}: a token is scored after at least one other.")
    scorer = Scorer(xllamacpp.Server(common_params(arguments, len(token_ids))).handle_completions, token_ids)
    try:
        scored = {position: scorer.score(position) for position in sorted(positions)}
    except ScoringError as error:
        raise SystemExit(str(error)) from None
    result = {
        "runtime": "llama.cpp",
        "version": f"xllamacpp {xllamacpp.__version__}",
        "positions": positions,
        "logprobs": [scored[position] for position in positions],
    }
    json.dump(result, sys.stdout)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
