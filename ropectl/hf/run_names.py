"""Checks the names of devices, attention and model types that torch and transformers know, without importing them.

Plugins add devices and attention implementations. A name that is not a misspelling of a known one is left to the library.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, get_args

from ropectl.errors import ConfigError, UnsupportedModelError
from ropectl.hf.foreign_types import what_it_is
from ropectl.names import near_names, unknown_choice
from ropectl.printable import shown

#: Types of weights; ``auto`` is float32 on the CPU and the checkpoint's own type elsewhere.
Dtype = Literal["auto", "float32", "bfloat16", "float16"]
DTYPES: tuple[str, ...] = get_args(Dtype)

#: The cases in which a window or a document begins with the beginning-of-sequence token.
BosPolicy = Literal["auto", "always", "available", "never"]
BOS_POLICIES: tuple[str, ...] = get_args(BosPolicy)

#: Attention implementations of transformers 5; ``paged|`` may come before one, and a name with ``/`` is a kernel on the hub.
ATTENTION = ("eager", "sdpa", "flex_attention", "flash_attention_2", "flash_attention_3", "flash_attention_4")

#: Types of devices in torch 2.13, the common ones first, and those of known plugins.
DEVICES = (
    *("auto", "cpu", "cuda", "mps", "xpu", "npu"),
    *("meta", "hip", "xla", "ipu", "hpu", "mtia", "maia", "vulkan", "mkldnn", "opengl", "opencl", "ideep", "ve", "fpga", "lazy"),
    *("privateuseone", "mlu", "musa", "gcu", "sdaa", "supa", "spyre", "qaic"),
)  # fmt: skip
_COMMON_DEVICES = DEVICES[:6]


def check_device(device: str) -> None:
    """Checks the type of a device, before anything is imported that takes seconds.

    Raises:
        ConfigError: If it is a misspelling of a common one.
    """
    kind = device.partition(":")[0]
    if kind in DEVICES:
        return
    near = ["cuda"] if kind.lower().startswith("gpu") else near_names(kind, _COMMON_DEVICES)
    if near:
        raise ConfigError(
            f"device = {device!r} is not possible: torch knows no such device. Did you mean {' or '.join(near)}?",
            "Type for example: --device cpu, --device cuda:1 or --device auto",
        )


def check_attention(attention: str | None, trusts_code: bool) -> None:
    """Checks the name of an attention implementation.

    Args:
        attention: The name; None for the default.
        trusts_code: Whether the checkpoint's own code runs, which may add implementations.

    Raises:
        ConfigError: If there is none of this name.
    """
    if attention is None or trusts_code:
        return
    name = attention.removeprefix("paged|")
    is_known = name in ATTENTION or "/" in name or re.fullmatch(r"flash_attention_\d", name)
    if is_known or ("|" in name and not near_names(name, ATTENTION)):
        return
    raise unknown_choice("attention", name, (*ATTENTION, "a kernel as ORGANISATION/NAME"))


#: The modules of transformers 5 that map model types to config classes, and how an entry is written there.
_TYPE_MAPS = ("models/auto/auto_mappings.py", "models/auto/configuration_auto.py")
_TYPE_ENTRY = re.compile(r'"([\w.-]+)"\s*[:,]\s*"(?!AutoConfig")\w+Config"')
_TYPE_REGISTRY = "transformers.models.auto.configuration_auto"

#: Similarity from which an unknown model type counts as misspelt: among some hundred short names, many are a little alike.
_MISSPELT = 0.8


#: The module of transformers 5 that says how the keys of GGUF files are named, and the table in it.
_GGUF_MAP, _GGUF_TABLE = (
    "integrations/ggml.py",
    re.compile(r"^GGUF_CONFIG_MAPPING = \{$(.*?)^\}$", re.MULTILINE | re.DOTALL),
)
_GGUF_ENTRY = re.compile(r'^    "(\w+)": \{$', re.MULTILINE)


@cache
def model_types() -> frozenset[str]:
    """Returns the model types that the installed transformers has a config class for, read from its source."""
    return frozenset(name for path in _TYPE_MAPS for name in _TYPE_ENTRY.findall(_source(path)))


def _source(path: str) -> str:
    """Returns the source of a module of the installed transformers; empty where it has none of this name."""
    spec = find_spec("transformers")
    file = (Path(spec.origin).parent if spec and spec.origin else Path()) / path
    return file.read_text(encoding="utf-8") if file.is_file() else ""


def check_gguf_weights(name: str, config: Mapping[str, Any]) -> None:
    """Checks that transformers reads the weights of a GGUF file, before its own words say that it does not.

    Args:
        name: The file, for the message.
        config: What its header says.

    Raises:
        UnsupportedModelError: If it does not.
    """
    table = _GGUF_TABLE.search(_source(_GGUF_MAP))
    known = _GGUF_ENTRY.findall(table[1]) if table else []
    model_type = str(config.get("model_type"))
    if known and model_type.removesuffix("_text") not in known:
        raise UnsupportedModelError(
            f"The installed transformers {version('transformers')} does not read the weights of GGUF files of {model_type}, so "
            f"no checkpoint folder can be made of {name}.",
            f"Its scaling can be written into a copy: ropectl patch --gguf-patch {shlex.quote(name)} -m SPEC -o OUT.gguf",
        )


def check_model_type(config: Mapping[str, Any], trusts_code: bool) -> None:
    """Checks that there is a class for a config's model type.

    Args:
        config: The content of a ``config.json``.
        trusts_code: Whether code that comes with the checkpoint runs, which may bring the class.

    Raises:
        ConfigError: If the config names no type.
        UnsupportedModelError: If neither the installed transformers nor the checkpoint has a class for it.
    """
    name = config.get("model_type")
    if name is None:
        raise ConfigError(
            "The config has no model_type, so its defaults are unknown.",
            "Give the folder of a Hugging Face checkpoint.",
        )
    registry = sys.modules.get(_TYPE_REGISTRY)  # only who has imported it can have added a type
    known = model_types() | set(registry.CONFIG_MAPPING.keys() if registry else ())
    own_code = config.get("auto_map")
    brings_class = isinstance(own_code, Mapping) and "AutoConfig" in own_code
    if name in known or (brings_class and trusts_code):
        return
    is_what, hint = what_it_is(str(name))
    near = [] if is_what else near_names(name, sorted(known), _MISSPELT)
    correct = "Correct model_type in config.json, or install a version of transformers that has it."
    if brings_class:
        hint = f"{hint} It brings its own code. To run that code: --trust-remote-code".strip()
    elif not hint:
        hint = f"Did you mean {' or '.join(near)}? {correct}" if near else correct
    raise UnsupportedModelError(
        f"The installed transformers {version('transformers')} has no class for model type {shown(name)}: "
        + (f"it is {is_what}." if is_what else "what such a model computes is not known."),
        hint,
    )


def check_own_code(location: str, config: Mapping[str, Any]) -> None:
    """Checks that the code which a folder names is in it, before transformers looks for it on the hub.

    Args:
        location: Folder, or hub id.
        config: The content of its ``config.json``.

    Raises:
        ConfigError: If a file is not there.
    """
    own_code, folder = config.get("auto_map"), Path(location)
    if not folder.is_dir() or not isinstance(own_code, Mapping):
        return
    names = [own_code[key] for key in ("AutoConfig", "AutoModelForCausalLM") if isinstance(own_code.get(key), str)]
    files = [f"{name.partition('.')[0]}.py" for name in names if "--" not in name]  # with two dashes it is on the hub
    if absent := [file for file in files if not (folder / file).is_file()]:
        raise ConfigError(
            f"{location} brings its own code by name only: {', '.join(dict.fromkeys(absent))} (auto_map) is not in the folder.",
            "Copy it there from where the model was published.",
        )
