"""Bad invocations are refused: a sample of those that ``scripts/fuzz_cli.py`` makes, and whether its judge sees what it should."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.processes import ROOT, run_python

sys.path.insert(0, str(ROOT / "scripts"))

from fuzz import sandbox
from fuzz.case import KINDS, Case, Expected, file
from fuzz.generate import all_cases, chosen
from fuzz.judge import faults
from fuzz.sandbox import Outcome, run_all
from fuzz.templates import TEMPLATES

#: The kinds of which a sample has to be refused.
REFUSED_KINDS = tuple(KINDS)

SAMPLE = 60


@pytest.mark.process
def test_a_sample_is_refused() -> None:
    script = ROOT / "scripts" / "fuzz_cli.py"
    done = run_python([script, "--count", str(SAMPLE), "--show", "--kind", *map(str, REFUSED_KINDS)])
    assert done.stdout.startswith(f"{SAMPLE} of "), done.stdout + done.stderr
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.process
def test_what_is_not_wrong_is_accepted() -> None:
    done = run_python([ROOT / "scripts" / "fuzz_cli.py", "--check-base", "--show"])
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return all_cases()


def test_there_are_enough_cases(cases: list[Case]) -> None:
    assert len({case.identity for case in cases}) == len(cases) >= 1000
    by_kind = Counter(case.kind for case in cases)
    assert set(by_kind) == set(KINDS) and min(by_kind.values()) >= 100
    assert {case.command for case in cases} == {each.command for each in TEMPLATES}


def test_a_choice_has_every_kind_and_command(cases: list[Case]) -> None:
    some = chosen(cases, SAMPLE, 0)
    assert len({case.identity for case in some}) == SAMPLE and some == chosen(cases, SAMPLE, 0)
    assert some != chosen(cases, SAMPLE, 1)
    assert {case.kind for case in some} == set(KINDS)
    assert {case.command for case in some} == {case.command for case in cases}


CASE = Case(6, "inspect", ("x",), "everything", (file("here.txt", "as it was"),))


def refuse(text: str = "Error: x is not possible.\n", code: int = 2) -> None:
    sys.stderr.write(text)
    sys.exit(code)


def write_and_refuse() -> None:
    Path("new.txt").write_text("new")
    refuse()


def change_and_refuse() -> None:
    Path("here.txt").write_text("as it is")
    refuse()


def print_and_refuse() -> None:
    print("a result")
    refuse()


def fail() -> None:
    raise KeyError("x")


def wait() -> None:
    time.sleep(60)


def work() -> None:
    while True:
        pass


def take_memory() -> None:
    bytearray(3 * 2**30)


@pytest.mark.process
@pytest.mark.parametrize(
    ("main", "found"),
    [
        (refuse, []),
        (write_and_refuse, ["wrote new.txt"]),
        (change_and_refuse, ["wrote here.txt"]),
        (print_and_refuse, ["printed to stdout"]),
        (fail, ["exit code 1", "says Traceback (most recent"]),
        (take_memory, ["exit code 1", "says Traceback (most recent"]),
        (lambda: None, ["exit code 0"]),
        (wait, ["waits without end"]),
        (work, ["works longer than 0.4 s"]),
    ],
)
def test_the_judge_of_processes(
    main: Callable[[], None], found: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "SECONDS", 0.2)
    ((case, outcome),) = run_all([CASE], main, scratch=tmp_path)
    assert faults(case, outcome) == found
    assert list(tmp_path.iterdir()) == []


REFUSAL = Outcome(2, "", "Error: x is not possible.\n", 0.1, 0, "", ())


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({}, []),
        ({"err": "note: y is odd.\nError: x is not possible.\nLeave it out.\n"}, []),
        ({"err": "Usage: ropectl inspect\n\nx is not possible.\n"}, []),
        ({"err": ""}, ["not one message", "does not mention x"]),
        ({"err": "Error: KeyError: 'x'\n"}, ["says KeyError", "not one message"]),
        ({"err": "Error: x: list index out of range\n"}, ["says index out of range"]),
        ({"err": "Error: x\nError: x\n"}, ["not one message"]),
        ({"err": "Error: x\n" + "a\n" * 4}, ["a message of 5 lines, 17 characters"]),
        ({"err": "Error: y is not possible.\n"}, ["does not mention x"]),
        ({"seconds": 9.0}, ["took 9.0 s"]),
        ({"memory": 2**31}, ["took 2048 MiB"]),
        ({"code": -9}, ["ended by signal 9"]),
        ({"code": 1}, ["exit code 1"]),
    ],
)
def test_the_judge_of_messages(changes: dict[str, object], found: list[str]) -> None:
    assert faults(replace(CASE, mentions=("x",)), replace(REFUSAL, **changes)) == found


@pytest.mark.parametrize(
    ("expected", "outcome", "found"),
    [
        (Expected.noted, replace(REFUSAL, code=0, err="warning: x is not read.\n"), []),
        (Expected.noted, replace(REFUSAL, code=0, err=""), ["no note or warning", "does not mention x"]),
        (Expected.noted, REFUSAL, ["exit code 2"]),
        (Expected.told, REFUSAL, []),
        (Expected.told, replace(REFUSAL, code=0, err="note: y\n"), ["does not mention x"]),
        (Expected.accepted, replace(REFUSAL, code=0, changed=("new",)), []),
        (Expected.accepted, REFUSAL, ["exit code 2"]),
    ],
)
def test_what_else_may_be_expected(expected: Expected, outcome: Outcome, found: list[str]) -> None:
    assert faults(replace(CASE, mentions=("x",), expected=expected), outcome) == found
