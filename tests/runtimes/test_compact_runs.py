"""Runs of many families in few bytes are the runs that were put in."""

from __future__ import annotations

import json

from ropectl.runtimes.compact_runs import compact, expand

RUNS = {
    "llama": {
        "yarn": {"form": "yarn", "deviation": 3e-7},
        "pi": {"form": "linear", "deviation": 0.75},
        "ntk": {"form": "ntk", "stops": "KeyError: 'ntk'"},
    },
    "phi3": {"yarn": {"form": "longrope", "deviation": 3e-7}, "ntk": {"form": "ntk", "stops": "KeyError: 'ntk'"}},
    "qwen2": {"pi": {"form": "linear", "stops": "ValueError"}},
}


def test_what_is_put_in_comes_out() -> None:
    packed = json.loads(json.dumps(compact(RUNS, 1e-5)))
    assert expand(packed) == RUNS
    assert packed["stops"] == ["KeyError: 'ntk'", "ValueError"], "each message once"


def test_deviations_that_agree_are_kept_as_the_largest_of_a_family() -> None:
    runs = {"llama": {name: {"form": name, "deviation": value} for name, value in (("a", 1e-7), ("b", 4e-7))}}
    assert {fields["deviation"] for fields in expand(compact(runs, 1e-5))["llama"].values()} == {4e-7}
