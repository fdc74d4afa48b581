"""What the documents say is what the code does."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
Run = Callable[..., tuple[int, str, str]]


def test_methods_table_is_up_to_date() -> None:
    subprocess.run([sys.executable, str(ROOT / "scripts" / "gen_docs.py"), "--check"], check=True)


def readme_commands() -> list[list[str]]:
    blocks = re.findall(r"```bash\n(.*?)```", README, flags=re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines() if line.startswith("ropectl ")]
    return [shlex.split(line, comments=True)[1:] for line in lines]


@pytest.mark.parametrize("arguments", readme_commands(), ids=" ".join)
def test_readme_commands_are_accepted(ropectl: Run, arguments: list[str]) -> None:
    """Options and values are right: with the model's name the only thing missing, that is what is complained about."""
    code, _, err = ropectl(*arguments)
    assert (code, err) == (0, "") if "./my-model" not in arguments else (code == 2 and "./my-model" in err), err


def test_readme_tree_is_real() -> None:
    tree = README.partition("## What is where")[2]
    folders: dict[str, str] = {}
    for line in tree.split("```")[1].splitlines():
        match = re.match(r"( *)([\w.]+/?(?:[\w.]+/)*)  ", line)
        if not match:
            continue
        indent, name = match[1], match[2]
        parent = folders.get(indent, "") if indent else ""
        assert (ROOT / parent / name).exists(), f"{parent}/{name}"
        if name.endswith("/"):
            folders[indent + "  "] = f"{parent}/{name}".strip("/")


def test_the_two_commands_are_scripts() -> None:
    for script in ("quickstart.sh", "test.sh"):
        assert f"bash scripts/{script}" in README
        subprocess.run(["bash", "-n", str(ROOT / "scripts" / script)], check=True)
