"""How well times are told beforehand and on the way: estimated ranges beside the measured time, in the same run.

A comparison of three methods is estimated (`--dry-run`), then run. While it runs, what remains is estimated from what is done,
as the progress bar does it. On the built-in model a training is estimated and run too. Ratios are measured by estimated:
1 is a time told right; a busy machine is said.

    python scripts/bench/estimate.py [MODEL ...] [--threads 2] [--repeats 3]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from accelerate.state import AcceleratorState

from ropectl.compare.dry_run import estimate_comparison
from ropectl.compare.run import compare_methods
from ropectl.evaluate.config import CompareConfig
from ropectl.reporter import Reporter
from ropectl.timing.load import Load
from ropectl.timing.operations import Cost
from ropectl.timing.pace import Pace
from ropectl.timing.speed import Span
from ropectl.train.finetuning import finetune
from ropectl.train.settings import FinetuneSettings

#: Shares of the operations after which the rest is estimated.
POINTS = (0.05, 0.2, 0.5, 0.8)


class Follower(Reporter):
    """Estimates what remains at some points of the work, and keeps when that was."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[float, float, Span | None]] = []

    def start(self, what: str, total: float = 0.0, unit: str = "tokens", cost: Cost | None = None) -> None:
        self.pace, self.waiting = Pace(cost or Cost(weights=total)), list(POINTS)

    def cell(self, method: str, part: str, cost: Cost) -> None:
        self.pace.begin(cost)

    def advance(self, amount: int, cost: Cost | None = None) -> None:
        self.pace.advance(cost or Cost(weights=amount))
        if self.waiting and self.pace.share >= self.waiting[0]:
            self.waiting.pop(0)
            self.seen.append((self.pace.share, time.monotonic(), self.pace.remaining()))


def line(what: str, span: Span | None, measured: float) -> None:
    """Prints a range, the measured time and their ratio."""
    if span is None:
        print(f"  {what:<28}{'not known':>22}{measured:>10.1f}")
        return
    inside = "inside" if span.low <= measured <= span.high else "OUTSIDE"
    shown = f"{span.low:.1f} to {span.high:.1f}"
    print(f"  {what:<28}{shown:>22}{measured:>10.1f}{measured / max(1e-9, span.middle):>9.2f}  {inside}")


def estimated(record: dict[str, Any]) -> Span:
    """Returns the time of an estimate."""
    if record["busy"]:
        print(f"  busy: load {record['load']}, on one thread {record['gain_of_one_thread']:.1f} times as fast")
    print(f"  calibrated in {record['calibration']['seconds']:.1f} s")
    return Span(record["seconds_low"], record["seconds"], record["seconds_high"])


def comparison(model: str) -> None:
    """Estimates a comparison, runs it, and says what remained at some points of it."""
    sizes: dict[str, Any] = {} if model == "builtin:tiny" else {"lengths": (256, 512), "original_length": 256}
    config = CompareConfig(model=model, methods=("pi", "yarn"), factor=2, **sizes)
    with tempfile.TemporaryDirectory() as folder:
        span = estimated(estimate_comparison(config)["models"][0]["time"])
        follower = Follower()
        record = compare_methods(config, Path(folder) / "run", follower).record
        ended = time.monotonic()
    line("--dry-run", span, sum(row["seconds"] for row in record["rows"]))
    for share, when, left in follower.seen:
        line(f"what remains at {share:.0%}", left, ended - when)


def training() -> None:
    """Estimates a training of the built-in model, and runs it."""
    with tempfile.TemporaryDirectory() as folder:
        settings: dict[str, Any] = {
            "method": "yarn", "factor": 2, "steps": 8, "batch_size": 4, "text": __file__, "save_every": 1000,
            "out": Path(folder) / "tuned",
        }  # fmt: skip
        estimate = finetune(FinetuneSettings(**settings, dry_run=True)).record
        assert estimate is not None
        span = estimated(estimate["time"])
        AcceleratorState._reset_state(True)
        record = finetune(FinetuneSettings(**settings)).record
        assert record is not None
        AcceleratorState._reset_state(True)
    line("finetune --dry-run", span, record["training"]["seconds"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", help="further models, such as the GGUF file of SmolLM2-135M")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--repeats", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    works: list[tuple[str, Callable[[], None]]] = [
        (f"compare-methods {model}", lambda model=model: comparison(model))  # type: ignore[misc]
        for model in ("builtin:tiny", *options.models)
    ]
    for name, work in [*works, ("finetune builtin:tiny", training)]:
        for _ in range(options.repeats):
            load = Load.now()
            print(f"{name}, {options.threads} threads, load {load.average or 0:.1f} on {load.cores} cores")
            print(f"  {'':<28}{'estimated [s]':>22}{'measured':>10}{'ratio':>9}")
            work()


if __name__ == "__main__":
    main()
