"""Narrow terminals: what a table has no room for stands below it, and no digit is lost."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

pytestmark = pytest.mark.usefixtures("short_calibration")

Run = Callable[..., tuple[int, str, str]]

#: What is printed as one piece at 120 columns and holds a digit, dates and names of files aside.
NUMBER = re.compile(r"(?<![^\s])[-<>]?\d[\d.,e+-]*%?x?(?![^\s])")
SMALL = "rotary_dim=8,rope_theta=10000,original_max_position_embeddings=128"
SHOWN = [
    ("inspect", "-m", "yarn", "--factor", "4"),
    ("inspect", "-m", "pi", "-m", "ntk", "--factor", "4"),
    ("inspect", "--self-test", "--geometry", SMALL),
    ("patch", "-m", "yarn", "--factor", "4", "--dry-run", "-o", "out"),
    ("methods",),
    ("methods", "llama3"),
    ("methods", "--choose", "--target-length", "2k"),
]


@pytest.mark.parametrize("arguments", SHOWN, ids=" ".join)
def test_no_number_is_cut(ropectl: Run, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    code, out, err = ropectl(*arguments)
    assert code == 0, err
    wide = set(NUMBER.findall(out))
    for columns in (30, 40, 60):
        monkeypatch.setenv("COLUMNS", str(columns))
        code, out, err = ropectl(*arguments)
        assert code == 0 and "…" not in out, columns
        assert wide - set(NUMBER.findall(out)) == set(), columns
        if arguments[0] == "inspect":  # the others print commands, which are never wrapped
            assert max(map(len, out.splitlines())) <= columns


def test_parameters_keep_their_names(ropectl: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    code, out, _ = ropectl("methods")
    assert code == 0 and {"attention_factor,", "high_freq_factor", "low_freq_factor,", "mscale_all_dim,"} <= set(
        out.split()
    )
