"""Scaling methods for people: a list of all, and all about one, at any width without losing a letter."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ropectl.report.runtimes import red_lines, version_names
from ropectl.report.sheet import Cell, Column, Part, Row, Sentence, Sheet, cells, columns, facts

#: Guide texts in the order of reading, as people call them.
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


def methods_list(entries: Sequence[Mapping[str, Any]]) -> list[Part]:
    """Returns one row per method, and where to read on."""
    texts = []
    for entry in entries:
        names = [parameter["name"] + "*" * parameter["required"] for parameter in entry["parameters"]]
        texts.append((entry["title"], ", ".join(names), entry["native"]))
    heads = ("what it is", "parameters", "stock type")
    longest = [
        max([0, *(len(word) for text in column for word in text.split())]) for column in zip(*texts, strict=True)
    ]
    shown = [Column(head, is_text=True, word=word) for head, word in zip(heads, longest, strict=True)]
    rows = [Row(entry["name"], cells(text)) for entry, text in zip(entries, texts, strict=True)]
    return [
        Sheet("", "method", shown, rows),
        Sentence("* required; a factor also by --factor S or --target-length N"),
        Sentence(
            "One in full: ropectl methods NAME. Which for a model: ropectl methods --choose --target-length N MODEL"
        ),
    ]


def method_page(entry: Mapping[str, Any]) -> list[Part]:
    """Returns everything about one method."""
    follows = "they follow the length of the sequence" if entry["depends_on_seq_len"] else "the same at every length"
    basics = {
        "Formula": entry["formula"],
        "Frequencies": follows,
        "Stock type": entry["native"],
        "Reference": entry["reference"],
    }
    parts: list[Part] = [
        Sentence(f"{entry['name']}: {entry['title']}", is_heading=True),
        *(line for text in unwrapped(entry["summary"]).split("\n\n") for line in (Sentence(""), Sentence(text))),
        facts("", {**basics, **guide_texts(entry)}.items()),
    ]
    if entry["parameters"]:
        parts.append(facts("Parameters", [(one["name"], parameter_text(one)) for one in entry["parameters"]]))
    if entry["profile"] is not None:
        parts += _profile_parts(entry["profile"])
    if entry.get("readings"):
        parts += [Sentence("")] * isinstance(parts[-1], Sentence) + _runtime_parts(entry["readings"])
    return parts


def unwrapped(text: str) -> str:
    """Returns a docstring's paragraphs, lines joined and code marks left out, to be wrapped to another width."""
    return "\n\n".join(" ".join(paragraph.split()).replace("``", "") for paragraph in text.split("\n\n"))


def guide_texts(entry: Mapping[str, Any]) -> dict[str, str]:
    """Returns the texts of a method's guide under their titles; none where it has no guide or says nothing."""
    guide = entry["guide"] or {}
    return {title: guide[name] for name, title in GUIDE_TITLES.items() if guide.get(name)}


def parameter_text(parameter: Mapping[str, Any]) -> str:
    """Returns what a parameter means, its default with unit, and what is allowed."""
    if parameter["required"]:
        default = "required"
    else:
        unit = "" if parameter["unit"] in (None, "1") or parameter["default"] is None else f" {parameter['unit']}"
        default = f"default {_default(parameter['default'])}{unit}"
    allowed = f", {parameter['allowed']}" if parameter["allowed"] else ""
    return f"{parameter['help']} ({default}{allowed})"


def profile_heading(profile: Mapping[str, Any]) -> str:
    """Returns what a profile is of."""
    geometry = profile["geometry"]
    follows = f", for {profile['seq_len']} tokens" if profile["seq_len"] is not None else ""
    return (
        f"{profile['method']}{follows}, where rotary_dim is {geometry['rotary_dim']}, rope_theta {geometry['rope_theta']:g} "
        f"and the trained length L {geometry['original_max_position_embeddings']}"
    )


def profile_summary(profile: Mapping[str, Any]) -> str:
    """Returns how far the method computes, and its attention factor."""
    reach = "at any length" if profile["reach"] is None else f"up to {profile['reach']} tokens"
    return f"Rotations seen in training {reach}; attention factor {profile['attention_factor']:.4f}."


def profile_bars(profile: Mapping[str, Any]) -> list[str]:
    """Returns a bar for each shown pair, its length the logarithm of the divisor."""
    found = [pair["divisor"] for pair in profile["pairs"]]
    longest = math.log(max(profile["factor"], *(divisor for divisor in found if divisor is not None)))
    return [
        "#" * BAR_WIDTH if divisor is None else "#" * round(BAR_WIDTH * math.log(divisor) / longest)
        for divisor in found
    ]


def _profile_parts(profile: Mapping[str, Any]) -> list[Part]:
    rows = []
    for pair, bar in zip(profile["pairs"], profile_bars(profile), strict=True):
        divisor = "stopped" if pair["divisor"] is None else f"{pair['divisor']:.3f}"
        numbers = cells((f"{pair['wavelength']:.1f}", f"{pair['turns']:.2f}", divisor))
        rows.append(Row(f"{pair['pair']:>{len('pair')}}", [*numbers, Cell(bar)]))
    heads = [*columns(("wavelength", "turns in L", "divisor")), Column("slowed by", is_drawing=True)]
    return [
        Sentence("By how much each pair is slowed", is_heading=True),
        Sentence(profile_heading(profile)),
        Sheet("", "pair", heads, rows),
        Sentence(profile_summary(profile)),
    ]


def _runtime_parts(readings: Sequence[Mapping[str, Any]]) -> list[Part]:
    heading = Sentence("In other programs, as patch writes it", is_heading=True)
    return [heading, *map(Sentence, runtime_lines(readings))]


def runtime_lines(readings: Sequence[Mapping[str, Any]]) -> list[str]:
    """Returns which versions of which runtimes compute what was meant, and what the others do."""
    right = [(reading["runtime"], reading["version"]) for reading in readings if reading["ok"]]
    lines = [f"As meant: {version_names(right)}."] if right else []
    return [*lines, *(line.text for line in red_lines(readings))]


def _default(value: Any) -> str:
    return "none" if value is None else str(value).lower() if isinstance(value, bool) else f"{value:g}"
