"""What one version of transformers computes from config files: its own config and rotary classes, no weights.

Started by ``collect_transformers.py`` with that version on PYTHONPATH. It imports nothing but torch and transformers, so that it runs
under any version of them. First it writes a line about the version: which model types it has, and what their classes take where a file
says nothing. A line of JSON with a family on stdin, ``{"model_type", "layer_type", "lengths", "files": {name: config}}``, is answered by a
line: for each file the first line of the error, or a table for each length, ``[frequencies, attention factor]``.
"""

import copy
import importlib
import inspect
import json
import os
import sys

os.environ |= {"TRANSFORMERS_VERBOSITY": "critical", "HF_HUB_OFFLINE": "1"}

import torch
import transformers
from transformers import CONFIG_MAPPING, PretrainedConfig
from transformers.models.auto import modeling_auto
from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

#: Modules under these names rotate something other than text, or serve the layers that see a window.
OTHER_PARTS = ("vision", "visual", "audio", "image", "local", "sliding")
MAPPINGS = ("MODEL_FOR_CAUSAL_LM_MAPPING", "MODEL_MAPPING")


def config_classes():
    """Returns every config class, parts of models included, by model type."""
    found = {}
    for model_type in CONFIG_MAPPING_NAMES:
        try:
            module = importlib.import_module(CONFIG_MAPPING[model_type].__module__)
        except Exception:
            continue
        found[model_type] = CONFIG_MAPPING[model_type]
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, PretrainedConfig) and value.__module__ == module.__name__:
                found.setdefault(value.model_type, value)
    found.pop("", None)
    return found


def defaults_of(kind):
    """Returns what a config class takes for the keys that decide a table, where a file does not say them."""
    try:
        config = kind()
    except Exception:
        return {}
    block = getattr(config, "rope_parameters", None) or getattr(config, "rope_scaling", None) or {}
    block = block.get("full_attention") or block
    theta = block.get("rope_theta", getattr(config, "rope_theta", None))
    found = {"rope_theta": theta} if isinstance(theta, (int, float)) else {}
    if block.get("rope_type", "default") != "default":
        found["block"] = block
    return found


def model_class(config):
    """Returns the class that runs a config."""
    for name in MAPPINGS:
        mapping = getattr(modeling_auto, name)
        if type(config) in mapping:
            return mapping[type(config)]
    module = importlib.import_module(type(config).__module__.replace(".configuration_", ".modeling_"))
    for value in vars(module).values():
        is_runner = isinstance(value, type) and getattr(value, "config_class", None) is type(config)
        if is_runner and "PreTrainedModel" not in value.__name__:
            return value
    raise LookupError("no class runs " + type(config).__name__)


def keep_rotary_real(module):
    """Makes the rotary classes of a modelling module build real tables inside a model without memory."""
    for name, kind in list(vars(module).items()):
        if not (isinstance(kind, type) and "Rotary" in name and issubclass(kind, torch.nn.Module)):
            continue
        if "__init__" not in vars(kind) or getattr(kind.__init__, "is_real", False):
            continue

        def real(self, *args, original=kind.__init__, **kwargs):
            with torch.device("cpu"):
                original(self, *args, **kwargs)

        real.is_real = True
        kind.__init__ = real


def rotary_modules(config):
    """Returns the rotary modules of the text layers that see everything."""
    kind = model_class(config)
    keep_rotary_real(sys.modules[kind.__module__])
    config._attn_implementation = "eager"
    try:
        with torch.device("meta"):
            model = kind(config)
    except NotImplementedError:  # some layers read what they are made of
        model = kind(config)
    found = {}
    for name, module in model.named_modules():
        if "Rotary" in type(module).__name__ and not any(part in name for part in OTHER_PARTS):
            found.setdefault(id(module), module)
    if not found:
        raise LookupError("no rotary module")
    return list(found.values())


def call(module, length, layer_type):
    """Returns what a rotary module gives for position 1 of a sequence."""
    parameters = inspect.signature(module.forward).parameters
    positions = torch.tensor([[1, length - 1]])
    if "position_ids" not in parameters:
        return [part[1] for part in module(torch.zeros(1, 1, 1, 1), seq_len=length)], False
    kwargs = {"layer_type": layer_type} if "layer_type" in parameters and layer_type else {}
    x = torch.zeros(1, 2, 1)
    try:
        result = module(x, positions, **kwargs)
    except (RuntimeError, IndexError, ValueError):
        result = module(x, positions.expand(3, 1, 2), **kwargs)
    if torch.is_tensor(result) and result.is_complex():
        return [result.reshape(-1, result.shape[-1])[0]], True
    return [part.reshape(-1, 2, part.shape[-1])[0, 0] for part in result], False


def table(module, length, layer_type):
    """Returns the frequencies that a module rotates by, read from its cos and sin, and the factor on both."""
    module = copy.deepcopy(module)
    parts, is_complex = call(module, length, layer_type)
    if is_complex:
        cos, sin = parts[0].real.double(), parts[0].imag.double()
    else:
        cos, sin = (part.double() for part in parts)
        own = getattr(module, (layer_type or "") + "_inv_freq", getattr(module, "inv_freq", None))
        pairs = own.numel() if own is not None else len(cos) // 2
        if len(cos) == 2 * pairs:
            is_neighbours = torch.equal(cos[0::2], cos[1::2]) and torch.equal(sin[0::2], sin[1::2])
            cos, sin = (part[0::2] if is_neighbours else part[:pairs] for part in (cos, sin))
    factors = torch.hypot(cos, sin)
    if (factors - factors[0]).abs().max() > 1e-5:
        raise ValueError("cos and sin are multiplied by several factors")
    return [[float(f"{value:.7g}") for value in torch.atan2(sin, cos).tolist()], float(f"{factors[0].item():.7g}")]


def run(kind, task, content):
    """Returns the tables of one file, or the first line of the error."""
    try:
        config = kind.from_dict(copy.deepcopy(content))
        modules = rotary_modules(config)
        found = []
        for length in task["lengths"]:
            tables = [table(module, length, task["layer_type"]) for module in modules]
            if any(other != tables[0] for other in tables):
                raise LookupError("several rotary modules that differ")
            found.append(tables[0])
        return found
    except Exception as error:
        lines = str(error).strip().splitlines() or [""]
        return type(error).__name__ + ": " + " ".join(lines[:2])[:160]


def main():
    """Answers every line of stdin."""
    classes = config_classes()
    about = {"version": transformers.__version__, "model_types": sorted(classes)}
    about["defaults"] = {model_type: defaults_of(kind) for model_type, kind in sorted(classes.items())}
    print("\n" + json.dumps(about), flush=True)
    for line in sys.stdin:
        task = json.loads(line)
        kind = classes[task["model_type"]]
        print(json.dumps({name: run(kind, task, content) for name, content in task["files"].items()}), flush=True)


if __name__ == "__main__":
    main()
