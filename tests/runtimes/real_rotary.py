"""What the LLaMA classes of a transformers version really compute from config dictionaries.

As a script it reads ``{"configs": {name: config}, "lengths": {name: [..]}}`` from stdin and writes, for each config, either
``{"error": type}`` or ``{"tables": {length: [inv_freq, attention factor]}}``. It imports nothing but transformers and
torch, so that it runs under any version of them.
"""

import json
import sys


def real_tables(config, lengths):
    """Builds a fresh rotary module for each length, so that no state of one is seen by the next."""
    import torch
    from transformers import LlamaConfig
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

    tables = {}
    try:
        for length in lengths:
            module = LlamaRotaryEmbedding(config=LlamaConfig.from_dict(json.loads(json.dumps(config))))
            module(torch.zeros(1), torch.tensor([[0, length - 1]]))
            tables[str(length)] = [module.inv_freq.double().tolist(), float(module.attention_scaling)]
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}
    return {"tables": tables}


def main():
    import transformers

    task = json.load(sys.stdin)
    results = {name: real_tables(config, task["lengths"][name]) for name, config in task["configs"].items()}
    print("\n" + json.dumps({"version": transformers.__version__, "results": results}))


if __name__ == "__main__":
    main()
