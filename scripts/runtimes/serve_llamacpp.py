"""llama.cpp's server over HTTP, from ``xllamacpp``, with the flags of ``llama-server`` that change the rotation.

    python serve_llamacpp.py MODEL.gguf --port 8081 [--rope-scaling none] [--rope-freq-base 10000] [-c 2048] ...

Run by the Python of an environment that holds ``xllamacpp``; imports nothing else. Ends with the process that started it.
"""

from __future__ import annotations

import argparse
import sys

import xllamacpp

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("model")
parser.add_argument("--port", type=int, default=8081)
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("-c", "--ctx-size", type=int, default=0)
parser.add_argument("--api-key")
parser.add_argument("--rope-scaling", choices=("none", "linear", "yarn", "longrope"))
parser.add_argument("--rope-scale", type=float)
for name in ("rope_freq_base", "yarn_ext_factor", "yarn_attn_factor", "yarn_beta_fast", "yarn_beta_slow"):
    parser.add_argument(f"--{name.replace('_', '-')}", type=float)
parser.add_argument("--yarn-orig-ctx", type=int)
given = parser.parse_args()

params = xllamacpp.CommonParams()
params.model.path, params.port, params.n_ctx, params.n_parallel = given.model, given.port, given.ctx_size, 1
params.cpuparams.n_threads, params.cpuparams.poll = given.threads, 0  # threads that wait do not spin
params.warmup = params.fit_params = False
if given.api_key:
    params.api_keys = [given.api_key]
if given.rope_scaling:
    kind = f"LLAMA_ROPE_SCALING_TYPE_{given.rope_scaling.upper()}"
    params.rope_scaling_type = getattr(xllamacpp.llama_rope_scaling_type, kind)
if given.rope_scale:
    params.rope_freq_scale = 1.0 / given.rope_scale
for name in (
    *("rope_freq_base", "yarn_orig_ctx", "yarn_ext_factor", "yarn_attn_factor", "yarn_beta_fast", "yarn_beta_slow"),
):
    if getattr(given, name) is not None:
        setattr(params, name, getattr(given, name))
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
sys.stdin.read()
