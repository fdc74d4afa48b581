"""A slip of typing is answered with what was meant, which then works: on the command line, in files and in specs."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropectl.errors import ConfigError
from ropectl.rope.registry import all_methods, parse_method, parse_spec
from ropectl.slips import mended_spec
from ropectl.tasks.registry import all_tasks, parse_task

pytestmark = pytest.mark.usefixtures("short_calibration")

Run = Callable[..., tuple[int, str, str]]

OPTIONS = [
    ("patch --dry-run -m yarn", "--factor 0.25", "--factor 4"),
    ("patch --dry-run -m yarn", "--factor .5", "--factor 2"),
    ("patch --dry-run -m yarn", "--factor 4x", "--factor 4"),
    ("patch --dry-run -m yarn", "--factor x4", "--factor 4"),
    ("patch --dry-run -m yarn", "--factor 4.0x", "--factor 4.0"),
    ("patch --dry-run -m yarn", "--factor 2\u00d7", "--factor 2"),
    ("patch --dry-run -m yarn", "--factor 400%", "--factor 4"),
    ("patch --dry-run -m yarn", "--factor 32k", "--target-length 32k"),
    ("patch --dry-run -m yarn", "--target-length 4", "--factor 4"),
    ("patch --dry-run -m yarn", "--target-length 4x", "--factor 4"),
    ("inspect -m yarn", "--factor 0.125", "--factor 8"),
    ("compare-methods --print-config", "--factor 0.25", "--factor 4"),
    ("compare-methods --print-config --factor 2", "--factor 4x", "--factor 4"),
    ("compare-methods --print-config", "--factor 2k", "--target-length 2k"),
    ("compare-methods --print-config", "--max-short-regression 5%", "--max-short-regression 0.05"),
    ("compare-methods --print-config", "--min-accuracy 90", "--min-accuracy 0.9"),
    ("compare-methods --print-config", "--depths 50%", "--depths 1"),
    ("compare-methods --print-config", "--depths 0,0.5,1", "--depths 3"),
    ("eval-passkey --print-config", "--depths 0.5", "--depths 1"),
    ("eval-passkey --print-config", "--min-accuracy 90%", "--min-accuracy 0.9"),
    ("eval-passkey --print-config", "--trials 5x", "--trials 5"),
    ("eval-tasks --print-config", "--min-score 95", "--min-score 0.95"),
    ("finetune --print-config -m yarn --factor 4", "--short-fraction 10%", "--short-fraction 0.1"),
    ("finetune --print-config -m yarn --factor 4 --strategy lora", "--lora-dropout 5", "--lora-dropout 0.05"),
    ("patch --dry-run", "-m yarn=4", "-m yarn:factor=4"),
    ("patch --dry-run", "-m yarn:factor=0.25", "-m yarn:factor=4"),
    ("patch --dry-run", "-m yarn:factor=4x,beta_fast=16", "-m yarn:factor=4,beta_fast=16"),
    ("patch --dry-run", "-m yarn:factor=8k", "-m yarn --target-length 8k"),
    ("patch --dry-run", "-m 'yarn:factor=4;beta_fast=16'", "-m yarn:factor=4,beta_fast=16"),
]


@pytest.mark.parametrize(("typed", "slip", "cure"), OPTIONS, ids=[slip for _, slip, _ in OPTIONS])
def test_what_was_meant_is_said_and_works(ropectl: Run, typed: str, slip: str, cure: str) -> None:
    code, out, err = ropectl(*typed.split(), *shlex.split(slip))
    assert (code, out) == (2, "")
    said = re.search(r"\nDid you mean (.*?)\?", err)
    assert said and said[1] in (cure, cure.removeprefix("-m ")), err
    assert ropectl(*typed.split(), *cure.split())[0] == 0


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("factor: 0.25\nmethod: yarn\n", "--factor 4?"),
        ("factor: 4x\nmethod: yarn\n", "--factor 4?"),
        ("method: yarn=4\n", "yarn:factor=4?"),
        ("min_accuracy: 90\n", "--min-accuracy 0.9?"),
        ("target_length: 4x\nmethod: yarn\n", "--factor 4?"),
    ],
)
def test_in_a_file(ropectl: Run, tmp_path: Path, content: str, said: str) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text(content)
    code, out, err = ropectl("eval-passkey", "--config", str(file))
    assert (code, out) == (2, "") and f"Did you mean {said}" in err


@pytest.mark.parametrize(
    "typed",
    ["--factor 0", "--factor -4", "--factor nan", "--factor x", "--min-accuracy 150", "--trials 0", "--depths x"],
)
def test_nothing_is_guessed(ropectl: Run, typed: str) -> None:
    """Where no cure would be taken there is none."""
    code, _, err = ropectl("eval-passkey", "-m", "yarn", *typed.split())
    assert code == 2 and "Did you mean" not in err


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("yarn=4", "yarn:factor=4"),
        ("yarn:4", "yarn:factor=4"),
        ("yarn 4", "yarn:factor=4"),
        ("yarn,4", "yarn:factor=4"),
        ("yarn4", "yarn:factor=4"),
        ("yarn:4x", "yarn:factor=4"),
        ("yarn,factor=4", "yarn:factor=4"),
        ("yarn factor=4", "yarn:factor=4"),
        ("yarn:factor 4", "yarn:factor=4"),
        ("yarn:factor:4", "yarn:factor=4"),
        ("yarn(factor=4)", "yarn:factor=4"),
        ("YaRN:factor=4", "yarn:factor=4"),
        ("ntk-by-parts=4", "ntk-by-parts:factor=4"),
        ("yarn,factor=4,beta_fast=16", "yarn:factor=4,beta_fast=16"),
        ("yarn:factor=4;beta_fast=16", "yarn:factor=4,beta_fast=16"),
        ("abf=40000", "abf:rope_theta=40000"),
        ("dynamic-ntk:4", None),
        ("yarn:beta=4", None),
        ("yarnish:4", None),
        ("yarn:four", None),
        ("none=4", None),
        ("yarn:factor=4", None),
    ],
)
def test_separators_of_specs(typed: str, meant: str | None) -> None:
    """A number alone is never given to a parameter that means something else, such as that of dynamic-ntk."""
    assert mended_spec(typed, all_methods()) == meant
    if meant is not None:
        parse_method(meant)


def test_tasks() -> None:
    for typed, said in (
        ("needle digits=5", "Did you mean needle:digits=5?"),
        ("multi-key,distractors=7", "Did you mean multi-key:distractors=7?"),
        ("needle:5", "parameters of needle: haystack, digits"),
    ):
        with pytest.raises(ConfigError) as caught:
            parse_task(typed)
        assert said in caught.value.hint
    assert mended_spec("needle digits=5", all_tasks()) == str(parse_task("needle:digits=5"))


@given(
    st.sampled_from([name for name, kind in all_methods().items() if "factor" in kind.model_fields]),
    st.sampled_from(["=", " ", ",", ";", ":", "(", ": ", ",factor=", " factor ", ":factor:", "(factor="]),
    st.integers(2, 64),
)
def test_any_other_separator(name: str, separator: str, factor: int) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_spec(f"{name}{separator}{factor}")
    assert caught.value.hint == f"Did you mean {name}:factor={factor}?"
