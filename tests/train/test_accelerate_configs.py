"""Every config in ``configs/accelerate`` is read by accelerate as it is meant, with the launch lines that it gives."""

from __future__ import annotations

import os
import shlex
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
import yaml
from accelerate import FullyShardedDataParallelPlugin
from accelerate.commands.config.config_args import load_config_from_file
from accelerate.commands.launch import _validate_launch_command, launch_command_parser
from accelerate.utils.launch import prepare_multi_gpu_env, prepare_simple_launcher_cmd_env

ROOT = Path(__file__).parents[2]
CONFIGS = sorted((ROOT / "configs" / "accelerate").glob("*.yaml"))
SHARDED = ("fsdp2", "fsdp2_context_parallel", "multi_node")


def launch_lines(path: Path) -> list[str]:
    """The commands in a file's comments."""
    lines = [line.lstrip("# ") for line in path.read_text().splitlines() if line.startswith("#")]
    return [line for line in lines if line.startswith("accelerate launch")]


def parse(line: str) -> Namespace:
    """What ``accelerate launch`` makes of a command before it starts anything."""
    words = shlex.split(line)
    assert words[:2] == ["accelerate", "launch"]
    arguments = launch_command_parser().parse_args(words[2:])
    return _validate_launch_command(arguments)[0]


@pytest.fixture(autouse=True)
def in_the_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the lines are typed; what accelerate writes into the environment is taken back."""
    monkeypatch.chdir(ROOT)
    for name in list(os.environ):
        if name.startswith(("ACCELERATE_", "FSDP_", "PARALLELISM_CONFIG_")):
            monkeypatch.delenv(name)


def test_one_config_for_every_engine() -> None:
    assert [path.stem for path in CONFIGS] == ["ddp", "fsdp2", "fsdp2_context_parallel", "multi_node", "single"]


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_accepted_with_known_keys(path: Path) -> None:
    config = load_config_from_file(str(path))  # refuses a key that it does not know
    written = yaml.safe_load(path.read_text())
    known = vars(launch_command_parser().parse_args(["-m", "ropectl"]))
    assert set(written.get("fsdp_config", {})) <= set(known)
    assert config.mixed_precision == "bf16"
    assert config.parallelism_config == {}
    assert (config.distributed_type.value == "FSDP") == (path.stem in SHARDED)


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_launch_lines_are_what_they_say(path: Path) -> None:
    lines = launch_lines(path)
    assert len(lines) == (2 if path.stem == "multi_node" else 1)
    for rank, line in enumerate(lines):
        arguments = parse(line)
        assert Path(arguments.config_file) == path.relative_to(ROOT)
        assert (arguments.module, arguments.training_script) == (True, "ropectl")
        assert arguments.training_script_args[0] == "finetune"
        assert arguments.training_script_args[1:-1] == (["--cp-size", "4"] if "context" in path.stem else [])
        expected = {"single": (1, 1), "multi_node": (2, 16)}.get(path.stem, (1, 8))
        assert (int(arguments.num_machines), int(arguments.num_processes)) == expected
        assert int(arguments.machine_rank) == rank
        assert arguments.use_fsdp == (path.stem in SHARDED)
        assert arguments.multi_gpu == (path.stem == "ddp")


def environment(arguments: Namespace) -> dict[str, str]:
    """What the started processes are given."""
    if arguments.num_processes == 1:
        return prepare_simple_launcher_cmd_env(arguments)[1]
    return prepare_multi_gpu_env(arguments)


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_processes_get_the_engine(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = environment(parse(launch_lines(path)[0]))
    assert given["ACCELERATE_MIXED_PRECISION"] == "bf16"
    assert (given.get("ACCELERATE_USE_FSDP") == "true") == (path.stem in SHARDED)
    if path.stem not in SHARDED:
        return
    for name, value in given.items():
        if name.startswith(("ACCELERATE_", "FSDP_")):
            monkeypatch.setenv(name, value)
    plugin: Any = FullyShardedDataParallelPlugin()
    assert plugin.fsdp_version == 2
    assert plugin.reshard_after_forward is True
    assert plugin.state_dict_type.name == "SHARDED_STATE_DICT"
    assert plugin.auto_wrap_policy.__name__ == "transformer_auto_wrap_policy"
    assert plugin.transformer_cls_names_to_wrap is None  # taken from the model
    assert plugin.cpu_ram_efficient_loading is False
    assert plugin.activation_checkpointing is False
