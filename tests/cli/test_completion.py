"""TAB: what a real bash offers with the script that Typer installs, and that it answers without torch."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ropectl.cli import completion
from ropectl.cli.app import COMMANDS, full_command
from ropectl.cli.completion import joined

Run = Callable[..., tuple[int, str, str]]

BASH = shutil.which("bash")

#: Loads the script that Typer prints, then asks its function as readline does, word breaks included.
ASK = r"""
source "$SCRIPT"
COMP_WORDBREAKS=$' \t\n"'"'"'><=;|&(:'
IFS=$'\n' read -r -d '' -a COMP_WORDS < "$WORDS" || true
[ -n "$EMPTY" ] && COMP_WORDS+=("")
COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 ))
_ropectl_completion ropectl
printf '%s\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which ``ropectl`` is this package, and the completion script is installed."""
    place = tmp_path_factory.mktemp("bin")
    program = place / "ropectl"
    check = "assert 'torch' not in sys.modules and 'transformers' not in sys.modules, 'heavy'"
    program.write_text(
        f"#!{sys.executable}\nimport sys\nsys.argv[0] = 'ropectl'\nfrom ropectl.cli.app import main\n"
        f"try:\n    main()\nfinally:\n    {check}\n"
    )
    program.chmod(0o755)
    root = str(Path(__file__).parent.parent.parent)
    environment = {**os.environ, "PATH": f"{place}:{os.environ['PATH']}", "PYTHONPATH": root}
    script = subprocess.run(
        ["ropectl"], env={**environment, "_ROPECTL_COMPLETE": "source_bash"}, capture_output=True, text=True, check=True
    )
    assert "_ropectl_completion" in script.stdout
    (place / "script").write_text(script.stdout)
    return {**environment, "SCRIPT": str(place / "script"), "WORDS": str(place / "words")}


def offers(shell: dict[str, str], words: list[str]) -> list[str]:
    assert BASH is not None
    Path(shell["WORDS"]).write_text("\n".join(word for word in words if word) + "\n")
    environment = {**shell, "EMPTY": "" if words[-1] else "1"}
    done = subprocess.run([BASH, "--norc", "-c", ASK], env=environment, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return [line for line in done.stdout.splitlines() if line]


CASES = [
    (["ropectl", "insp"], {"inspect"}),
    (["ropectl", "inspect", "-m", "ya"], {"yarn"}),
    (["ropectl", "inspect", "-m", "dynamic"], {"dynamic-ntk", "dynamic-yarn"}),
    (["ropectl", "inspect", "-m", "ntk-by-parts", ":"], {"factor=", "beta_fast=", "beta_slow="}),
    (["ropectl", "inspect", "-m", "ntk-by-parts", ":", "beta"], {"beta_fast=", "beta_slow="}),
    (["ropectl", "inspect", "-m", "ntk-by-parts", ":", "factor", "=", "8,be"], {"8,beta_fast=", "8,beta_slow="}),
    (["ropectl", "inspect", "-m", "yarn", ":", "truncate", "="], {"true", "false"}),
    (["ropectl", "inspect", "--method", "=", "ya"], {"yarn"}),
    (["ropectl", "eval-tasks", "--task", "multi-k"], {"multi-key"}),
    (["ropectl", "eval-tasks", "--task", "needle", ":", "d"], {"digits="}),
    (["ropectl", "eval-perplexity", "--text", "builtin", ":", "stdlib-"], {"stdlib-train"}),
    (["ropectl", "eval-perplexity", "built"], {"builtin:tiny"}),
    (["ropectl", "eval-perplexity", "--preset", ""], {"pi", "yarn", "longlora"}),
    (["ropectl", "eval-perplexity", "--protocol", "s"], {"sliding"}),
    (["ropectl", "eval-perplexity", "--format", "js"], {"json"}),
    (["ropectl", "eval-perplexity", "--bos", "a"], {"auto", "always", "available"}),
    (["ropectl", "eval-perplexity", "--length", ""], set()),
    (["ropectl", "eval-passkey", "--grid", ""], {"depth", "position"}),
    (["ropectl", "verify-runtime", "--runtime", ""], {"vllm", "llama.cpp"}),
    (["ropectl", "methods", "--choose", "--runtime", "v"], {"vllm"}),
    (["ropectl", "methods", "--tuning", ""], {"none", "light", "full"}),
    (["ropectl", "methods", "ya"], {"yarn"}),
    (["ropectl", "finetune", "--packing", ""], {"concat", "isolated", "none"}),
    (["ropectl", "finetune", "--strategy", ""], {"full", "lora"}),
    (["ropectl", "finetune", "--schedule", "co"], {"constant", "cosine"}),
    (["ropectl", "patch", "--verify"], {"--verify-logits"}),
]


@pytest.mark.parametrize(
    ("words", "expected"), CASES, ids=lambda value: " ".join(value) if isinstance(value, list) else ""
)
def test_offers(ropectl: Run, words: list[str], expected: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """What the program answers to the words that bash makes of a line: ``:`` and ``=`` are words of their own."""
    monkeypatch.setenv("_ROPECTL_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "\n".join(words))
    monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
    code, out, err = ropectl()
    assert (code, err) == (0, "") and set(out.split()) == expected


@pytest.mark.process
@pytest.mark.skipif(BASH is None, reason="needs a bash")
@pytest.mark.parametrize(
    ("words", "expected"), CASES[1:8:2], ids=lambda value: " ".join(value) if isinstance(value, list) else ""
)
def test_bash(shell: dict[str, str], words: list[str], expected: set[str]) -> None:
    """The same through a real bash and the script that Typer installs; without torch."""
    assert set(offers(shell, words)) == expected


@pytest.mark.parametrize("offer", [completion.methods, completion.tasks, completion.sources, completion.models])
def test_nothing_is_offered_for_what_is_unknown(offer: completion.Offer) -> None:
    assert offer("zzz") == [] and offer("zzz:a") == []


@pytest.mark.process
def test_every_table_that_is_completed_exists() -> None:
    """Each option with a completion answers without an error."""
    for command in map(full_command, [command.name for command in COMMANDS]):
        for option in command.params:
            context = command.make_context("x", [], resilient_parsing=True)
            assert isinstance(option.shell_complete(context, "a"), list)


@pytest.mark.parametrize(
    ("words", "current", "expected"),
    [
        (["r", "-m", "yarn", ":", "fa"], 4, (["r", "-m", "yarn:fa"], 2)),
        (["r", "-m", "yarn", ":"], 3, (["r", "-m", "yarn:"], 2)),
        (["r", "-m", "yarn", ":", "a", "=", "1,b"], 6, (["r", "-m", "yarn:a=1,b"], 2)),
        (["r", "-m", "yarn", ":", "a", "=", "1", "--x"], 7, (["r", "-m", "yarn:a=1", "--x"], 3)),
        (["r", "x", ""], 2, (["r", "x", ""], 2)),
        (["r", "x"], 2, (["r", "x"], 2)),
    ],
)
def test_words_as_they_were_typed(words: list[str], current: int, expected: tuple[list[str], int]) -> None:
    assert joined(words, current) == expected
