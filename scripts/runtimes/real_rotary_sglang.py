"""What the rotary classes of sglang really compute from config dictionaries, on the CPU.

sglang itself needs a GPU to import. Its rotary package is plain PyTorch: it is loaded alone out of an unpacked wheel, with
empty stand-ins for the kernels beside it, none of which takes part in building a table. Any Python with torch and
transformers 5 will do. Reads ``{"folder": unpacked wheel, "configs": {name: config}}`` from stdin and writes for each
config ``{"error": ..}`` or ``{"inv_freq": [..], "attention_factor": A}``; of longrope's two tables the long one.
"""

import importlib.abc
import importlib.machinery
import json
import sys
import types
from pathlib import Path

ROTARY = "sglang.srt.layers.rotary_embedding"


class No:
    """False, whatever is asked of it."""

    def __bool__(self):
        return False

    def __call__(self, *values, **named):
        return self

    def __getattr__(self, name):
        return self


class StandIn(types.ModuleType):
    """A module in which every platform test is false and every class is a plain torch module."""

    def __getattr__(self, name):
        import torch

        if name.startswith("__"):
            raise AttributeError(name)
        return torch.nn.Module if name[0].isupper() else No()


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """The rotary package from the folder, everything else of sglang as a stand-in."""

    programs = ("sglang",)
    #: Packages that are read from the folder.
    real = (ROTARY,)
    stand_in = StandIn

    def __init__(self, folder):
        self.folder = Path(folder)

    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] not in self.programs:
            return None
        if name == ROTARY or name.startswith(tuple(package + "." for package in self.real)):
            file = self.folder.joinpath(*name.split("."))
            is_package = file.is_dir()
            file = file / "__init__.py" if is_package else file.with_suffix(".py")
            places = [str(file.parent)] if is_package else None
            return importlib.util.spec_from_file_location(name, file, submodule_search_locations=places)
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return self.stand_in(spec.name)

    def exec_module(self, module):
        pass


def real(config):
    """One config, read as ``models/llama.py`` does."""
    from sglang.srt.layers.rotary_embedding import base, factory
    from transformers import LlamaConfig

    base._is_cpu, base.publish_role = True, lambda: None
    factory._ROPE_DICT.clear()
    hf_config = LlamaConfig.from_dict(config)
    block = dict(hf_config.rope_parameters)
    if getattr(hf_config, "original_max_position_embeddings", None):
        block["original_max_position_embeddings"] = hf_config.original_max_position_embeddings
    head_dim, limit = hf_config.head_dim, hf_config.max_position_embeddings
    rotary_dim = int(getattr(hf_config, "partial_rotary_factor", 1) * head_dim)
    rope = factory.get_rope(head_dim, rotary_dim, limit, block.get("rope_theta", 10000), True, block)
    cache = rope.long_cos_sin_cache if hasattr(rope, "long_cos_sin_cache") else rope.cos_sin_cache
    cos, sin = cache[1].double().chunk(2)
    return {"inv_freq": sin.atan2(cos).tolist(), "attention_factor": float((cos**2 + sin**2).sqrt().mean())}


def main():
    task = json.load(sys.stdin)
    import torch
    import transformers  # noqa: F401

    torch.compile = lambda *values, **named: lambda function: function  # only the rotation itself is compiled
    sys.meta_path.insert(0, Finder(task["folder"]))
    results = {}
    for name, config in task["configs"].items():
        try:
            results[name] = real(config)
        except Exception as error:
            results[name] = {"error": f"{type(error).__name__}: {error}"}
    print("\n" + json.dumps({"results": results}))


if __name__ == "__main__":
    main()
