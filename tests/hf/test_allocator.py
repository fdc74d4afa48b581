"""Large blocks leave the process when they are freed; with the C library's own rule they stay as holes of its heap."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

pytestmark = [
    pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="it is glibc's allocator that is told"),
    pytest.mark.process,
]

#: Blocks of 16 MiB are freed after one of 30 MiB has been, each below a small block that stays.
SCRIPT = """
import sys, torch
from pathlib import Path
from ropectl.memory import map_large_blocks

def resident():
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024

if sys.argv[1] == "mapped":
    print(map_large_blocks(), map_large_blocks())
torch.ones(30 * 2**18).sum()
before, kept = resident(), []
large = []
for _ in range(4):
    large.append(torch.ones(16 * 2**18))
    kept.append(torch.ones(2**14))
del large
print(resident() - before)
"""


def run(how: str, **environment: str) -> list[str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    command = [sys.executable, "-c", SCRIPT, how]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=env | environment).stdout.split()


def test_freed_blocks_are_given_back() -> None:
    *done, mapped = run("mapped")
    [plain] = run("plain")
    assert done == ["True", "True"]
    assert float(plain) > 32, "the control: holes stay [MiB]"
    assert float(mapped) < 8


def test_what_the_environment_says_is_kept() -> None:
    assert run("mapped", MALLOC_MMAP_THRESHOLD_="1048576")[0] == "False"
