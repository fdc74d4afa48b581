"""How a model is run, by names that torch, transformers and tokenizers know: checked without importing any of them.

Plugins add devices and attention implementations. What is no slip of a known name is left to the library, which knows them.
"""

from __future__ import annotations

import re

from ropectl.errors import ConfigError
from ropectl.names import near_names, unknown_choice

#: What ``--dtype`` may be.
DTYPES = ("auto", "float32", "bfloat16", "float16")

#: When a window or a document begins with the beginning-of-sequence token.
BOS_POLICIES = ("auto", "always", "available", "never")

#: Attention implementations of transformers 5; ``paged|`` may stand before one, and a ``/`` names a kernel of the hub.
ATTENTION = ("eager", "sdpa", "flex_attention", "flash_attention_2", "flash_attention_3", "flash_attention_4")

#: Types of devices in torch 2.13, the common ones first, and what known plugins call theirs.
DEVICES = (
    *("auto", "cpu", "cuda", "mps", "xpu", "npu"),
    *("meta", "hip", "xla", "ipu", "hpu", "mtia", "maia", "vulkan", "mkldnn", "opengl", "opencl", "ideep", "ve", "fpga", "lazy"),
    *("privateuseone", "mlu", "musa", "gcu", "sdaa", "supa", "spyre", "qaic"),
)  # fmt: skip
_COMMON_DEVICES = DEVICES[:6]


def check_run_names(
    dtypes: dict[str, str], device: str | None, attention: str | None, bos: str | None, trusts_code: bool
) -> None:
    """Checks the names, before anything is imported that takes seconds.

    Args:
        dtypes: By the setting that names one.
        device: None where the command takes none, as the others.
        attention: An attention implementation.
        bos: When the beginning-of-sequence token is written.
        trusts_code: Whether the checkpoint's own code runs, which may add attention implementations.

    Raises:
        ConfigError: Naming the setting, its value and the nearest known one.
    """
    for setting, dtype in dtypes.items():
        if dtype not in DTYPES:
            raise unknown_choice(setting, dtype, DTYPES)
    if bos is not None and bos not in BOS_POLICIES:
        raise unknown_choice("bos", bos, BOS_POLICIES)
    if device is not None:
        _check_device(device)
    if attention is not None and not trusts_code:
        _check_attention(attention)


def _check_device(device: str) -> None:
    kind = device.partition(":")[0]
    if kind in DEVICES:
        return
    near = ["cuda"] if kind.lower().startswith("gpu") else near_names(kind, _COMMON_DEVICES)
    if near:
        raise ConfigError(
            f"device = {device!r} is not possible: torch knows no such device. Did you mean {' or '.join(near)}?",
            "Type for example: --device cpu, --device cuda:1 or --device auto",
        )


def _check_attention(attention: str) -> None:
    name = attention.removeprefix("paged|")
    if name in ATTENTION or "/" in name or re.fullmatch(r"flash_attention_\d", name):
        return
    if not near_names(name, ATTENTION) and "|" in name:
        return
    raise unknown_choice("attention", name, (*ATTENTION, "a kernel as ORGANISATION/NAME"))
