"""Kind 6 too: texts to measure on and to train on that hold none."""

from __future__ import annotations

from collections.abc import Iterator

from fuzz.case import Case, Expected, file, json_file
from fuzz.damage import DAMAGE
from fuzz.templates import Template, reading


def cases() -> Iterator[Case]:
    """Yields the cases of this kind that are about texts."""
    for each in reading("text"):
        yield from _texts(each)


def _texts(each: Template) -> Iterator[Case]:
    """Yields texts that hold none."""
    for wrong, content in (
        ("empty", b""),
        ("blank", b" \n\n "),
        ("not UTF-8", b"\xff\xfe\x00" * 1000),
        ("null bytes", bytes(5000)),
        ("one word", b"word"),
    ):
        if wrong == "one word" and each.command == "eval-tasks":  # whose prompts repeat it
            yield each.case(6, "the text is one word", file("text.txt", content), expected=Expected.told)
        elif wrong != "null bytes":
            yield each.case(6, f"the text is {wrong}", file("text.txt", content))
    for wrong, content in DAMAGE.items():
        step = file("x.jsonl", content, f"x.jsonl is {wrong}")
        yield each.case(6, f"a line of JSON is {wrong}", step, swap={"text.txt": "x.jsonl"})
    for value in (5, None, [], {}, "", [["a"]], True):
        step = json_file("x.jsonl", {"text": value})
        yield each.case(6, f"a line of JSON with the text {value!r}", step, swap={"text.txt": "x.jsonl"})
    for value in ("a", [-1] * 400, [10**9] * 400, [10**30] * 400, [1.5] * 400, [], ["1"] * 400, [True] * 400):
        step = json_file("x.jsonl", {"input_ids": value})
        yield each.case(6, f"a line of JSON with the tokens {value!r:.20}", step, swap={"text.txt": "x.jsonl"})
    for suffix in ("parquet", "arrow"):
        for name, content in (("empty", b""), ("text", b"text"), ("zeros", bytes(4096)), ("PAR1", b"PAR1" * 9)):
            step = file(f"x.{suffix}", content)
            yield each.case(6, f"a .{suffix} file that is {name}", step, swap={"text.txt": f"x.{suffix}"})
    for name in (
        "x.jsonl#",
        "x.jsonl#nothing",
        "**",
        "[",
        "*.none",
        "http://localhost:1/x",
        "hf:",
        "builtin:none",
        "text.txt#x",
    ):
        steps = (json_file("x.jsonl", {"text": "a"}),)
        if name not in ("**", "x.jsonl#"):
            yield each.case(6, f"the text {name}", *steps, swap={"text.txt": name})
