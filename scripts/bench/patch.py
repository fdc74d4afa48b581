"""Patching a checkpoint against loading and saving it with transformers: seconds and peak memory.

The plain way sets the same scaling in the config, loads the weights and saves everything. Each way runs in
a process of its own on the same files, made here with random weights (about 270 MB and 5 GB). That both
results carry the same config block and the same tensors is asserted.

    python scripts/bench/patch.py [--gigabytes 0.27 5] [--link] [--folder FOLDER]
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

SCALING = {"rope_type": "yarn", "rope_theta": 10_000.0, "factor": 4.0, "original_max_position_embeddings": 4096}
WAYS = ("ropectl patch", "load and save")


def peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def make_checkpoint(folder: Path, gigabytes: float) -> None:
    """Writes a LLaMA checkpoint of bfloat16 weights of about this size, in shards, without holding it whole."""
    import torch
    from safetensors.torch import save_file
    from transformers import LlamaConfig, LlamaForCausalLM

    hidden = 2048 if gigabytes > 1 else 1024
    per_layer = 2 * (4 * hidden * hidden + 3 * hidden * 4 * hidden)  # bytes
    layers = max(1, round(gigabytes * 1e9 / per_layer))
    config = LlamaConfig(
        hidden_size=hidden, intermediate_size=4 * hidden, num_hidden_layers=layers, num_attention_heads=hidden // 64,
        vocab_size=1000, max_position_embeddings=4096, tie_word_embeddings=True, dtype="bfloat16",
        rope_parameters={"rope_type": "default", "rope_theta": 10_000.0},
    )  # fmt: skip
    with torch.device("meta"):
        shapes = {name: value.shape for name, value in LlamaForCausalLM(config).state_dict().items()}
    shapes.pop("lm_head.weight")
    config.architectures = ["LlamaForCausalLM"]
    config.save_pretrained(folder)
    weight_map: dict[str, str] = {}
    names = list(shapes)
    shards = [names[start : start + 90] for start in range(0, len(names), 90)]
    for number, shard in enumerate(shards, 1):
        file = f"model-{number:05d}-of-{len(shards):05d}.safetensors"
        tensors = {name: torch.randn(shapes[name], dtype=torch.bfloat16) for name in shard}
        save_file(tensors, folder / file, metadata={"format": "pt"})
        weight_map |= dict.fromkeys(shard, file)
    index = {"metadata": {"total_size": 0}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def apart(function: Callable[..., None], *arguments: Any) -> None:
    """Runs something in a process of its own: a child's peak would start at what its parent holds."""
    process = multiprocessing.get_context("spawn").Process(target=function, args=arguments)
    process.start()
    process.join()
    assert process.exitcode == 0


def measure(way: str, source: str, out: str, link: bool) -> None:
    start = time.perf_counter()
    if way == WAYS[0]:
        from ropectl.checkpoint.patching import patch_checkpoint
        from ropectl.checkpoint.settings import PatchSettings

        patch_checkpoint(PatchSettings(model=source, method="yarn", factor=4, out=Path(out), link=link))
    else:
        from transformers import AutoConfig, AutoModelForCausalLM

        config = AutoConfig.from_pretrained(source)
        config.rope_parameters, config.max_position_embeddings = dict(SCALING), 16_384
        AutoModelForCausalLM.from_pretrained(source, config=config, dtype="auto").save_pretrained(out)
    print(json.dumps({"seconds": time.perf_counter() - start, "mib": peak_mib()}))


def run(way: str, source: Path, out: Path, link: bool) -> dict[str, Any]:
    command = [sys.executable, __file__, "--way", way, "--source", str(source), "--out", str(out)]
    done = subprocess.run(
        command + (["--link"] if link else []), check=True, capture_output=True, text=True
    ).stdout.splitlines()
    result: dict[str, Any] = json.loads(done[-1])
    return result


def tensors(folder: Path) -> dict[str, Any]:
    from safetensors import safe_open

    found = {}
    for path in sorted(folder.glob("*.safetensors")):
        with safe_open(path, "pt") as file:
            for name in list(file.keys())[::7]:
                found[name] = file.get_tensor(name)
    return found


def assert_equal(ours: Path, theirs: Path) -> None:
    blocks = [json.loads((folder / "config.json").read_text())["rope_parameters"] for folder in (ours, theirs)]
    assert blocks[0] == blocks[1] == SCALING
    left, right = tensors(ours), tensors(theirs)
    assert (left.keys() & right.keys()) and all(
        bool((left[name] == right[name]).all()) for name in left.keys() & right.keys()
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, nargs="+", default=[0.27, 5.0])
    parser.add_argument("--link", action="store_true", help="hard link instead of copying")
    parser.add_argument("--folder", type=Path, help="where to work (needs three times the size)")
    for name in ("--way", "--source", "--out"):
        parser.add_argument(name, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.way:
        measure(arguments.way, arguments.source, arguments.out, arguments.link)
        return
    print(f"{'checkpoint':>11}  {'way':<14} {'seconds':>8} {'peak MiB':>9}")
    for gigabytes in arguments.gigabytes:
        with tempfile.TemporaryDirectory(dir=arguments.folder) as scratch:
            source = Path(scratch) / "source"
            apart(make_checkpoint, source, gigabytes)
            size = sum(path.stat().st_size for path in source.iterdir()) / 1e9
            results = {}
            for way in WAYS:
                results[way] = run(way, source, Path(scratch) / way.replace(" ", "-"), arguments.link)
                print(f"{size:>8.2f} GB  {way:<14} {results[way]['seconds']:>8.1f} {results[way]['mib']:>9.0f}")
            ours, theirs = (results[way] for way in WAYS)
            apart(assert_equal, *(Path(scratch) / way.replace(" ", "-") for way in WAYS))
            print(
                f"{'':>11}  ratio: {theirs['seconds'] / ours['seconds']:.1f} times as fast, "
                f"{theirs['mib'] / ours['mib']:.1f} times less memory"
            )
            shutil.rmtree(source)


if __name__ == "__main__":
    main()
