"""The views of ``methods``: a list of all scaling methods, and one in full."""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence

from ropectl.records import RuntimeReading
from ropectl.report.document import Cell, Column, Part, Row, Sentence, Table, cells, columns, facts
from ropectl.report.tables.runtimes import red_lines, version_names
from ropectl.rope.catalog import parameters_of
from ropectl.rope.method import ScalingMethod
from ropectl.rope.profile import DivisorProfile, divisor_profile
from ropectl.specs import Parameter, format_value

#: Titles of the texts of a guide, in the order of reading.
GUIDE_TITLES = {
    "fast": "Fast pairs",
    "slow": "Slow pairs",
    "use": "Worth using",
    "tuning": "Tuning",
    "short_text": "Short text",
    "cache": "KV cache",
    "runtimes": "Runtimes",
    "measured": "Measured",
}

#: Characters of the longest bar.
BAR_WIDTH = 16


def methods_list(kinds: Sequence[type[ScalingMethod]]) -> list[Part]:
    """Returns one row per method, and where to read on."""
    texts = []
    for kind in kinds:
        names = [parameter.name + "*" * parameter.required for parameter in parameters_of(kind)]
        texts.append((kind.title, ", ".join(names), kind.native))
    heads = ("what it is", "parameters", "stock type")
    longest = [
        max([0, *(len(word) for text in column for word in text.split())]) for column in zip(*texts, strict=True)
    ]
    shown = [Column(head, is_text=True, word=word) for head, word in zip(heads, longest, strict=True)]
    rows = [Row(kind.name, cells(text)) for kind, text in zip(kinds, texts, strict=True)]
    return [
        Table("", "method", shown, rows),
        Sentence("* required; a factor also by --factor S or --target-length N"),
        Sentence(
            "One in full: ropectl methods NAME. Which for a model: ropectl methods --choose --target-length N MODEL"
        ),
    ]


def method_page(kind: type[ScalingMethod], readings: Sequence[RuntimeReading] | None) -> list[Part]:
    """Returns everything about one method.

    Args:
        kind: The method.
        readings: How runtimes read a checkpoint that was scaled with it; None if not known.
    """
    parts: list[Part] = [
        Sentence(f"{kind.name}: {kind.title}", is_heading=True),
        *(line for text in summary_of(kind) for line in (Sentence(""), Sentence(text))),
        facts("", [*method_facts(kind), *guide_texts(kind).items()]),
    ]
    if parameters := parameters_of(kind):
        parts.append(facts("Parameters", [(one.name, parameter_text(one)) for one in parameters]))
    profile = divisor_profile(kind)
    if profile is not None:
        parts += _profile_parts(profile)
    if readings:
        parts += [Sentence("")] * isinstance(parts[-1], Sentence)
        parts += [
            Sentence("In other programs, as patch writes it", is_heading=True),
            *map(Sentence, runtime_lines(readings)),
        ]
    return parts


def method_facts(kind: type[ScalingMethod]) -> list[tuple[str, str]]:
    """Returns formula, frequencies, stock type and reference of a method."""
    follows = "they follow the length of the sequence" if kind.varies_with_length else "the same at every length"
    names = ("Formula", "Frequencies", "Stock type", "Reference")
    return list(zip(names, (kind.formula, follows, kind.native, str(kind.reference)), strict=True))


def summary_of(kind: type[ScalingMethod]) -> list[str]:
    """Returns the paragraphs of a method's docstring, lines joined and code marks left out, ready to be wrapped."""
    text = (inspect.getdoc(kind) or "").replace("``", "")
    return [" ".join(paragraph.split()) for paragraph in text.split("\n\n")]


def guide_texts(kind: type[ScalingMethod]) -> dict[str, str]:
    """Returns the texts of a method's guide under their titles; empty if it has no guide."""
    guide = {} if kind.guide is None else kind.guide.to_json()
    return {title: guide[name] for name, title in GUIDE_TITLES.items() if guide.get(name)}


def parameter_text(parameter: Parameter) -> str:
    """Returns what a parameter means, its default with unit, and what is allowed."""
    unit = "" if parameter.unit in (None, "1") or parameter.default is None else f" {parameter.unit}"
    value = "none" if parameter.default is None else format_value(parameter.default)
    default = "required" if parameter.required else f"default {value}{unit}"
    return f"{parameter.help} ({default}{f', {parameter.allowed}' if parameter.allowed else ''})"


def profile_heading(profile: DivisorProfile) -> str:
    """Returns the conditions that a profile holds for."""
    geometry = profile.geometry
    follows = f", for {profile.seq_len} tokens" if profile.seq_len is not None else ""
    return (
        f"{profile.method}{follows}, where rotary_dim is {geometry.rotary_dim}, rope_theta {geometry.rope_theta:g} "
        f"and the trained length L {geometry.original_max_position_embeddings}"
    )


def profile_summary(profile: DivisorProfile) -> str:
    """Returns how far the rotations were seen in training, and the attention factor."""
    reach = "at any length" if profile.reach is None else f"up to {profile.reach} tokens"
    return f"Rotations seen in training {reach}; attention factor {profile.attention_factor:.4f}."


def profile_bars(profile: DivisorProfile) -> list[str]:
    """Returns a bar for each shown pair, as long as the logarithm of the divisor."""
    found = [pair.divisor for pair in profile.pairs]
    longest = math.log(max(profile.factor, *(divisor for divisor in found if divisor is not None)))
    return [
        "#" * BAR_WIDTH if divisor is None else "#" * round(BAR_WIDTH * math.log(divisor) / longest)
        for divisor in found
    ]


def _profile_parts(profile: DivisorProfile) -> list[Part]:
    rows = []
    for pair, bar in zip(profile.pairs, profile_bars(profile), strict=True):
        divisor = "stopped" if pair.divisor is None else f"{pair.divisor:.3f}"
        numbers = cells((f"{pair.wavelength:.1f}", f"{pair.turns:.2f}", divisor))
        rows.append(Row(f"{pair.pair:>{len('pair')}}", [*numbers, Cell(bar)]))
    heads = [*columns(("wavelength", "turns in L", "divisor")), Column("slowed by", is_drawing=True)]
    return [
        Sentence("By how much each pair is slowed", is_heading=True),
        Sentence(profile_heading(profile)),
        Table("", "pair", heads, rows),
        Sentence(profile_summary(profile)),
    ]


def runtime_lines(readings: Sequence[RuntimeReading]) -> list[str]:
    """Returns which versions of which runtimes compute what was meant, and what goes wrong in the others."""
    right = [(reading.runtime, reading.version) for reading in readings if reading.ok]
    lines = [f"As meant: {version_names(right)}."] if right else []
    return [*lines, *(line.text for line in red_lines(readings))]
