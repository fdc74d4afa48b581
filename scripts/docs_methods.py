"""docs/methods.md: every method as ``ropectl methods NAME`` explains it."""

from __future__ import annotations

from collections.abc import Mapping

from docs_markdown import code, escaped, generated_note, page, table

from ropectl.report.views.methods import (
    guide_texts,
    parameter_text,
    profile_bars,
    profile_heading,
    profile_summary,
    runtime_lines,
    summary_of,
)
from ropectl.rope.catalog import parameters_of
from ropectl.rope.method import Reference, ScalingMethod
from ropectl.rope.profile import DivisorProfile, divisor_profile
from ropectl.rope.registry import all_methods
from ropectl.runtimes.matrix import all_runtimes, reference_readings

SYMBOLS = (
    "L is the trained length, L' the target, s = L'/L the extension factor, n the length of a sequence, d the rotated dimensions "
    "of a head, b the base (`rope_theta`), th_i = b^(-2i/d) the trained frequency of pair i, r_i its turns within L, c(r) the pair "
    "index that turns r times within L, A the attention factor, by which cos and sin are multiplied. A fast pair turns many times "
    "within L and tells neighbours apart; a slow one never completed a turn, and past L reaches angles that the model has not seen."
)


def methods_page() -> str:
    """Returns the page."""
    kinds = all_methods()
    return page(
        [
            generated_note("ropectl/rope/methods"),
            "# Scaling methods",
            "What `ropectl methods NAME` prints, for all of them. Which of them are worth testing on a model, and how: "
            "`ropectl methods --choose --target-length N MODEL`.",
            SYMBOLS,
            "Measured numbers are those of the [README](../README.md), which says how they were made.",
            _overview(kinds),
            *(part for kind in kinds.values() for part in _method(kind)),
        ]
    )


def _overview(kinds: Mapping[str, type[ScalingMethod]]) -> str:
    names = [runtime.name for runtime in all_runtimes()]
    rows = [
        (f"[{code(name)}](#{name})", escaped(kind.title), escaped(kind.native), *_verdicts(kind, names))
        for name, kind in kinds.items()
    ]
    return "\n".join(
        [
            "A checkpoint that `ropectl patch` scaled, in the newest known version of each runtime (on the geometry below; a "
            "method that follows the length is written in its stock form, where it has one, else frozen at four times L):",
            "",
            *table(("Method", "What it is", "Stock type", *names), rows),
        ]
    )


def _verdicts(kind: type[ScalingMethod], runtimes: list[str]) -> list[str]:
    readings = reference_readings(kind)
    if readings is None:
        return ["as its divisors are"] * len(runtimes)
    newest = {reading.runtime: reading for reading in readings}
    return ["as meant" if newest[name].ok else "not by itself" for name in runtimes]


def _method(kind: type[ScalingMethod]) -> list[str]:
    summary = escaped("\n\n".join(summary_of(kind)))
    readings, profile = reference_readings(kind), divisor_profile(kind)
    parts = [
        f"## {kind.name}",
        f"**{escaped(kind.title)}.** {summary}",
        f"```\n{kind.formula}\n```",
        f"Reference: {_link(kind.reference)}. Stock type: {escaped(kind.native)}. Frequencies: "
        + ("they follow the length of the sequence." if kind.varies_with_length else "the same at every length."),
        "\n".join(f"- **{title}.** {escaped(text)}" for title, text in guide_texts(kind).items()),
    ]
    if parameters := parameters_of(kind):
        rows = [(code(one.name), escaped(parameter_text(one))) for one in parameters]
        parts.append("\n".join(table(("Parameter", "Meaning"), rows)))
    if profile is not None:
        parts += _profile(profile)
    if readings:
        lines = "\n".join(f"- {escaped(line)}" for line in runtime_lines(readings))
        parts.append(f"In other programs, as `patch` writes it:\n\n{lines}")
    return parts


def _link(reference: Reference) -> str:
    address = f"https://arxiv.org/abs/{reference.arxiv}" if reference.arxiv else reference.url
    return f"[{escaped(str(reference))}]({address})" if address else escaped(str(reference))


def _profile(profile: DivisorProfile) -> list[str]:
    lines = [" pair   wavelength   turns in L   divisor"]
    for pair, bar in zip(profile.pairs, profile_bars(profile), strict=True):
        divisor = "stopped" if pair.divisor is None else f"{pair.divisor:.3f}"
        lines.append(f"{pair.pair:5}   {pair.wavelength:10.1f}   {pair.turns:10.2f}   {divisor:>7}   {bar}".rstrip())
    shown = "\n".join(lines)
    return [
        f"By how much each pair is slowed by {escaped(profile_heading(profile))}:",
        f"```\n{shown}\n```",
        profile_summary(profile),
    ]
