"""How long people wait for what needs no model: help, methods and inspect, against importing torch.

Every command is a fresh process; the median of several interleaved repetitions is printed, with its ratio
to ``import torch`` in the same run.

    python scripts/bench/startup.py
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

GEOMETRY = "rotary_dim=128,rope_theta=10000,original_max_position_embeddings=4096"
COMMANDS = {
    "import torch": ["-c", "import torch"],
    "ropectl --help": ["-m", "ropectl", "--help"],
    "ropectl methods": ["-m", "ropectl", "methods"],
    "ropectl inspect --geometry": ["-m", "ropectl", "inspect", "--geometry", GEOMETRY, "-m", "yarn", "--factor", "8"],
    "ropectl inspect builtin:tiny": ["-m", "ropectl", "inspect", "builtin:tiny"],
}
REPEATS = 5


def seconds(arguments: list[str]) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def main() -> None:
    for arguments in COMMANDS.values():
        seconds(arguments)  # warm the file cache
    measured: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(REPEATS):
        for name, arguments in COMMANDS.items():
            measured[name].append(seconds(arguments))
    reference = statistics.median(measured["import torch"])
    for name, values in measured.items():
        median = statistics.median(values)
        print(f"{name:30} {median:6.3f} s   {median / reference:5.2f} of import torch")


if __name__ == "__main__":
    main()
