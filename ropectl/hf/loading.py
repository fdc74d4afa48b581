"""Models and tokenizers from a folder, a hub id, a GGUF file or ``builtin:``.

Reading is in two steps, so that every check that needs only the config is made before weights load:
:func:`read_config` is cheap, :func:`load_model` is not.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ropectl.builtin import TINY_MODEL_DIR
from ropectl.errors import ConfigError, UnsupportedModelError
from ropectl.hf.geometry import RopeDescription, check_dialects, describe_rope, is_self_contained

BUILTIN_MODELS = {"builtin:tiny": TINY_MODEL_DIR}

_HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?")
_DTYPES = ("auto", "float32", "bfloat16", "float16")


@dataclass(frozen=True)
class ModelSource:
    """Where a model comes from and what its config says; no weight is loaded yet.

    Attributes:
        name: As the user wrote it.
        location: Folder, or hub id, that transformers loads from.
        gguf_file: Name of the GGUF file inside ``location``; None for ordinary checkpoints.
        revision: Branch, tag or commit on the hub.
        commit: The commit that the revision stands for, for models from the hub.
        config: The content of ``config.json``.
        rope: Geometry and current scaling method.
    """

    name: str
    location: str
    config: Mapping[str, Any]
    rope: RopeDescription
    gguf_file: str | None = None
    revision: str | None = None
    commit: str | None = None


@dataclass(frozen=True)
class LoadOptions:
    """How weights are loaded.

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
        if self.dtype not in _DTYPES:
            raise ConfigError(f"dtype = {self.dtype!r} is not possible: allowed are {', '.join(_DTYPES)}.")


def read_config(
    name: str, revision: str | None = None, original_length: int | None = None, trust_remote_code: bool = False
) -> ModelSource:
    """Returns what is known of a model without its weights.

    Args:
        name: Folder, GGUF file, hub id or ``builtin:tiny``.
        revision: Branch, tag or commit on the hub.
        original_length: The trained length, where the config does not say it.
        trust_remote_code: Run configuration code that comes with the checkpoint, where its class is not stock.

    Raises:
        ConfigError: If there is no such model, or its config is broken.
        UnsupportedModelError: If it has no rotary embedding that ropectl can scale.
    """
    if name.startswith("builtin:") and name not in BUILTIN_MODELS:
        raise ConfigError(f"There is no built-in model {name!r}.", f"Known: {', '.join(BUILTIN_MODELS)}.")
    path = BUILTIN_MODELS.get(name, Path(name).expanduser())
    gguf_file = commit = None
    config: Mapping[str, Any]
    if path.is_file() and path.suffix == ".gguf":
        location, gguf_file = str(path.parent), path.name
        config = _gguf_config(path)
    elif path.is_dir():
        location = str(path)
        config = _json_config(path / "config.json")
    elif path.exists() or name.startswith((".", "/", "~")) or not _HUB_ID.fullmatch(name):
        raise ConfigError(
            f"There is no model folder {name!r}.",
            "Give a folder with a config.json, a .gguf file, a hub id such as org/name, or builtin:tiny.",
        )
    else:
        location = name
        config, commit = _hub_config(name, revision)
    if original_length is None:
        check_dialects(config)
    if gguf_file is None and not is_self_contained(config):
        config = _with_class_defaults(location, config, revision, trust_remote_code)
    return ModelSource(name, location, config, describe_rope(config, original_length), gguf_file, revision, commit)


def _json_config(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise ConfigError(f"{path.parent} has no config.json.", "Give the folder of a Hugging Face checkpoint.")
    try:
        config = json.loads(path.read_text())
    except ValueError as error:
        raise ConfigError(f"{path} is not valid JSON: {error}") from None
    if not isinstance(config, dict):
        raise ConfigError(f"{path} is not a JSON object.")
    return config


def _hub_config(name: str, revision: str | None) -> tuple[dict[str, Any], str]:
    """The config, and the commit it is from: the hub's cache keeps each commit in a folder of that name."""
    from huggingface_hub import hf_hub_download

    try:
        path = Path(hf_hub_download(name, "config.json", revision=revision))
        return _json_config(path), path.parent.name
    except ConfigError:
        raise
    except Exception as error:  # the hub client raises many kinds: offline, not found, gated, malformed
        reason = str(error).strip().splitlines()[0]
        raise ConfigError(
            f"{name!r} is no folder here, and its config could not be read from the hub: {reason}",
            "Check the name, the revision and the connection, or give a local folder.",
        ) from None


def _gguf_config(path: Path) -> dict[str, Any]:
    """The config of a GGUF file, refused where it carries rotary scaling that loading would drop."""
    try:
        from gguf import GGUFReader
    except ImportError:
        raise ConfigError("Reading a GGUF file needs the package gguf.", "pip install 'ropectl[gguf]'") from None
    from transformers import AutoConfig

    reader = GGUFReader(path)
    scaling = [key for key in reader.fields if ".rope.scaling." in key and not key.endswith("type")]
    factors = [tensor.name for tensor in reader.tensors if tensor.name.startswith("rope_f")]
    if scaling or factors:
        raise UnsupportedModelError(
            f"{path.name} carries rotary scaling ({', '.join(scaling + factors)}) that transformers drops when it loads a GGUF "
            "file: the numbers would be those of another model.",
            "Use the original checkpoint.",
        )
    config: dict[str, Any] = AutoConfig.from_pretrained(path.parent, gguf_file=path.name).to_dict()
    return config


def _with_class_defaults(
    location: str, config: Mapping[str, Any], revision: str | None, trust_remote_code: bool
) -> Mapping[str, Any]:
    """Fills what a config.json leaves to the defaults of its model class."""
    if "model_type" not in config:
        raise ConfigError(
            "The config has no model_type, so its defaults are unknown.",
            "Give the folder of a Hugging Face checkpoint.",
        )
    from transformers import AutoConfig

    try:
        full: dict[str, Any] = AutoConfig.from_pretrained(
            location, revision=revision, trust_remote_code=trust_remote_code
        ).to_dict()
    except Exception as error:  # a strict config raises many kinds
        raise ConfigError(
            f"transformers cannot read the config of {location}: {error}", _load_hint(str(error))
        ) from None
    return full


def resolve_device(name: str) -> Any:
    """Returns the torch device that ``name`` stands for.

    Raises:
        ConfigError: If this machine has no such device.
    """
    import torch

    if name == "auto":
        return torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ConfigError(
            f"device = {name!r} is not possible here: {str(error).splitlines()[0]}", "Type for example: --device cpu"
        ) from None
    return device


def load_tokenizer(source: ModelSource, options: LoadOptions) -> Any:
    """Returns the tokenizer; cheap enough for checks before weights load.

    Raises:
        ConfigError: If it is missing or needs remote code without leave.
    """
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(source.location, **_common_arguments(source, options))
    except (OSError, ValueError, ImportError) as error:
        raise ConfigError(f"The tokenizer of {source.name} cannot be loaded: {error}", _load_hint(str(error))) from None
    tokenizer.model_max_length = sys.maxsize  # whole documents are tokenized; no warning that they are long
    return tokenizer


def load_model(source: ModelSource, options: LoadOptions) -> Any:
    """Returns the model in evaluation mode, its rotary tables verified against the config.

    Raises:
        ConfigError: If the checkpoint needs remote code or pickled weights without leave, or is incomplete.
        PatchError: If the loaded rotary tables are not what the config says.
    """
    from transformers import AutoModelForCausalLM

    from ropectl.hf.patch import verify_rope

    device = resolve_device(options.device)
    dtype = ("float32" if device.type == "cpu" else "auto") if options.dtype == "auto" else options.dtype
    # Weights of a wrong shape are reported like missing ones, so that both are refused with their names.
    arguments: dict[str, Any] = {"dtype": dtype, "ignore_mismatched_sizes": True, **_common_arguments(source, options)}
    if device.type != "cpu":
        arguments["device_map"] = {"": device}  # straight to the device, without a copy in host memory
    if options.attention:
        arguments["attn_implementation"] = options.attention
    if source.gguf_file:
        import transformers

        if hasattr(transformers, "GgufConfig"):  # older versions always dequantize
            arguments["quantization_config"] = transformers.GgufConfig(dequantize=True)
    elif not options.allow_pickle:
        arguments["use_safetensors"] = True
    try:
        model, report = AutoModelForCausalLM.from_pretrained(source.location, output_loading_info=True, **arguments)
    except (OSError, ValueError, ImportError) as error:
        raise ConfigError(f"{source.name} cannot be loaded: {error}", _load_hint(str(error))) from None
    _check_complete(source, report)
    model.eval()
    if not source.rope.overridden:  # else the config's own tables are not the ones that will be measured
        verify_rope(model, source.rope.method.frequencies(source.rope.geometry))
    return model


def _check_complete(source: ModelSource, report: Mapping[str, Any]) -> None:
    """Refuses a checkpoint that lacks weights: transformers fills them with random numbers and only logs it."""
    mismatched = [key[0] if isinstance(key, tuple) else key for key in report.get("mismatched_keys", ())]
    absent = sorted({*report.get("missing_keys", ()), *mismatched})
    if absent:
        names = ", ".join(absent[:3]) + (f" and {len(absent) - 3} more" if len(absent) > 3 else "")
        raise ConfigError(
            f"{source.name} is not a complete causal language model: the checkpoint lacks {names}, or has another shape there."
        )


def _common_arguments(source: ModelSource, options: LoadOptions) -> dict[str, Any]:
    arguments = {"revision": source.revision, "trust_remote_code": options.trust_remote_code}
    return arguments | ({"gguf_file": source.gguf_file} if source.gguf_file else {})


def _load_hint(message: str) -> str:
    if "trust_remote_code" in message:
        return "It brings its own code. To run that code: --trust-remote-code"
    if "safetensors" in message:
        return "Its weights may be pickles, which can run code while being read. To load them anyway: --allow-pickle"
    return ""
