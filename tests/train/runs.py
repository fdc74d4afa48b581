"""Small training runs that the tests share."""

from __future__ import annotations

import json
import sysconfig
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from ropectl.train.settings import FinetuneSettings


def write_text(folder: Path, modules: tuple[str, ...] = ("shlex.py", "textwrap.py")) -> Path:
    """A folder of real text: standard-library modules, one document each."""
    text = folder / f"text-{len(modules)}-{modules[0]}"
    text.mkdir(exist_ok=True)
    for module in modules:
        (text / module).write_text((Path(sysconfig.get_path("stdlib")) / module).read_text())
    return text


def small_settings(model: Path, out: Path | None, **changes: Any) -> FinetuneSettings:
    """A run of seconds: yarn by 2 on the random model of the tests."""
    values: dict[str, Any] = {
        "model": str(model),
        "method": "yarn",
        "factor": 2,
        "text": str(write_text(model.parent)),
        "seq_len": 64,
        "steps": 6,
        "batch_size": 2,
        "learning_rate": 1e-3,
        "warmup_steps": 1,
        "save_every": 2,
        "device": "cpu",
        "out": out,
    }
    return FinetuneSettings(**{**values, **changes})


def arguments(settings: FinetuneSettings) -> list[str]:
    """The settings as a config file and the command line that reads it."""
    assert settings.out is not None
    path = settings.out.with_name(f"{settings.out.name}.json")  # JSON is YAML
    values = settings.model_dump(mode="json", exclude_unset=True, exclude={"out"})
    path.write_text(json.dumps(values))
    return ["finetune", "--config", str(path), "-o", str(settings.out)]


def weights(folder: Path) -> dict[str, torch.Tensor]:
    """All tensors of a checkpoint or an adapter."""
    result: dict[str, torch.Tensor] = {}
    for path in sorted(folder.glob("*.safetensors")):
        result |= load_file(path)
    return result


def losses(out: Path) -> list[float]:
    """The loss of every step of a run."""
    lines = (out.with_name(f"{out.name}.run") / "metrics.jsonl").read_text().splitlines()
    return [record["loss"] for record in map(json.loads, lines) if "loss" in record]
