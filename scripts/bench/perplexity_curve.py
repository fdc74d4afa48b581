"""A perplexity curve of 16 lengths: one forward pass against one pass per length, on the same tokens.

Prints both times and their ratio, from interleaved repetitions in one run, and asserts that both ways
give the same numbers. With n evenly spaced lengths the passes process (n + 1) / 2 times the tokens of the
longest; attention, which grows with the square of the length, makes the long pass dearer, and fixed costs
make the short ones dearer.

    python scripts/bench/perplexity_curve.py [--model builtin:tiny] [--longest 2048] [--documents 8]
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

from ropectl.data.tokens import DocumentSet
from ropectl.evaluate.config import PerplexityConfig
from ropectl.evaluate.perplexity.protocols.prefix import Prefix
from ropectl.evaluate.perplexity.runner import measure_perplexity
from ropectl.evaluate.perplexity.windows import PerplexityRequest
from ropectl.evaluate.setup import Setup
from ropectl.records import PerplexityPoint

TOLERANCE = 1e-5
NUM_LENGTHS = 16


def timed(run: Callable[[], list[PerplexityPoint]]) -> tuple[float, list[PerplexityPoint]]:
    started = time.perf_counter()
    points = run()
    return time.perf_counter() - started, points


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="builtin:tiny")
    parser.add_argument("--method", default="yarn:factor=4")
    parser.add_argument("--text", default="builtin:stdlib")
    parser.add_argument("--longest", type=int, default=2048)
    parser.add_argument("--documents", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()

    setup = Setup.of(PerplexityConfig(model=arguments.model, text=arguments.text, documents=arguments.documents))
    method = setup.method(arguments.method)
    lengths = [arguments.longest * (i + 1) // NUM_LENGTHS for i in range(NUM_LENGTHS)]
    documents: DocumentSet = setup.documents(lengths)
    assert documents.length == arguments.longest, "no document is long enough"

    def measure(wanted: list[int]) -> list[PerplexityPoint]:
        return measure_perplexity(setup.model, Prefix(), PerplexityRequest(method, setup.geometry, documents, wanted))

    def one_pass() -> list[PerplexityPoint]:
        return measure(lengths)

    def one_pass_per_length() -> list[PerplexityPoint]:
        return [measure([length])[0] for length in lengths]

    one_pass()  # warm-up
    ratios, fast, slow = [], [], []
    for _ in range(arguments.repeats):
        seconds, points = timed(one_pass)
        reference_seconds, reference = timed(one_pass_per_length)
        for ours, theirs in zip(points, reference, strict=True):
            assert ours.perplexity is not None and theirs.perplexity is not None
            assert abs(ours.perplexity / theirs.perplexity - 1) < TOLERANCE, (ours, theirs)
            assert ours.num_tokens == theirs.num_tokens
        ratios.append(reference_seconds / seconds)
        fast.append(seconds)
        slow.append(reference_seconds)
    print(
        f"{arguments.model}, {method}, {len(documents.documents)} documents, {NUM_LENGTHS} lengths up to {arguments.longest}"
    )
    print(f"one pass:            {statistics.median(fast):8.3f} s")
    print(f"one pass per length: {statistics.median(slow):8.3f} s")
    print(
        f"ratio:               {statistics.median(ratios):8.2f}   ({min(ratios):.2f} to {max(ratios):.2f}; tokens alone: {(NUM_LENGTHS + 1) / 2})"
    )
    print(f"largest relative difference allowed and kept: {TOLERANCE:g}")


if __name__ == "__main__":
    main()
