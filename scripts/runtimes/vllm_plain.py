"""The model classes of a vLLM whose compiled part does not load: built, filled and called as they are, with plain attention.

Speaks as ``vllm_many.py`` does. Config, weights, rotary classes, layers and the rule for lengths are vLLM's own; only the attention
kernel, which knows nothing of rotations, is replaced by softmax(QK')V in PyTorch, and there is no scheduler and no cache.
"""

import contextlib
import tempfile

import vllm_many


def plain_attention(self, query, key, value, *others, **named):
    """Causal attention of one sequence: (T, heads * channels) each, the softmax's own additions among them."""
    import torch

    length, impl = query.shape[0], self.impl
    queries = query.reshape(length, self.num_heads, -1).transpose(0, 1)
    keys, values = (each.reshape(length, self.num_kv_heads, -1).transpose(0, 1) for each in (key, value))
    keys, values = (each.repeat_interleave(self.num_heads // self.num_kv_heads, 0) for each in (keys, values))
    scores = queries @ keys.transpose(1, 2) * impl.scale
    cap = getattr(impl, "logits_soft_cap", None)
    scores = torch.tanh(scores / cap) * cap if cap else scores
    back = torch.arange(length)[:, None] - torch.arange(length)[None]
    window = getattr(self, "sliding_window", None)
    window = window if isinstance(window, int) and window > 0 else length
    scores = scores.masked_fill((back < 0) | (back >= window), float("-inf"))
    sinks = getattr(impl, "sinks", None)
    if sinks is not None:
        scores = torch.cat([scores, sinks.float()[:, None, None].expand(-1, length, 1)], -1)
        return (scores.softmax(-1)[..., :-1] @ values).transpose(0, 1).reshape(length, -1)
    return (scores.softmax(-1) @ values).transpose(0, 1).reshape(length, -1)


#: Compiled operations that layers name when they are made, and do not call: they compute in PyTorch.
NAMED_ONLY = (
    "silu_and_mul",
    "mul_and_silu",
    "gelu_and_mul",
    "gelu_tanh_and_mul",
    "gelu_new",
    "gelu_fast",
    "gelu_quick",
    "fatrelu_and_mul",
)


def name_operations():
    """Makes the names of operations known that no library brought."""
    import torch

    missing = [name for name in NAMED_ONLY if not hasattr(torch.ops._C, name)]
    library = torch.library.Library("_C", "FRAGMENT")
    for name in missing:
        library.define(f"{name}() -> ()")
    return library


def engine_config(vllm, job):
    """The settings as an engine would make them."""
    from vllm.engine.arg_utils import EngineArgs

    return EngineArgs(
        job["folder"],
        dtype="float32",
        enforce_eager=True,
        max_model_len=job["served"],
        max_num_batched_tokens=job["served"],
        max_num_seqs=1,
        skip_tokenizer_init=True,
        enable_prefix_caching=False,
    ).create_engine_config()


def answer(vllm, job):
    """Builds the model of one job, calls it and lets it go."""
    import torch
    from vllm.config import set_current_vllm_config
    from vllm.distributed import cleanup_dist_env_and_memory, init_distributed_environment, initialize_model_parallel
    from vllm.forward_context import set_forward_context
    from vllm.model_executor.layers.rotary_embedding import _ROPE_DICT
    from vllm.model_executor.model_loader import get_model

    _ROPE_DICT.clear()
    where = "start"
    try:
        config = engine_config(vllm, job)
        config.compilation_config.custom_ops = ["none"]
        length = vllm_many.default_length(config.model_config)  # before the model class changes the type's name
        with contextlib.ExitStack() as stack:
            stack.enter_context(set_current_vllm_config(config))
            stack.enter_context(torch.no_grad())
            with tempfile.NamedTemporaryFile() as file:
                init_distributed_environment(1, 0, f"file://{file.name}.dist", 0, "gloo")
                initialize_model_parallel(1, 1)
            model = get_model(vllm_config=config)
            where = "run"
            rotary = vllm_many.rotary_tables(model)
            three = any(hasattr(module, "mrope_section") and module.mrope_section for module in model.modules())
            result = {"class": type(model).__name__, "rotary": rotary, "length": length, "logprobs": []}
            for ids in job["texts"]:
                tokens, positions = torch.tensor(ids), torch.arange(len(ids))
                positions = positions.expand(3, -1).contiguous() if three else positions
                with set_forward_context(None, config, num_tokens=len(ids)):
                    hidden = model(input_ids=tokens, positions=positions)
                try:
                    logits = model.compute_logits(hidden, None)
                except TypeError:  # later versions take no sampling metadata
                    logits = model.compute_logits(hidden)
                scored = logits[:-1].float().log_softmax(-1).gather(1, tokens[1:, None])
                result["logprobs"].append(scored[:, 0].tolist())
            return result
    except BaseException as error:
        return vllm_many.told(error, where)
    finally:
        cleanup_dist_env_and_memory()


def main():
    vllm_many.prepare()
    import vllm
    import vllm.platforms

    if not vllm.platforms.current_platform.device_type:  # old releases know the CPU by the name of the package only
        from vllm.platforms.cpu import CpuPlatform

        vllm.platforms._current_platform = CpuPlatform()
    try:
        from vllm.attention.layer import Attention
    except ModuleNotFoundError:  # where later versions keep it
        from vllm.model_executor.layers.attention import Attention
    _kept = name_operations()  # as long as the process lives
    Attention.forward = plain_attention
    vllm_many.serve(vllm, answer)


if __name__ == "__main__":
    main()
