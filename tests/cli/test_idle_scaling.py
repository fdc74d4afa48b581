"""Options of the scaling that change nothing are refused, with what to type, or named in a note where they do no harm."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.usefixtures("short_calibration")

Checkpoint = Callable[..., Path]
Run = Callable[..., tuple[int, str, str]]

IDLE_FACTOR = "takes no extension factor, so --factor 4 changes nothing"

REFUSED = [
    ("patch -m none --factor 4 --dry-run", f"none {IDLE_FACTOR}", "such as -m yarn"),
    ("patch -m none --target-length 2k --dry-run", "so --target-length 2048 changes nothing", "such as -m yarn"),
    ("patch -m dynamic-ntk --freeze-at 4k --factor 4 --dry-run", "--factor 4 changes nothing", "--freeze-at 2048"),
    ("finetune -m none --factor 4 --dry-run", f"none {IDLE_FACTOR}", "such as -m yarn"),
    ("eval-perplexity -m dynamic-ntk --factor 4 --length 1k", f"dynamic-ntk {IDLE_FACTOR} beside", "Leave it out"),
    ("eval-passkey -m none --factor 4 --length 1k", f"none {IDLE_FACTOR} beside lengths", "Leave it out"),
    ("eval-tasks -m dynamic-yarn --factor 4 --length 1k", f"dynamic-yarn {IDLE_FACTOR} beside", "Leave it out"),
    ("harness -m abf:rope_theta=4e4 --factor 4 --task x --length 1k", f"{IDLE_FACTOR} beside lengths", "-m abf."),
    ("patch -m abf:rope_theta=10000 --dry-run", "rope_theta = 10000 is the base", "abf:rope_theta=40000"),
    ("eval-passkey -m abf:rope_theta=1e4", "rope_theta = 10000 is the base", "--factor 4"),
    ("inspect -m abf:rope_theta=1e4 --factor 4", "rope_theta = 10000 is the base", "--factor 4"),
    ("compare-methods -m abf:rope_theta=1e4 --factor 4 --dry-run", "rope_theta = 10000 is the base", "--factor 4"),
    ("patch -m dynamic-ntk --freeze-at 256 --dry-run", "256 is below the trained length of 512", "--freeze-at 2048"),
    ("patch -m dynamic-yarn --freeze-at 512 --dry-run", "dynamic-yarn is the unscaled model", "--freeze-at 2048"),
    ("finetune -m dynamic-ntk --freeze-at 512 --dry-run", "dynamic-ntk is the unscaled model", "--freeze-at 2048"),
    ("patch -m yarn --factor 4 --compose --dry-run", "has no scaling that yarn:factor=4", "Leave out --compose"),
    ("finetune -m yarn --factor 4 --compose --dry-run", "has no scaling that yarn:factor=4", "Leave out --compose"),
    ("patch -m yarn --factor 4 --merge --dry-run", "--merge is for LoRA adapters", "Leave it out"),
    ("patch -m yarn --factor 4 --no-merge --dry-run", "--no-merge is for LoRA adapters", "Leave it out"),
    ("finetune -m yarn --factor 4 --merge --dry-run", "merge has no effect where all weights", "--strategy lora"),
]


@pytest.mark.parametrize(("typed", "said", "hint"), REFUSED, ids=[typed for typed, _, _ in REFUSED])
def test_refused(ropectl: Run, typed: str, said: str, hint: str) -> None:
    code, out, err = ropectl(*typed.split())
    message, _, cure = err.partition("\n")
    assert (code, out) == (2, "")
    assert said in message and hint in cure, err


NO_SCALING = "--replace changes nothing: builtin:tiny has no scaling to set aside"

NAMED = [
    ("patch -m yarn --factor 4 --replace --dry-run", NO_SCALING),
    ("finetune -m yarn --factor 4 --replace --dry-run", NO_SCALING),
    ("compare-methods -m yarn --factor 4 --replace --dry-run", NO_SCALING),
    ("eval-tasks -m yarn --factor 4 --replace --task passkey --length 256 --dry-run", NO_SCALING),
    ("harness -m yarn --factor 4 --replace --task x", NO_SCALING),
    ("inspect -m yarn --factor 4 --replace --format json", NO_SCALING),
    ("patch -m yarn --factor 1 --dry-run", "yarn:factor=1: factor 1 extends nothing"),
    ("patch -m yarn --target-length 512 --dry-run", "yarn:factor=1: factor 1 extends nothing"),
    ("patch -m abf --factor 1 --dry-run", "abf:rope_theta=10000 computes what the model was trained with"),
    (
        "patch -m abf:rope_theta=4e4 --factor 4 --dry-run",
        "computes up to 1024 tokens with rotations seen in training, short of",
    ),
    ("harness -m pi --target-length 512 --task x", "pi:factor=1: factor 1 extends nothing"),
    ("harness -m none --factor 4 --task x", "--factor 4 only decides the longest length"),
    ("eval-tasks -m abf:rope_theta=4e4 --factor 4 --task passkey --dry-run", "--factor 4 only decides the longest"),
    ("inspect -m none --factor 4 --format json", "none takes no extension factor: --factor 4 does not change it"),
    ("compare-methods -m dynamic-ntk -m yarn --factor 4 --dry-run", "dynamic-ntk: no extension factor is taken"),
    ("compare-methods -m none --factor 4 --dry-run", "none: no extension factor is taken"),
]


def marked(typed: str, *more: str) -> Any:
    """A case, marked where its dry run works as long as a process takes to start: it times layers, or reads a text."""
    is_long = typed.startswith(("compare-methods", "finetune"))
    return pytest.param(typed, *more, id=typed, marks=[pytest.mark.process] * is_long)


@pytest.mark.parametrize(("typed", "said"), [marked(*case) for case in NAMED])
def test_named(ropectl: Run, typed: str, said: str) -> None:
    code, out, err = ropectl(*typed.split())
    assert code == 0, err
    assert (out + err).count(said) == 1


@pytest.mark.parametrize(
    "typed",
    [
        "patch -m yarn:factor=4 --factor 4 --dry-run",
        "patch -m dynamic-ntk --target-length 2k --freeze-at 2k --dry-run",
        "patch -m dynamic-yarn --factor 4 --freeze-at 2k --dry-run",
        marked("compare-methods -m none -m yarn --factor 4 --dry-run"),
        marked("compare-methods --factor 4 --dry-run"),
        "harness -m abf --factor 4 --task x --length 1k",
        "eval-tasks -m yarn --factor 4 --task passkey --length 1k --dry-run",
    ],
)
def test_what_has_an_effect_is_not_remarked_on(ropectl: Run, typed: str) -> None:
    """A factor that agrees with the spec or says the target, and the baseline among others."""
    code, out, err = ropectl(*typed.split())
    assert code == 0 and "extension factor" not in err and "changes nothing" not in err and out


def test_a_scaling_that_is_there_is_composed_with_and_set_aside(ropectl: Run, checkpoint: Checkpoint) -> None:
    block = {"rope_type": "linear", "factor": 4.0, "rope_theta": 10_000.0, "original_max_position_embeddings": 128}
    folder = str(checkpoint(rope_parameters=block, max_position_embeddings=512))
    for option, method in (("--compose", "yarn:factor=8"), ("--replace", "yarn:factor=2")):
        code, out, err = ropectl(
            "patch", folder, "-m", "yarn", "--factor", "2", option, "--dry-run", "--format", "json"
        )
        assert code == 0 and json.loads(out)["method"] == method and "changes nothing" not in err


def test_one_list_of_divisors_can_be_frozen_at_the_trained_length(
    ropectl: Run, checkpoint: Checkpoint, tmp_path: Path
) -> None:
    """Its other table is not the unscaled model."""
    spec = "longrope:factor=4,long_factor=" + ":".join(["4"] * 8) + ",short_factor=" + ":".join(["1.5"] * 8)
    folder = str(checkpoint())
    code, out, err = ropectl("patch", folder, "-m", spec, "--freeze-at", "128", "--dry-run", "--format", "json")
    assert code == 0, err
    assert json.loads(out)["rope_parameters"]["long_factor"] == [1.5] * 8
    assert ropectl("patch", folder, "-m", spec, "--freeze-at", "127", "--dry-run")[0] == 2
