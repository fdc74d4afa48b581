"""Times short passes in turn, each several times.

On a CPU, other work disturbs timings by far more than its share: the threads of every operation wait for the one that
has no core, so a short pass may take a hundred times as long. The processor time of a pass on one thread hardly changes,
so it is taken too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from ropectl.memory import is_out_of_memory
from ropectl.timing.operations import Cost
from ropectl.timing.speed import Timed, spread

#: Time that all passes may take together; they are repeated that long on a machine whose timings vary [s].
BUDGET = 8.0

#: The shortest pass, which shows what one takes however short it is [tokens].
SHORTEST = 16

#: Lengths are doubled up to a pass that takes this share of their time; at least so many are tried, and so many of the longest
#: are repeated besides the shortest.
_LONGEST_SHARE, _FEWEST, _REPEATED = 1 / 40, 3, 4

#: Repetitions of each pass: at least, at most, and the variation below which the least is enough.
_LEAST, _MOST, _STEADY = 3, 12, 1.1


@dataclass(frozen=True)
class ShortPass:
    """A pass that can be timed.

    Attributes:
        layers: Decoder layers that it goes through; 0 for the output head alone.
        rows: Sequences side by side.
        length: Tokens of each.
        cost: What it costs.
        run: Makes it.
    """

    layers: int
    rows: int
    length: int
    cost: Cost
    run: Callable[[], Any]


@dataclass(frozen=True)
class TimedPass:
    """A pass that was timed.

    Attributes:
        made: The pass.
        alone: What it takes on a machine without other work, as far as that can be told [s].
        one_thread: What it takes on one thread of the CPU now [s].
        seconds: What it took, each time.
    """

    made: ShortPass
    alone: float
    one_thread: float
    seconds: list[float]


def doublings(longest: int) -> list[int]:
    """Returns the lengths to time, ascending: the longest, its half, and so on, and the shortest that is timed."""
    lengths = {min(SHORTEST, longest)}
    while longest >= SHORTEST:
        lengths.add(longest)
        longest //= 2
    return sorted(lengths)


def time_passes(ladder: Sequence[ShortPass], device: Any, share: float) -> list[TimedPass]:
    """Returns timings of the shortest pass and of the longest that are short enough, each repeated, in turn.

    In turn, so that what disturbs one for a while disturbs all of them. Those that need too much memory are left out.

    Args:
        ladder: Passes, the shortest first.
        device: Where they run.
        share: Of the time that all passes may take.
    """
    budget, began = BUDGET * share, time.perf_counter()
    tried: list[TimedPass] = []
    for each in ladder:
        try:
            _timed_alone(each, device)  # warms up memory and kernels
            tried.append(_timed_alone(each, device))
        except (RuntimeError, MemoryError) as error:
            if tried and is_out_of_memory(error):
                break
            raise
        if len(tried) >= _FEWEST and tried[-1].alone > budget * _LONGEST_SHARE:
            break
    timed = [*tried[:1], *tried[1:][-_REPEATED:]]
    timed[0].made.run()  # wakes the threads
    for number in range(1, _MOST + 1):
        for own in timed:
            if not timed[0].seconds or time.perf_counter() - began < budget:
                own.seconds.append(_seconds(own.made, device))
        is_steady = spread([Timed(own.made.cost, own.seconds) for own in timed if own.seconds]) < _STEADY
        if time.perf_counter() - began > budget or (number >= _LEAST and is_steady):
            break
    if device.type == "cpu":
        return timed
    return [replace(own, alone=min(own.alone, *own.seconds)) for own in timed]


def _timed_alone(one: ShortPass, device: Any) -> TimedPass:
    """Returns the time of a pass without other work: on a CPU the processor time of one thread, divided among all."""
    if device.type != "cpu":
        seconds = _seconds(one, device)
        return TimedPass(one, seconds, seconds, [])
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        used, seconds = time.process_time(), _seconds(one, device)
        used = time.process_time() - used
    finally:
        torch.set_num_threads(threads)
    return TimedPass(one, max(used, 1e-6) / threads, seconds, [])


def _seconds(one: ShortPass, device: Any) -> float:
    _settle(device)
    began = time.perf_counter()
    one.run()
    _settle(device)
    return max(time.perf_counter() - began, 1e-6)


def _settle(device: Any) -> None:
    """Waits for what an accelerator was told to do."""
    if device.type != "cpu":
        torch.accelerator.synchronize(device)
