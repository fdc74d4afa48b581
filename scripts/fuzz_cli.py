"""Runs bad invocations of every command, each in a process of its own, and prints those that were not refused as they should be."""

from __future__ import annotations

import os

os.environ.update(HF_HUB_OFFLINE="1", TQDM_DISABLE="1", TOKENIZERS_PARALLELISM="false", TRANSFORMERS_VERBOSITY="error")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import json
import sys
from pathlib import Path

from fuzz.case import KINDS, Case, shown
from fuzz.generate import all_cases, chosen
from fuzz.judge import faults
from fuzz.sandbox import Outcome, run_all
from fuzz.templates import base_cases, base_made
from fuzz.warm import warm_main


def main() -> None:
    """Runs what the command line asks for; exit code 1 if something was not refused."""
    asked = _arguments()
    program = warm_main()
    if asked.check_base:
        cases = base_cases()
    else:
        pool = all_cases(asked.kind or KINDS, asked.command or ())
        pool = [case for case in pool if asked.match in case.wrong]
        cases = chosen(pool, asked.count, asked.seed)
        print(f"{len(cases)} of {len(pool)} cases", flush=True)
    found: list[tuple[Case, Outcome, list[str]]] = []
    slowest = hungriest = 0.0
    with base_made():
        for case, outcome in run_all(cases, program, asked.jobs):
            slowest, hungriest = max(slowest, outcome.seconds), max(hungriest, outcome.memory)
            if wrong := faults(case, outcome):
                found.append((case, outcome, wrong))
                print(f"{case.kind} {case.line}\n    {case.wrong}: {'; '.join(wrong)}", flush=True)
                if asked.show:
                    _show(case, outcome)
    print(f"{len(found)} of {len(cases)} not as expected; at most {slowest:.1f} s and {hungriest / 2**20:.0f} MiB")
    if asked.json:
        asked.json.write_text(json.dumps([_record(*each) for each in found], indent=1))
    sys.exit(1 if found else 0)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="how many, spread over kinds and commands; 0 for all")
    parser.add_argument("--seed", type=int, default=0, help="decides which")
    parser.add_argument(
        "--kind", type=int, nargs="+", choices=KINDS, help="; ".join(f"{key}: {text}" for key, text in KINDS.items())
    )
    parser.add_argument("--command", nargs="+", metavar="NAME", help="only these commands")
    parser.add_argument("--match", default="", metavar="TEXT", help="only those of which this is said to be wrong")
    parser.add_argument(
        "--show", action="store_true", help="print what the commands printed, and the files around them"
    )
    parser.add_argument("--jobs", type=int, default=1, help="how many run at a time")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was not refused here")
    parser.add_argument(
        "--check-base", action="store_true", help="run the invocations without their faults: they have to be accepted"
    )
    return parser.parse_args()


def _show(case: Case, outcome: Outcome) -> None:
    print("    files:", "; ".join(step.name[:100] for step in case.steps))
    for text in (outcome.out, outcome.err):
        print("".join(f"    | {line[:200]}\n" for line in text.splitlines()[:12]), end="")


def _record(case: Case, outcome: Outcome, wrong: list[str]) -> dict[str, object]:
    return {
        "kind": case.kind,
        "command": case.command,
        "line": shown(("ropectl", case.command, *case.args)),
        "wrong": case.wrong,
        "faults": wrong,
        "files": [step.name[:200] for step in case.steps],
        "code": outcome.code,
        "stdout": outcome.out[:500],
        "stderr": outcome.err[:2000],
        "seconds": round(outcome.seconds, 2),
        "memory": outcome.memory,
    }


if __name__ == "__main__":
    main()
