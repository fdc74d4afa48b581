"""Kind 4: pipes, devices, sockets, links and sparse files where ordinary files belong."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from fuzz.case import Case, Step, device, directory, link, listening, pipe, removed, sparse, unreadable
from fuzz.options import Given, options_of
from fuzz.templates import Template, reading, template
from fuzz.weights import INDEX, in_a_shard

LONG_NAME = "n" * 300
LONG_PATH = "/".join(["p" * 200] * 25)
NOBODY = "~nobody-such-user/x"

SPARSE = "sparse"

#: What can stand in a place, by what it is.
SPECIAL: dict[str, Callable[[str], tuple[Step, ...]]] = {
    "a named pipe": lambda path: (pipe(path),),
    "a socket": lambda path: (listening(path),),
    "the device zero": lambda path: (device(path, "zero"),),
    "the device null": lambda path: (device(path, "null"),),
    "the device full": lambda path: (device(path, "full"),),
    "a link to itself": lambda path: (link(path, path.rpartition("/")[2]),),
    "a link to nothing": lambda path: (link(path, "nowhere"),),
    "a link to a device": lambda path: (device("device", "zero"), link(path, _up(path) + "device")),
    "a link to a pipe": lambda path: (pipe("pipe"), link(path, _up(path) + "pipe")),
    "a folder": lambda path: (directory(path),),
    SPARSE: lambda path: (sparse(path),),
}

#: Names that no file can have, or that nobody's home gives.
_NAMES = {"a name of 300 characters": LONG_NAME, "a path of 5000 characters": LONG_PATH, "no such user": NOBODY}


def cases() -> Iterator[Case]:
    """Yields the cases of this kind: what is read, then what is written."""
    yield from _models()
    for each in reading("text"):
        yield from _read(each, "text.txt", "text.txt")
        yield from _names(each, "text.txt")
        for suffix in ("jsonl", "parquet", "arrow"):
            for wrong, make in SPECIAL.items():
                path = f"special.{suffix}"
                yield each.case(4, f"a text that is {wrong}, .{suffix}", *make(path), swap={"text.txt": path})
    yield from _read(template("report"), "record.json", "record.json")
    yield from _names(template("report"), "record.json")
    for name in ("inspect", "eval-perplexity", "patch"):
        for wrong, make in SPECIAL.items():
            spec = ("--method", "longrope:factor=4,long_factor=@list.json")
            yield (
                template(name)
                .without_method()
                .case(4, f"a list of divisors that is {wrong}", *make("list.json"), more=spec)
            )
    for each in (*reading("config"), template("report")):
        for option in options_of(each.command):
            yield from _input(each, option)
            yield from _output(each, option)


def _up(path: str) -> str:
    return "../" * path.count("/")


def _read(each: Template, path: str, word: str) -> Iterator[Case]:
    for wrong, make in SPECIAL.items():
        yield each.case(4, f"{word} is {wrong}", *make(path))
    if os.geteuid():
        yield each.case(4, f"{word} is unreadable", unreadable(path))


def _names(each: Template, word: str) -> Iterator[Case]:
    for wrong, name in _NAMES.items():
        yield each.case(4, f"in place of {word}: {wrong}", swap={word: name})


def _models() -> Iterator[Case]:
    """Yields special models, and special files in their folders."""
    for each in reading("config"):
        yield from _read(each, "model", "./model")
        yield from _names(each, "./model")
        for wrong in ("a named pipe", "the device zero", SPARSE, "a folder", "a link to nothing"):
            yield each.case(4, f"a .gguf file that is {wrong}", *SPECIAL[wrong]("m.gguf"), swap={"./model": "m.gguf"})
        files = ["config.json", "ropectl.json"]
        if "weights" in each.reads:
            files.append("model.safetensors")
            for wrong, make in SPECIAL.items():
                yield each.case(4, f"the index is {wrong}", in_a_shard(), *make(INDEX))
        if "tokenizer" in each.reads:
            files += ["tokenizer.json", "tokenizer_config.json"]
        for name in files:
            yield from _read(each, f"model/{name}", name)
        for wrong in ("a named pipe", "the device zero", SPARSE, "a link to itself", "a folder"):
            steps = (removed("model/config.json"), *SPECIAL[wrong]("model/adapter_config.json"))
            yield each.case(4, f"adapter_config.json is {wrong}", *steps)


#: Options that name a file to read, and what else has to be given for them to be looked at.
_READ_BY = {
    "--config": (),
    "--finetune": (),
    "--eval-text": ("--eval-every", "1"),
    "--key-model": ("--protocol", "key-tokens"),
    "--python": (),
    "--gguf-patch": (),
}


def _input(each: Template, option: Given) -> Iterator[Case]:
    """Yields special files for the options that name a file to read."""
    if option.flag not in _READ_BY:
        return
    path, swap, more = "special.yaml", {}, (option.flag, "special.yaml", *_READ_BY[option.flag])
    if option.flag == "--gguf-patch":
        path, swap, more = "special.gguf", {"./model": "--gguf-patch=special.gguf", "out": "o.gguf"}, ()
    elif option.flag in each.args:
        swap, more = {each.args[each.args.index(option.flag) + 1]: path}, ()
    for wrong, make in SPECIAL.items():
        yield each.case(4, f"{option.flag} is {wrong}", *make(path), swap=swap, more=more)
    for wrong, name in _NAMES.items():
        renamed = {word: value.replace(path, name) for word, value in swap.items()}
        said = tuple(word.replace(path, name) for word in more)
        yield each.case(4, f"{option.flag}: {wrong}", swap=renamed, more=said)


def _output(each: Template, option: Given) -> Iterator[Case]:
    """Yields special places for the options that name what is written."""
    if option.name not in ("out", "plot", "figures") or "--dry-run" in each.args:
        return
    suffix = {"plot": ".svg", "out": ".html" if each.command == "report" else ".json"}.get(option.name, "")
    is_folder = each.command in ("compare-methods", "patch", "finetune") or option.name == "figures"
    path = "special" if is_folder else f"special{suffix}"
    more = ("--overwrite",) if option.name == "out" and each.command != "compare-methods" else ()
    given = next((each.args[each.args.index(word) + 1] for word in option.spellings if word in each.args), None)

    def placed(wrong: str, name: str, *steps: Step, more: tuple[str, ...] = ()) -> Case:
        if given is not None:
            return each.case(4, f"{option.flag} is {wrong}", *steps, swap={given: name}, more=more)
        return each.case(4, f"{option.flag} is {wrong}", *steps, more=(option.flag, name, *more))

    for wrong, make in SPECIAL.items():
        if wrong == SPARSE or (wrong == "a folder" and is_folder):
            continue
        yield placed(wrong, path, *make(path))
        if more:
            yield placed(f"{wrong}, to be replaced", path, *make(path), more=more)
    for wrong, name in _NAMES.items():
        yield placed(wrong, name + suffix)
    yield placed("below a file", f"text.txt/x{suffix}")
    yield placed("below a pipe", f"pipe/x{suffix}", pipe("pipe"))
    yield placed("below a link to itself", f"loop/x{suffix}", link("loop", "loop"))
    yield placed("below a link to nothing", f"gone/x{suffix}", link("gone", "nowhere"))
