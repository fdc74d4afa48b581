"""Texts and numbers as LaTeX sets them: nothing in them is markup, signs are signs, and every character has a font."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from unicodedata import normalize

_SPECIAL = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}",
    ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\symbol{34}", "`": r"\textasciigrave{}", "[": "{[}", "]": "{]}",
    "*": "{*}", **{character: f"\\{character}" for character in "#$%&_{}"},
    "\u00a0": "~", "\u00b1": r"$\pm$", "\u00b7": r"$\cdot$", "\u00d7": r"$\times$", "\u2026": r"\ldots{}",
    "\u2032": "$'$", "\u2212": "$-$", "\u2248": r"$\approx$", "\u2264": r"$\leq$", "\u2265": r"$\geq$", "\u221e": r"$\infty$",
}  # fmt: skip

#: Between two characters that fonts would draw as another one.
_LIGATURE = re.compile(r"(?<=-)(?=-)|(?<=')(?=')|(?<=,)(?=,)")

#: Letters and punctuation beyond ASCII for which the fonts of pdfLaTeX (T1) have a place: Latin-1 and Latin Extended-A.
_SET = (
    {chr(code) for code in range(0xA1, 0x17F)}
    - set("\u00a4\u00a8\u00ad\u00af\u00b4\u00b8\u0126\u0127\u0138\u013f\u0140\u0149\u0166\u0167")
    | set("\u2010\u2011\u2013\u2014\u2018\u2019\u201a\u201c\u201d\u201e\u2022\u20ac\u2122")
)  # fmt: skip

#: The command for others, what defines it, and how many of them are named.
OTHERS = r"\ropectlchars"
_MOST_NUMBERS = 8
DEFINITION = (
    "% Of some characters below pdfLaTeX has no font, and shows their numbers; LuaLaTeX and XeLaTeX show them.\n"
    rf"\ifdefined\Umathchar\DeclareRobustCommand{{{OTHERS}}}[2]{{#1}}"
    rf"\else\DeclareRobustCommand{{{OTHERS}}}[2]{{\texttt{{#2}}}}\fi"
)

#: A hyphen or plus before a number is a sign, a hyphen between two numbers stands for "to".
_SIGN = re.compile(r"(?<![\w.)\]}+-])[-+](?=\.?\d)")

#: Words that do not fit everywhere, and where they may be broken: not in numbers.
_LONG_WORD, _INSIDE = re.compile(r"\S{20,}"), re.compile(r"(?<=[,:;/=])(?=[^\s\d])|(?<=\\_)(?=\S)")

#: A number with a power of ten.
_POWER = re.compile(r"([-+]?\d(?:\.\d+)?)e([-+]?)0*(\d+)")

#: A number whose decimal point can be aligned with others'.
_DECIMAL = re.compile(r"[-+]?[\d,]*\d(?:\.(?P<fraction>\d+))?%?")


def latex_escape(text: str) -> str:
    """Returns a text that LaTeX sets as it is written."""
    runs = groupby(normalize("NFC", text), key=_is_set)
    escaped = "".join("".join(map(_escaped, run)) if is_set else _others("".join(run)) for is_set, run in runs)
    return _LIGATURE.sub("{}", escaped)


def sentence_text(text: str) -> str:
    """Returns a sentence, with the signs of numbers in it, and broken wherever specs and paths may be."""
    dash, rest = ("--", text[1:]) if text.startswith("- ") else ("", text)  # the mark of "none", as in the table
    return dash + breakable(_signed(rest))


def listed_text(text: str) -> str:
    """Returns a sentence for a list that is set before this file is read, and knows no command of it."""
    return re.sub(rf"\{OTHERS}{{[^}}]*}}{{([^}}]*)}}", r"\\texttt{\1}", sentence_text(text))


def number_text(text: str) -> str:
    """Returns the entry of a table: numbers with their signs and powers of ten, a dash, or words."""
    return "--" if text == "-" else " ".join(map(_with_power, text.split(" ")))


def _with_power(word: str) -> str:
    found = _POWER.fullmatch(word)
    return f"${found[1]}\\times10^{{{found[2].lstrip('+')}{found[3]}}}$" if found else _signed(word)


def padding(texts: Sequence[str]) -> list[str]:
    """Returns what to put behind each number of a column that is aligned at the right, so that decimal points are aligned.

    Other entries stay where they are.
    """
    found = [_DECIMAL.fullmatch(text) for text in texts]
    lengths = [len(each["fraction"] or "") for each in found if each]
    if len(set(lengths)) < 2:
        return [""] * len(texts)
    most = max(lengths)
    return ["" if each is None else _phantom(len(each["fraction"] or ""), most) for each in found]


def breakable(text: str) -> str:
    """Returns an escaped text in which long words, such as specs and paths, may be broken after their punctuation."""
    return _LONG_WORD.sub(lambda word: _INSIDE.sub(r"\\allowbreak{}", word[0]), text)


def _phantom(digits: int, most: int) -> str:
    return f"\\phantom{{{'' if digits else '.'}{'0' * (most - digits)}}}" if digits < most else ""


def _signed(text: str) -> str:
    parts, last = [], 0
    for found in _SIGN.finditer(text):
        parts += [latex_escape(text[last : found.start()]), f"${found[0]}$"]
        last = found.end()
    return "".join([*parts, latex_escape(text[last:])])


def _is_set(character: str) -> bool:
    return " " <= character <= "~" or character in _SPECIAL or character in _SET


def _escaped(character: str) -> str:
    return _SPECIAL.get(character, character)


def _others(characters: str) -> str:
    """Returns characters that only some programs can set, and for the others their numbers."""
    numbers = " ".join(f"U+{ord(character):04X}" for character in characters[:_MOST_NUMBERS])
    more = len(characters) - _MOST_NUMBERS
    return f"{OTHERS}{{{characters}}}{{{numbers}{f' and {more} more' if more > 0 else ''}}}"
