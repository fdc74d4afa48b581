"""Scaling methods for people: a list of all, and all about one, at any width without losing a letter."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from ropectl.report.runtimes import red_lines, version_names

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

#: The longest word of the list, which is never broken.
WORD_WIDTH = 13

Part = Text | Table


def methods_list(entries: Sequence[Mapping[str, Any]]) -> list[Part]:
    """Returns one row per method, and where to read on."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))  # fits 60 columns
    table.add_column("method", no_wrap=True)
    table.add_column("what it is", min_width=WORD_WIDTH)
    table.add_column("parameters", no_wrap=True)
    table.add_column("stock type", min_width=WORD_WIDTH)
    for entry in entries:
        names = [parameter["name"] + "*" * parameter["required"] for parameter in entry["parameters"]]
        table.add_row(entry["name"], entry["title"], "\n".join(names), entry["native"])
    return [
        table,
        Text("* required; a factor also by --factor S or --target-length N"),
        Text("One in full: ropectl methods NAME. Which for a model: ropectl methods --choose --target-length N MODEL"),
    ]


def method_page(entry: Mapping[str, Any]) -> list[Part]:
    """Returns everything about one method."""
    follows = "they follow the length of the sequence" if entry["depends_on_seq_len"] else "the same at every length"
    facts = {
        "Formula": entry["formula"],
        "Frequencies": follows,
        "Stock type": entry["native"],
        "Reference": entry["reference"],
    }
    parts: list[Part] = [
        Text(f"{entry['name']}: {entry['title']}", style="bold"),
        Text(f"\n{unwrapped(entry['summary'])}\n"),
        definitions({**facts, **guide_texts(entry)}),
    ]
    if entry["parameters"]:
        texts = {parameter["name"]: parameter_text(parameter) for parameter in entry["parameters"]}
        parts += [Text("\nParameters\n", style="bold"), definitions(texts)]
    if entry["profile"] is not None:
        parts += _profile_parts(entry["profile"])
    if entry.get("readings"):
        parts += _runtime_parts(entry["readings"])
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


def definitions(texts: Mapping[str, str]) -> Table:
    """Returns names with texts beside them, which wrap at words."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for name, text in texts.items():
        grid.add_row(Text(name, style="cyan"), Text(text))
    return grid


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
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("pair", "wavelength", "turns in L", "divisor"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("slowed by", no_wrap=True, min_width=BAR_WIDTH)
    for pair, bar in zip(profile["pairs"], profile_bars(profile), strict=True):
        divisor = "stopped" if pair["divisor"] is None else f"{pair['divisor']:.3f}"
        table.add_row(str(pair["pair"]), f"{pair['wavelength']:.1f}", f"{pair['turns']:.2f}", divisor, bar)
    return [
        Text("\nBy how much each pair is slowed", style="bold"),
        Text(profile_heading(profile)),
        table,
        Text(profile_summary(profile)),
    ]


def _runtime_parts(readings: Sequence[Mapping[str, Any]]) -> list[Part]:
    return [Text("\nIn other programs, as patch writes it", style="bold"), *map(Text, runtime_lines(readings))]


def runtime_lines(readings: Sequence[Mapping[str, Any]]) -> list[str]:
    """Returns which versions of which runtimes compute what was meant, and what the others do."""
    right = [(reading["runtime"], reading["version"]) for reading in readings if reading["ok"]]
    lines = [f"As meant: {version_names(right)}."] if right else []
    return [*lines, *(text.plain for text in red_lines(readings))]


def _default(value: Any) -> str:
    return "none" if value is None else str(value).lower() if isinstance(value, bool) else f"{value:g}"
