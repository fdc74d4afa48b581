"""The rotary tables that sglang's own model classes ask for, from config dictionaries, on the CPU.

sglang needs a GPU to import. Its model files are plain Python around layers: each is loaded out of an unpacked wheel with the real
rotary package and stand-ins for everything else, its decoder layer is made, and what that hands to ``get_rope`` goes into the real
``get_rope``. ``get_context_length`` is the wheel's own function. Any Python with torch and transformers 5 will do.

Reads ``{"folder": unpacked wheel, "configs": {name: config}}`` from stdin; writes for each config ``{"error": .., "where": ..}`` or
``{"length": tokens, "class": file, "tables": [{"layer": .., "rope": class, "found": {"all": {"inv_freq", "attention_factor"}}}]}``;
longrope has ``short`` and ``long`` in place of ``all``.
"""

import ast
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import inspect
import json
import sys
import types
from pathlib import Path

import real_rotary_sglang
from real_rotary_sglang import ROTARY

SGLANG = "sglang.srt"
MODELS = f"{SGLANG}.models"


class One:
    """Stands for whatever is not there: 1 in arithmetic, as the number of devices is, false in conditions."""

    def __bool__(self):
        return False

    def __call__(self, *values, **named):
        return values[0] if len(values) == 1 and not named and inspect.isclass(values[0]) else self

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __iter__(self):
        return iter(())

    def __int__(self):
        return 1

    __index__ = __int__

    def __floordiv__(self, other):
        return 1 // other

    def __rfloordiv__(self, other):
        return other

    __rtruediv__ = __rmul__ = __mul__ = __rfloordiv__

    def __add__(self, other):
        return other

    __radd__ = __add__

    def __rsub__(self, other):
        return other

    def __rmod__(self, other):
        return 0

    def __gt__(self, other):
        return other < 1

    def __ge__(self, other):
        return other <= 1

    def __lt__(self, other):
        return other > 1

    def __le__(self, other):
        return other >= 1

    def __getitem__(self, key):
        return self

    def __or__(self, other):
        return self

    __ror__ = __or__


def layer_class():
    """A class that takes everything and is a torch module."""
    import torch

    class Meta(type):
        def __getattr__(cls, name):
            if name.startswith("__"):
                raise AttributeError(name)
            return One()

    class Layer(torch.nn.Module, metaclass=Meta):
        def __init__(self, *values, **named):
            super().__init__()

        def __class_getitem__(cls, item):
            return cls

        def __getattr__(self, name):
            try:
                return super().__getattr__(name)
            except AttributeError:
                if name.startswith("_") or name.endswith("cache"):  # the rotary classes ask whether they have one
                    raise
                return One()

    return Layer


class Cpu(str):
    """The name of the CPU, for whoever wants it at once or by ``.device``."""

    device = "cpu"


#: What stand-ins hand out as it is: functions of the wheel, and where tensors are made.
REAL = {"get_device": lambda: Cpu("cpu")}


class StandIn(types.ModuleType):
    """A module in which every name in capitals is a layer and every other is :class:`One`."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if name in REAL:
            return REAL[name]
        return layer_class() if name[0].isupper() and not name.isupper() else One()


class Finder(real_rotary_sglang.Finder):
    """Rotary package and model files from the folder, everything else of sglang and its kernels as a stand-in."""

    programs = ("sglang", "sgl_kernel", "triton", "flashinfer", "einops", "aiter")
    real = (ROTARY, MODELS)
    stand_in = StandIn

    def exec_module(self, module):
        module.__path__ = []


def entry_files(folder):
    """The file of every model class that sglang registers, by the name of the class."""
    found = {}
    for file in sorted((Path(folder) / "sglang/srt/models").glob("*.py")):
        tree = ast.parse(file.read_text())
        for node in tree.body:
            if isinstance(node, ast.Assign) and any(getattr(t, "id", "") == "EntryClass" for t in node.targets):
                for name in ast.walk(node.value):
                    if isinstance(name, ast.Name):
                        found[name.id] = file.stem
    return found


def read_functions(folder):
    """Reads the wheel's own functions about configs, without what stands around them."""
    source = (Path(folder) / "sglang/srt/utils/hf_transformers/common.py").read_text()
    wanted = [
        node
        for node in ast.parse(source).body
        if getattr(node, "name", "") in ("get_context_length", "get_rope_config")
        or (isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "CONTEXT_LENGTH_KEYS")
    ]
    exec(compile(ast.Module(wanted, []), "common.py", "exec"), REAL)


def decoder_layers(module):
    """The classes that may be the decoder layer of a model file: those made of a config, of this file or of one that it builds on."""
    files = [
        module,
        *(found for name, found in sys.modules.items() if name.startswith(MODELS + ".") and found is not module),
    ]
    for file in files:
        kinds = [kind for kind in vars(file).values() if inspect.isclass(kind) and kind.__module__ == file.__name__]
        for ending in (("DecoderLayer", "Block"), ("Layer",), ("Attention", "AttentionMLA")):
            for kind in kinds:
                if kind.__name__.endswith(ending) and "config" in inspect.signature(kind.__init__).parameters:
                    yield kind


def asked_for(module, config):
    """What the decoder layers of a model file hand to ``get_rope``: (layer, positional, named) each."""
    calls, errors = [], []
    layer = 0

    def record(*values, **named):
        calls.append((layer, values, named))
        raise StopIteration  # all that is wanted is known

    for name in list(sys.modules):
        if name.startswith(MODELS):
            for each in ("get_rope", "get_rope_wrapper"):
                if each in vars(sys.modules[name]):
                    setattr(sys.modules[name], each, record)
    offered = {"config": config, "quant_config": None, "prefix": "", "alt_stream": None}
    for kind in decoder_layers(module):
        wanted = inspect.signature(kind.__init__).parameters
        for layer in range(config.num_hidden_layers):
            numbers = dict.fromkeys(("layer_id", "layer_idx", "layer_index"), layer)
            before = len(calls)
            try:
                kind(**{key: value for key, value in {**offered, **numbers}.items() if key in wanted})
            except StopIteration:
                pass
            except Exception as error:
                if len(calls) == before:
                    errors.append(f"{type(error).__name__}: {error}")
        if calls:
            return calls
    raise LookupError("no layer asked for a table: " + "; ".join(dict.fromkeys(errors)))


def real(files, config):
    """One config, read as its model class reads it."""
    from transformers import CONFIG_MAPPING

    architecture = config["architectures"][0]
    if architecture not in files:
        return {"error": "no class", "where": "registry"}
    hf_config = CONFIG_MAPPING[config["model_type"]].from_dict(config)
    length = REAL["get_context_length"](hf_config.get_text_config())
    for name in [name for name in sys.modules if name.startswith(MODELS + ".")]:
        del sys.modules[name]
    module = importlib.import_module(f"{MODELS}.{files[architecture]}")
    calls = asked_for(module, hf_config.get_text_config())
    return {
        "length": length,
        "class": files[architecture],
        "tables": [{"layer": layer, **built(*call)} for layer, *call in calls],
    }


def built(values, named):
    """What the real ``get_rope`` makes of one call."""
    from sglang.srt.layers.rotary_embedding import base, factory

    base._is_cpu, base.publish_role = True, lambda: None
    factory._ROPE_DICT.clear()
    named = {key: value for key, value in named.items() if key not in ("dtype", "device")}
    try:
        rope = factory.get_rope(*values, **named)
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}
    found = {}
    caches = (
        {"short": "short_cos_sin_cache", "long": "long_cos_sin_cache"}
        if hasattr(rope, "long_cos_sin_cache")
        else {"all": "cos_sin_cache"}
    )
    for name, attribute in caches.items():
        cos, sin = getattr(rope, attribute)[1].double().chunk(2)
        found[name] = {"inv_freq": sin.atan2(cos).tolist(), "attention_factor": float((cos**2 + sin**2).sqrt().mean())}
    return {"rope": type(rope).__name__, "found": found}


def main():
    task = json.load(sys.stdin)
    import torch
    import transformers  # noqa: F401

    torch.compile = lambda *values, **named: lambda function: function  # only the rotation itself is compiled
    sys.meta_path.insert(0, Finder(task["folder"]))
    read_functions(task["folder"])
    files, results = entry_files(task["folder"]), {}
    for name, config in task["configs"].items():
        try:
            results[name] = real(files, config)
        except Exception as error:
            results[name] = {"error": f"{type(error).__name__}: {error}", "where": "class"}
    print("\n" + json.dumps({"results": results}))


if __name__ == "__main__":
    main()
