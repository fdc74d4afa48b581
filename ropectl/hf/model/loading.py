"""Loads weights and tokenizers, complete and with the rotary tables verified."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ropectl.errors import ConfigError
from ropectl.extras import check_package
from ropectl.hf.class_defaults import load_hint
from ropectl.hf.config.adapter import merge_adapter
from ropectl.hf.config.dialects import text_section
from ropectl.hf.config.source import ModelSource
from ropectl.hf.model.tokenizer_files import check_tokenizer_files, check_vocabulary
from ropectl.hf.run_names import DTYPES, check_gguf_weights
from ropectl.hf.tensors.fit import has_known_tensors
from ropectl.memory import is_out_of_memory
from ropectl.names import shown_names, unknown_choice
from ropectl.printable import first_line
from ropectl.records import RanOn


@dataclass(frozen=True)
class LoadOptions:
    """The options of loading weights.

    Attributes:
        dtype: ``auto`` is float32 on the CPU and the checkpoint's own type elsewhere.
        device: ``auto`` is the first accelerator, else the CPU.
        trust_remote_code: Run modelling code that comes with the checkpoint.
        allow_pickle: Load ``.bin`` weights, which can run code while being read.
        attention: Attention implementation of transformers, such as ``sdpa``; its default if None.
    """

    dtype: str = "auto"
    device: str = "auto"
    trust_remote_code: bool = False
    allow_pickle: bool = False
    attention: str | None = None

    def __post_init__(self) -> None:
        if self.dtype not in DTYPES:
            raise unknown_choice("dtype", self.dtype, DTYPES)


def resolve_device(name: str) -> Any:
    """Returns the torch device that ``name`` stands for.

    Raises:
        ConfigError: If this machine has no such device.
    """
    import torch

    if name == "auto":
        if not torch.accelerator.is_available():
            return torch.device("cpu")
        device = torch.accelerator.current_accelerator()
        local = os.environ.get("LOCAL_RANK")  # every process of a launcher on this machine has its own device
        return torch.device(device.type, int(local)) if device is not None and local is not None else device
    try:
        device = torch.device(name)
        if device.type == "meta":
            raise RuntimeError("it holds no numbers")
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ConfigError(
            f"device = {name!r} is not possible here: {first_line(error)}", "Type for example: --device cpu"
        ) from None
    return device


def stored_dtype(config: Mapping[str, Any]) -> str | None:
    """Returns the type of weights that a ``config.json`` names; None if it names none."""
    named = config.get("dtype") or config.get("torch_dtype")
    return str(named).removeprefix("torch.") if named else None


def resolve_dtype(name: str, device_type: str, config: Mapping[str, Any]) -> str | None:
    """Returns the type that weights are loaded in; None if only the weights themselves say it.

    Args:
        name: The setting.
        device_type: Where they are loaded.
        config: The content of ``config.json``.
    """
    if name != "auto":
        return name
    return "float32" if device_type == "cpu" else stored_dtype(config)


def ran_on(model: Any) -> RanOn:
    """Returns where a loaded model runs, and in what."""
    attention = getattr(model.config.get_text_config(decoder=True), "_attn_implementation", None)
    return RanOn(device=str(model.device), dtype=str(model.dtype).removeprefix("torch."), attention=attention)


def load_tokenizer(source: ModelSource, options: LoadOptions) -> Any:
    """Returns the tokenizer; cheap enough for checks before the weights are loaded.

    Raises:
        ConfigError: If it is missing, or needs remote code that is not allowed, or a package that is not installed.
    """
    from transformers import AutoTokenizer

    _check_packages(source)
    check_tokenizer_files(source)
    try:
        tokenizer = AutoTokenizer.from_pretrained(source.tokenizer_location, **_common_arguments(source, options))
        tokenizer.encode("A word.", add_special_tokens=False)  # what lacks its words fails only here
    except (
        BaseException
    ) as error:  # a file of another shape raises anything, and the library's own panics are no Exceptions
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        is_meant = isinstance(error, OSError | ValueError | ImportError)
        reason = first_line(error) if is_meant else "its files are not those of a tokenizer that transformers reads."
        raise ConfigError(f"The tokenizer of {source.name} cannot be loaded: {reason}", load_hint(str(error))) from None
    check_vocabulary(tokenizer, source)
    tokenizer.model_max_length = sys.maxsize  # whole documents are tokenized; no warning that they are long
    return tokenizer


def load_model(source: ModelSource, options: LoadOptions) -> Any:
    """Returns the model in evaluation mode, its rotary tables verified against the config.

    Raises:
        ConfigError: If the checkpoint needs remote code or pickled weights that are not allowed, or is incomplete.
        PatchError: If the loaded rotary tables are not what the config says.
    """
    from ropectl.hf.model.patch import apply_rope
    from ropectl.hf.model.rotary import verify_rope

    _check_packages(source)
    device = resolve_device(options.device)
    arguments: dict[str, Any] = {"dtype": resolve_dtype(options.dtype, device.type, source.config) or "auto"}
    if device.type != "cpu":
        arguments["device_map"] = {"": device}  # straight to the device, without a copy in host memory
    if options.attention:
        arguments["attn_implementation"] = options.attention
    if not has_known_tensors(source):  # else that was seen without the class, when the config was read
        check_loadable(source, options)
    model = _complete_model(source, options, arguments)
    model.eval()
    rope = source.loaded_rope
    if not rope.overridden:  # else the config's own tables are not the ones that will be measured
        verify_rope(model, rope.method.frequencies(rope.geometry), rope.layer_type)
    if source.adapter is not None:
        return merge_adapter(model, source.adapter, options.allow_pickle).eval()
    if source.gguf_file and source.rope.method != rope.method:
        apply_rope(model, source.rope.method, geometry=source.rope.geometry, layers=rope.layer_type)
    return model


def _check_packages(source: ModelSource) -> None:
    """Checks for the packages that a kind of checkpoint needs: its config is read without them."""
    if source.gguf_file is not None:
        check_package("gguf", f"Loading {source.name}")
    if source.adapter is not None:
        check_package("peft", f"Loading the LoRA adapter {source.name}")


def check_loadable(source: ModelSource, options: LoadOptions) -> None:
    """Checks by the headers of its weight files that a model's class finds all its weights; none is read.

    Quantised models and single files pass.

    Raises:
        ConfigError: If weights are missing, left over, or have other shapes than the config says.
    """
    is_folder = source.gguf_file is None and Path(source.location).is_dir()
    if is_folder and "quantization_config" not in source.config:
        _complete_model(source, options, {"device_map": "meta"})


def _complete_model(source: ModelSource, options: LoadOptions, arguments: dict[str, Any]) -> Any:
    """Returns a model as transformers loads it, if its checkpoint has all its weights."""
    from ropectl.hf.model.model_class import loader

    # Weights of a wrong shape are reported like missing ones, so that both are refused with their names.
    arguments = {**arguments, "ignore_mismatched_sizes": True, **_common_arguments(source, options)}
    if source.gguf_file:
        import transformers

        check_gguf_weights(source.name, source.config)
        if hasattr(transformers, "GgufConfig"):  # older versions always dequantize
            arguments["quantization_config"] = transformers.GgufConfig(dequantize=True)
    elif not options.allow_pickle:
        arguments["use_safetensors"] = True
    try:
        kind = loader(source.config)
        model, report = kind.from_pretrained(source.location, output_loading_info=True, **arguments)
    except Exception as error:  # a model's constructor may raise anything over a config it was not made for
        if is_out_of_memory(error):
            raise
        raise ConfigError(f"{source.name} cannot be loaded: {first_line(error)}", load_hint(str(error))) from None
    _check_complete(source, report)
    return model


def _check_complete(source: ModelSource, report: Mapping[str, Any]) -> None:
    """Refuses a checkpoint that lacks weights: transformers fills them with random numbers and only logs it."""
    mismatched = [key[0] if isinstance(key, tuple) else key for key in report.get("mismatched_keys", ())]
    absent = sorted({*report.get("missing_keys", ()), *mismatched})
    if absent:
        raise ConfigError(
            f"{source.name} is not a complete causal language model: the checkpoint lacks {shown_names(absent)}, or has another shape there."
        )
    depth = text_section(source.config).get("num_hidden_layers")
    found = (re.search(r"\blayers\.(\d+)\.", name) for name in report.get("unexpected_keys", ()))
    layers = {int(match[1]) for match in found if match}
    if depth is not None and layers and max(layers) >= depth:
        raise ConfigError(
            f"The weights of {source.name} do not fit its config: num_hidden_layers = {depth}, and they have {max(layers) + 1} layers.",
            "Give both from the same checkpoint.",
        )


def _common_arguments(source: ModelSource, options: LoadOptions) -> dict[str, Any]:
    arguments = {"revision": source.revision, "trust_remote_code": options.trust_remote_code}
    return arguments | ({"gguf_file": source.gguf_file} if source.gguf_file else {})
