"""How far long work is, on a terminal and in a log, by a clock of the test."""

from __future__ import annotations

import io
import re
from collections.abc import Callable

import pytest
from rich.console import Console

from ropectl.cli import progress
from ropectl.cli.progress import BarReporter
from ropectl.timing.operations import NOTHING, Cost


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def window(tokens: int) -> Cost:
    return Cost(1, 1e6 * tokens, 100.0 * tokens**2)


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], io.StringIO]:
    """What is written to stderr, as a terminal or not."""

    def into(terminal: bool) -> io.StringIO:
        text = io.StringIO()
        console = Console(file=text, force_terminal=terminal, width=100, highlight=False)
        monkeypatch.setattr(progress, "stderr_console", lambda: console)
        return text

    return into


def work(reporter: BarReporter, clock: Clock, passes: int, each: float, tokens: int = 512) -> None:
    for _ in range(passes):
        clock.now += each
        reporter.advance(tokens, window(tokens))


def test_a_log_has_a_line_every_half_minute(shown: Callable[[bool], io.StringIO]) -> None:
    text, clock = shown(False), Clock()
    with BarReporter(clock=clock) as reporter:
        reporter.start("measuring", 512 * 100, cost=window(512) * 100)
        reporter.cell("yarn", "tail 512", window(512) * 100)
        work(reporter, clock, 100, each=2.0)
    lines = text.getvalue().splitlines()
    assert lines[0] == "measuring yarn"
    assert lines[1] == "yarn tail 512: 15% done, 30 s elapsed, 2.6 to 3.1 min left"
    assert len(lines) == 1 + 6 and "90% done, 3 min elapsed, 18 to 22 s left" in lines[-1]


def test_a_log_of_a_method_is_not_repeated_by_kind(shown: Callable[[bool], io.StringIO]) -> None:
    text, clock = shown(False), Clock()
    with BarReporter(clock=clock) as reporter:
        reporter.start("measuring", 10, cost=window(512) * 4)
        for kind in ("prefix", "tail"):
            for method in ("none", "pi"):
                reporter.cell(method, kind, window(512))
    assert text.getvalue().splitlines() == ["measuring none", "measuring pi"]


def test_what_remains_is_a_range_where_it_is_uncertain(shown: Callable[[bool], io.StringIO]) -> None:
    text, clock = shown(False), Clock()
    short, long = window(16) * 40, window(4096) * 10
    with BarReporter(clock=clock) as reporter:
        reporter.start("measuring", 1, cost=short + long)
        reporter.cell("none", "all", short + long)
        work(reporter, clock, 40, each=1.0, tokens=16)
    left = re.search(r"elapsed, (\S+) s to (\S+) (\S+) left", text.getvalue())
    assert left and float(left[1]) == 18, (
        "if a pass takes what it takes, however long it is: ten seconds, and ten short ones"
    )


def test_work_of_unknown_size_says_how_much_is_done(shown: Callable[[bool], io.StringIO]) -> None:
    text, clock = shown(False), Clock()
    with BarReporter(clock=clock) as reporter:
        reporter.start("reading text")
        for _ in range(4):
            clock.now += 10
            reporter.advance(1_000_000)
    assert text.getvalue().splitlines() == ["reading text: 3,000,000 tokens done, 30 s elapsed"]


def test_a_terminal_has_a_bar_with_the_range(shown: Callable[[bool], io.StringIO]) -> None:
    text, clock = shown(True), Clock()
    with BarReporter(clock=clock) as reporter:
        reporter.start("measuring", 512 * 100, cost=window(512) * 100)
        reporter.cell("yarn", "tail 512", window(512) * 100)
        work(reporter, clock, 50, each=2.0)
        reporter._progress.refresh()
    last = text.getvalue()
    assert "yarn tail 512" in last and "50%, 256 tokens/s, 1.5 to 1.8 min left" in last


def test_a_part_without_a_total_shows_no_rest(shown: Callable[[bool], io.StringIO]) -> None:
    text, clock = shown(True), Clock()
    with BarReporter(clock=clock) as reporter:
        reporter.start("linking", 2e9, unit="bytes")
        for _ in range(3):
            clock.now += 1
            reporter.advance(500_000_000)
        reporter._progress.refresh()
        assert "75%, 500 MB/s, 0.91 to 1.1 s left" in text.getvalue()
        reporter.start("comparing logits", cost=NOTHING)
        clock.now += 5
        reporter.advance(10)
        reporter._progress.refresh()
    assert "left" not in text.getvalue().split("comparing logits")[-1]


@pytest.mark.parametrize("terminal", [False, True])
def test_a_training_says_what_remains_too(shown: Callable[[bool], io.StringIO], terminal: bool) -> None:
    text, clock = shown(terminal), Clock()
    with BarReporter(clock=clock) as reporter:
        reporter.steps(20, 10)
        for step in range(11, 21):
            clock.now += 12
            reporter.step({"step": step, "loss": 2.5, "tokens_per_second": 1000.0})
            reporter._progress.refresh()
    assert "15/20 loss 2.500 1,000 tokens/s, 55 s to 1.1 min left" in text.getvalue()
    assert "20/20 loss 2.500 1,000 tokens/s" in text.getvalue()
