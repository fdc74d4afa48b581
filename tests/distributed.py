"""Several processes that work on one thing, on the CPU with gloo: what the distributed tests launch."""

from __future__ import annotations

import socket
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.processes import Running


def run_ranks(
    arguments: Sequence[str | Path], num_ranks: int, timeout: float = 300, env: Mapping[str, str] | None = None
) -> list[str]:
    """Runs ``python *arguments`` once a rank, as torchrun would, and returns what each rank printed.

    Args:
        arguments: What follows ``python``: a script and its arguments, or ``-m`` and a module.
        num_ranks: How many processes.
        timeout: When all of them are killed [s].
        env: More environment variables.

    Raises:
        AssertionError: If one of them is late or does not exit with 0; the message holds the end of all outputs.
    """
    codes, outputs = run_ranks_that_may_fail(arguments, num_ranks, timeout, env)
    ends = "\n".join(f"--- rank {rank}, exit code {codes[rank]}\n{outputs[rank][-2000:]}" for rank in range(num_ranks))
    assert codes == [0] * num_ranks, ends
    return outputs


def run_ranks_that_may_fail(
    arguments: Sequence[str | Path],
    num_ranks: int,
    timeout: float = 300,
    env: Mapping[str, str] | None = None,
    patience: float = 5,
) -> tuple[list[int], list[str]]:
    """Runs ranks as :func:`run_ranks` does, and returns the exit code and the output of each.

    Args:
        arguments: What follows ``python``.
        num_ranks: How many processes.
        timeout: When all of them are killed [s].
        env: More environment variables.
        patience: How long the others may go on after one has failed [s].
    """
    with tempfile.TemporaryDirectory() as folder:
        logs = [Path(folder) / f"rank{rank}.log" for rank in range(num_ranks)]
        codes = _run(arguments, logs, timeout, {**_environment(num_ranks), **(env or {})}, patience)
        return codes, [log.read_text(errors="replace") for log in logs]


def _environment(num_ranks: int) -> dict[str, str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    return {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "WORLD_SIZE": str(num_ranks),
        "LOCAL_WORLD_SIZE": str(num_ranks),
        "ACCELERATE_USE_CPU": "true",
        "HF_HUB_OFFLINE": "1",
    }


def _run(
    arguments: Sequence[str | Path], logs: Sequence[Path], timeout: float, env: Mapping[str, str], patience: float
) -> list[int]:
    processes: list[Running] = []
    try:
        for rank, log in enumerate(logs):
            place = {"RANK": str(rank), "LOCAL_RANK": str(rank)}
            processes.append(Running(arguments, {**env, **place}, log=log))
        return _wait(processes, timeout, patience)
    finally:
        for process in processes:
            process.kill()


def _wait(processes: Sequence[Running], timeout: float, patience: float) -> list[int]:
    """Exit codes; -9 for those that did not end in time, or within ``patience`` seconds of the failure of another."""
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        codes = [process.poll() for process in processes]
        if None not in codes:
            break
        if any(codes):  # the others wait for it
            end, patience = min(end, time.monotonic() + patience), timeout
        time.sleep(0.05)
    return [-9 if code is None else code for code in (process.poll() for process in processes)]
