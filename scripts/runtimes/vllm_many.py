"""Serves many small checkpoints one after another in one vLLM process and prints the log-probabilities of given tokens.

Runs in the Python that holds vLLM; imports nothing of ropectl. Every line of stdin is a job,
``{"folder": .., "texts": [[token ids], ..], "served": tokens to allow}``, and every job is answered by one line that starts
with ``ANSWER``: ``{"logprobs": [[..], ..], "length": .., "class": .., "rotary": [..]}`` or ``{"error": .., "where": ..}``.
``length`` is what vLLM would serve without being asked for a length [tokens]; ``rotary`` describes each rotary table.
"""

import gc
import json
import os
import sys
import traceback


def prepare():
    """Settings of a process that starts engines fast and computes in float32 on one thread."""
    settings = {
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "VLLM_MLA_DISABLE": "1",  # latent attention as ordinary attention: its own kernels need a GPU
        "VLLM_USE_V1": "1",
        "VLLM_LOGGING_LEVEL": "ERROR",
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
    }
    for key, value in settings.items():
        os.environ.setdefault(key, value)


def rotary_tables(model):
    """What every distinct rotary table of a model holds: class, frequencies, attention factor, rows."""
    found = []
    for module in model.modules():
        is_two = hasattr(module, "long_short_cos_sin_cache")
        cache = module.long_short_cos_sin_cache if is_two else getattr(module, "cos_sin_cache", None)
        if cache is None or cache.dim() != 2:
            continue
        offset = module.original_max_position_embeddings if is_two and getattr(module, "use_long_rope", True) else 0
        cos, sin = cache[offset + 1].double().chunk(2)
        rows = module.max_position_embeddings if is_two else cache.shape[0]
        entry = {
            "class": type(module).__name__,
            "inv_freq": sin.atan2(cos).tolist(),
            "attention_factor": float((cos**2 + sin**2).sqrt().mean()),
            "rows": rows,
        }
        if entry not in found:
            found.append(entry)
    return found


def default_length(config):
    """What vLLM serves without being asked for a length [tokens], by its own rule."""
    return int(config.get_and_verify_max_len(None))


def answer(vllm, job):
    """Starts an engine for one job, asks it and shuts it down."""
    from vllm.distributed import cleanup_dist_env_and_memory
    from vllm.model_executor.layers.rotary_embedding import _ROPE_DICT

    _ROPE_DICT.clear()  # a factor of 4 would be served the module of 4.0
    where, engine = "start", None
    try:
        engine = vllm.LLM(
            job["folder"],
            dtype="float32",
            enforce_eager=True,
            max_model_len=job["served"],
            max_num_batched_tokens=job["served"],
            max_num_seqs=1,
            kv_cache_memory_bytes=1 << 25,
            skip_tokenizer_init=True,
            enable_prefix_caching=False,
            disable_log_stats=True,
            limit_mm_per_prompt={"image": 0, "video": 0, "audio": 0},
        )
        where = "run"
        result = {"class": engine.apply_model(lambda model: type(model).__name__)[0]}
        result["rotary"] = engine.apply_model(rotary_tables)[0]
        result["length"] = default_length(engine.llm_engine.model_config)
        wanted = vllm.SamplingParams(max_tokens=1, prompt_logprobs=0, detokenize=False)
        result["logprobs"] = []
        for ids in job["texts"]:
            (output,) = engine.generate([{"prompt_token_ids": ids}], wanted, use_tqdm=False)
            result["logprobs"].append([output.prompt_logprobs[i][ids[i]].logprob for i in range(1, len(ids))])
        return result
    except BaseException as error:
        return told(error, where)
    finally:
        if engine is not None:
            engine.llm_engine.engine_core.shutdown()
        del engine
        cleanup_dist_env_and_memory()


def told(error, where):
    """Returns an error as an answer; an interruption goes on."""
    if isinstance(error, KeyboardInterrupt):
        raise error
    traceback.print_exc()
    lines = [line for line in str(error).splitlines() if line.strip()]
    return {"error": f"{type(error).__name__}: {' '.join(lines)[:600]}", "where": where}


def serve(vllm, answer):
    """Answers every job of stdin, a line each; the process ends with them."""
    gc.collect = lambda *generations: 0  # vLLM's own calls take most of the time of a small model
    print("ANSWER" + json.dumps({"version": vllm.__version__}), flush=True)
    for line in sys.stdin:
        print("\nANSWER" + json.dumps(answer(vllm, json.loads(line))), flush=True)
    os._exit(0)  # engines leave threads behind


def main():
    prepare()
    import vllm

    serve(vllm, answer)


if __name__ == "__main__":
    main()
