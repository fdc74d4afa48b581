"""Prints the model types whose configs an installed vLLM reads: those of its transformers, and of config classes of its own.

Runs in the Python that holds vLLM; imports nothing of ropectl.
"""

import json

import transformers
from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES
from vllm.transformers_utils.config import _CONFIG_REGISTRY


def main():
    types = sorted({*CONFIG_MAPPING_NAMES, *_CONFIG_REGISTRY})
    print(json.dumps({"transformers": transformers.__version__, "model_types": types}))


if __name__ == "__main__":
    main()
