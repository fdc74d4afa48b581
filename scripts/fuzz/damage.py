"""Kind 6: damaged files of models, settings and records."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

from fuzz.case import Case, Step, changed_json, file, json_file, removed
from fuzz.options import takes
from fuzz.templates import TEMPLATES, Template, reading, template

DEEP = 100_000

#: What is no JSON object.
DAMAGE: dict[str, str | bytes] = {
    "nested 100,000 lists deep": "[" * DEEP + "]" * DEEP,
    "nested 100,000 objects deep": '{"a":' * DEEP + "1" + "}" * DEEP,
    "an object nested 100,000 deep inside": '{"a": ' + "[" * DEEP + "]" * DEEP + "}",
    "a list": "[]",
    "a list of an object": "[{}]",
    "a number": "5",
    "a text": '"text"',
    "null": "null",
    "cut off": '{"model_type": "llama", "hidd',
    "empty": "",
    "blank": " \n ",
    "not UTF-8": b'{"model_type": "\xff\xfe"}',
    "UTF-16": '{"model_type": "llama"}'.encode("utf-16"),
    "with a BOM": b"\xef\xbb\xbf{}",
    "a null byte": b"\x00",
    "a number of 5,000 digits": '{"vocab_size": ' + "9" * 5000 + "}",
    "an object of nothing": "{}",
    "text after its end": "{} {}",
}


def cases() -> Iterator[Case]:
    """Yields the cases of this kind."""
    for each in TEMPLATES:
        yield from _files(each)
        for option in ("--config", "--finetune"):
            if takes(each.command, option):
                yield from _settings(each, option)
    for each in reading("tokenizer"):
        yield from _tokenizers(each)
    yield from _figures()
    yield from _records()
    yield from _lists()
    yield from _gguf_files()


def _damaged(path: str) -> Iterator[tuple[str, Step]]:
    for wrong, content in DAMAGE.items():
        yield wrong, file(path, content, f"{path} is {wrong}")


def _files(each: Template) -> Iterator[Case]:
    """Yields damaged files of a model."""
    if "config" not in each.reads:
        return
    for name in ("config.json", "ropectl.json"):
        for wrong, step in _damaged(f"model/{name}"):
            yield each.case(6, f"{name} is {wrong}", step, mentions=(name.removesuffix(".json"),))
    for wrong, step in _damaged("model/adapter_config.json"):
        yield each.case(6, f"adapter_config.json is {wrong}", removed("model/config.json"), step)
    base = {"base_model_name_or_path": "./model"}
    for name, value in (
        ("its own base", base),
        ("a base that is no text", {"base_model_name_or_path": 5}),
        ("an empty base", {"base_model_name_or_path": ""}),
        ("a base that is missing", {"base_model_name_or_path": "./missing"}),
        ("a base of nobody", {"base_model_name_or_path": "~nobody-such-user/x"}),
    ):
        step = json_file("model/adapter_config.json", value)
        yield each.case(6, f"an adapter with {name}", removed("model/config.json"), step)


def _tokenizers(each: Template) -> Iterator[Case]:
    """Yields tokenizers that are none, or another model's."""
    for wrong, step in _damaged("model/tokenizer.json"):
        yield each.case(6, f"tokenizer.json is {wrong}", step)
    for wrong, step in _damaged("model/tokenizer_config.json"):
        if wrong != "an object of nothing":
            yield each.case(6, f"tokenizer_config.json is {wrong}", step)
    yield each.case(6, "no tokenizer", removed("model/tokenizer.json"), removed("model/tokenizer_config.json"))

    def larger(content: dict[str, Any]) -> None:
        vocabulary = content["model"]["vocab"]
        vocabulary.update({word: 1024 + number for number, word in enumerate(("Ġsays", "Ġnothing", "Ġshort"))})
        content["added_tokens"] += [
            {**content["added_tokens"][0], "id": 1030 + n, "content": f" {w}"} for n, w in enumerate(("text", "small"))
        ]

    step = changed_json("model/tokenizer.json", larger, "more words than the model knows")
    yield each.case(6, "a tokenizer with more words than the model knows", step)
    for name, value in (
        ("Nonsense", {"type": "Nonsense"}),
        ("null", None),
        ("5", 5),
        ("WordLevel", {"type": "WordLevel", "vocab": {}, "unk_token": "x"}),
    ):
        step = changed_json("model/tokenizer.json", lambda content, v=value: content.update(model=v), f"model={name}")
        yield each.case(6, f"tokenizer.json with the model {name}", step)
    step = json_file("model/tokenizer_config.json", {"tokenizer_class": 5})
    yield each.case(6, "tokenizer_config.json with a class that is a number", step)


def _settings(each: Template, option: str) -> Iterator[Case]:
    """Yields settings files that are none."""
    for wrong, content in (
        *(
            (wrong, content)
            for wrong, content in DAMAGE.items()
            if wrong not in ("empty", "blank", "null", "an object of nothing", "with a BOM")
        ),
        (
            "aliases that multiply",
            "a: &a [x, x, x, x, x, x, x, x, x]\n"
            + "".join(f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join(['*' + chr(97 + n)] * 9)}]\n" for n in range(9)),
        ),
        ("a setting that is not there", "no_such_setting: 1\n"),
        ("a setting twice", "dtype: float32\ndtype: float16\n"),
        ("a command", "!!python/object/apply:os.system ['echo x']\n"),
        ("a key that is a list", "? [1, 2]\n: 3\n"),
        ("a key that is a number", "5: 3\n"),
        ("a null byte", "dtype: \x00\n"),
        ("two documents", "dtype: float32\n---\ndtype: float32\n"),
        ("a mapping where a text belongs", "revision: {a: 1}\n"),
        ("a list where a text belongs", "revision: [a, b]\n"),
        ("a date", "revision: 2020-01-01\n"),
        ("a length of NaN", "original_length: .nan\n"),
        ("a length of infinity", "original_length: .inf\n"),
        ("a length of 400 digits", f"original_length: 1{'0' * 400}\n"),
        ("a length of 30 digits", f"original_length: 1{'0' * 29}\n"),
        ("a length in base 60", "original_length: 1:30\n"),
        ("an octal length", "original_length: 0777\n"),
        ("a length that is true", "original_length: yes\n"),
        ("a length that is a list", "original_length: [64]\n"),
        ("a broken length", "original_length: 64.5\n"),
        ("a length of another script", "original_length: \u0663\u0664\n"),
    ):
        step = file("c.yaml", content, f"c.yaml is {wrong}")
        yield each.case(6, f"{option} holds {wrong}", step, more=(option, "c.yaml"))


def _figures() -> Iterator[Case]:
    """Yields figures that cannot be written."""
    each = template("inspect")
    for name in ("", "x.bmp", "x", ".svg", "x.svg.exe", "x.jpg", "x.", "model", "x.svg/", "x.SVGZ"):
        yield each.case(6, f"--plot {name!r}", more=("--plot", name))
        yield each.case(6, f"--plot {name!r} of a self-test", more=("--self-test", "--plot", name))


def _records() -> Iterator[Case]:
    """Yields damaged records."""
    each = template("report")
    for wrong, step in _damaged("record.json"):
        yield each.case(6, f"the record is {wrong}", step)
    for name in ("comparison.json", "plan.json", "run.json", "ropectl.json"):
        for wrong, content in DAMAGE.items():
            step = file(f"run/{name}", content, f"run/{name} is {wrong}")
            yield each.case(6, f"{name} in a run folder is {wrong}", step, swap={"record.json": "run"})
    for key, value in (
        ("schema_version", 99),
        ("schema_version", "1"),
        ("geometry", None),
        ("geometry", {"rotary_dim": -1}),
        ("model", 5),
        ("method", None),
        ("inv_freq", "x"),
    ):
        step = changed_json("record.json", lambda record, k=key, v=value: record.update({k: v}), f"{key}={value!r}")
        yield each.case(6, f"a record whose {key} is {value!r}", step)
    for name in ("missing.json", "text.txt", "python", ".", "missing/", "record.json/x"):
        yield each.case(6, f"the record {name}", swap={"record.json": name})


def _lists() -> Iterator[Case]:
    """Yields files of divisors that hold none."""
    for name in ("inspect", "eval-passkey", "patch"):
        each = template(name).without_method()
        more = ("--method", "longrope:factor=4,long_factor=@list.json")
        for wrong, step in _damaged("list.json"):
            yield each.case(6, f"a list of divisors is {wrong}", step, more=more)
        for value in (
            [1.0],
            [0.0] * 8,
            [-1.0] * 8,
            ["x"] * 8,
            [None] * 8,
            [[1.0]] * 8,
            [float("nan")] * 8,
            [10**400] * 8,
        ):
            step = json_file("list.json", value)
            yield each.case(6, f"a list of divisors is {value!r:.20}", step, more=more)


def _gguf_files() -> Iterator[Case]:
    """Yields damaged GGUF files."""
    count = struct.Struct("<Q")
    text = count.pack(20) + b"general.architecture"
    for wrong, content in (
        ("empty", b""),
        ("a magic alone", b"GGUF"),
        ("no GGUF", b"x" * 1000),
        ("of version 99", b"GGUF" + struct.pack("<IQQ", 99, 0, 0)),
        ("without keys", b"GGUF" + struct.pack("<IQQ", 3, 0, 0)),
        ("said to have 2**60 keys", b"GGUF" + struct.pack("<IQQ", 3, 0, 2**60)),
        ("said to have 2**60 tensors", b"GGUF" + struct.pack("<IQQ", 3, 2**60, 0)),
        ("cut off in a key", b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text[:15]),
        ("said to have a key of 2**60 bytes", b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + count.pack(2**60) + b"x"),
        ("of a value of type 99", b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text + struct.pack("<I", 99)),
        ("of a list of 2**60", b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text + struct.pack("<IIQ", 9, 8, 2**60)),
        ("of an unknown architecture", b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text + struct.pack("<IQ", 8, 1) + b"x"),
        ("of an architecture that is no text", b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text + b"\xff\xff\xff\xff" * 3),
        (
            "of lists in lists",
            b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text + struct.pack("<I", 9) + struct.pack("<IQ", 9, 1) * 5000,
        ),
    ):
        step = file("m.gguf", content, f"m.gguf is {wrong}")
        for each in reading("config"):
            yield each.case(6, f"a GGUF file is {wrong}", step, swap={"./model": "m.gguf"})
        patch = template("patch")
        yield patch.case(6, f"--gguf-patch is {wrong}", step, swap={"./model": "--gguf-patch=m.gguf", "out": "o.gguf"})
