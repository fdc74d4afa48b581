"""All cases, and a choice of them."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from itertools import islice, zip_longest

from fuzz import (
    absurd_numbers,
    configs,
    damage,
    damaged_texts,
    idle_options,
    results,
    special_files,
    texts,
    weights,
)
from fuzz.case import Case

#: Where the cases of each kind are made.
MAKERS = {
    1: (weights,),
    2: (configs,),
    3: (idle_options, texts),
    4: (special_files,),
    5: (results,),
    6: (damage, damaged_texts, absurd_numbers),
}


def all_cases(kinds: Collection[int] = tuple(MAKERS), commands: Collection[str] = ()) -> list[Case]:
    """Returns every case, each once, in a fixed order.

    Args:
        kinds: Those of these kinds.
        commands: Those of these commands; empty for every command.
    """
    made = (case for kind in sorted(kinds) for maker in MAKERS[kind] for case in maker.cases())
    found = {case.identity: case for case in made if not commands or case.command in commands}
    return list(found.values())


def chosen(cases: Sequence[Case], count: int, seed: int) -> list[Case]:
    """Returns ``count`` cases spread evenly over kinds, commands and faults; all of them for 0."""
    if count <= 0 or count >= len(cases):
        return list(cases)
    rng = random.Random(seed)
    groups: dict[tuple[int, str], dict[str, list[Case]]] = defaultdict(lambda: defaultdict(list))
    for case in cases:
        groups[case.kind, case.command][_fault(case)].append(case)
    orders = [list(_in_turn(_shuffled(group, rng))) for group in groups.values()]
    return list(islice(_in_turn(orders), count))


def _fault(case: Case) -> str:
    """What is wrong with a case, without the value."""
    return re.split("[='\"0-9]", case.wrong)[0]


def _shuffled(group: dict[str, list[Case]], rng: random.Random) -> list[list[Case]]:
    """Returns the cases of one kind and command by fault, in another order."""
    found = list(group.values())
    for cases in (found, *found):
        rng.shuffle(cases)  # type: ignore[arg-type]
    return found


def _in_turn(groups: Sequence[Sequence[Case]]) -> Iterator[Case]:
    """Yields the first of each group, then the second of each, and so on."""
    for row in zip_longest(*groups):
        yield from (case for case in row if case is not None)
