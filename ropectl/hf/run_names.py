"""Checks the names of devices, types and attention that torch and transformers know, without importing them.

Plugins add devices and attention implementations. A name that is not a misspelling of a known one is left to the library.
"""

from __future__ import annotations

import re
from typing import Literal, get_args

from ropectl.errors import ConfigError
from ropectl.names import near_names, unknown_choice

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
