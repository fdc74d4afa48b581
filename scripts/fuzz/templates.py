"""Invocations that are accepted: each bad one is one of these with a single fault in it."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from fuzz.case import Case, Expected, Step

#: A trained length that is long enough for a passkey prompt [tokens].
TRAINED = 128

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": 1024,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": TRAINED,
    "rope_theta": 10_000.0,
    "rms_norm_eps": 1e-6,
    "hidden_act": "silu",
    "tie_word_embeddings": True,
    "bos_token_id": 0,
    "dtype": "float32",
}

_WORDS = "A short text that says nothing much, so that a small model has something to read. "

#: Stands in for the Python of a runtime: it answers with as many numbers as it is asked for.
_RUNTIME = """#!/bin/sh
exec {python} -S -c 'import json, sys
task = json.load(open(sys.argv[3]))
print(json.dumps(dict(version="0", logprobs=[-6.93] * len(task["positions"]))))' "$@"
"""


@dataclass(frozen=True)
class Template:
    """An invocation that is accepted.

    Attributes:
        command: The command.
        args: What follows it.
        reads: What it reads, of ``config``, ``weights``, ``tokenizer``, ``text`` and ``record``.
        codes: Exit codes of success.
    """

    command: str
    args: tuple[str, ...]
    reads: frozenset[str]
    name: str = ""

    def case(
        self,
        kind: int,
        wrong: str,
        *steps: Step,
        more: tuple[str, ...] = (),
        swap: dict[str, str] | None = None,
        expected: Expected = Expected.refused,
        mentions: tuple[str, ...] = (),
    ) -> Case:
        """Returns a case of this invocation.

        Args:
            kind: Its kind.
            wrong: What is wrong with it.
            steps: Changes to the files.
            more: Further arguments.
            swap: Words of the invocation and what takes their place.
            expected: What has to come of it.
            mentions: Words that the message has to have.
        """
        args = tuple((swap or {}).get(word, word) for word in self.args)
        return Case(kind, self.command, (*args, *more), wrong, (BASE, *steps), expected, mentions)

    def without_method(self) -> Template:
        """Returns the invocation on the scaling that the model has; a comparison sets it aside instead."""
        if self.command == "compare-methods":
            return replace(self, args=(*self.args, "--replace"))
        if "-m" not in self.args:
            return self
        start = self.args.index("-m")
        return replace(self, args=(*self.args[:start], *self.args[start + 4 :]))  # -m NAME --factor S


def _of(command: str, args: str, reads: str, name: str = "") -> Template:
    return Template(command, tuple(args.split()), frozenset(reads.split()), name or command)


_TEXT = "--text text.txt"
TEMPLATES = (
    _of("methods", "--choose --target-length 512 ./model", "config"),
    _of("methods", "yarn", "", "methods NAME"),
    _of("inspect", "./model", "config"),
    _of("env", "", ""),
    _of(
        "compare-methods",
        f"./model -m pi --factor 2 {_TEXT} --length 128 --documents 1 --depths 1 --trials 1 -o run",
        "config weights tokenizer text",
    ),
    _of(
        "compare-methods",
        f"./model -m pi --factor 2 {_TEXT} --length 128 --documents 1 --depths 1 --trials 1 --dry-run",
        "config tokenizer",
        "compare-methods --dry-run",
    ),
    _of("eval-perplexity", f"./model {_TEXT} --length 64 --documents 1", "config weights tokenizer text"),
    _of("eval-passkey", "./model --length 128 --depths 1 --trials 1", "config weights tokenizer"),
    _of(
        "eval-tasks",
        f"./model --task needle {_TEXT} --length 256 --depths 1 --trials 1",
        "config weights tokenizer text",
    ),
    _of(
        "eval-tasks",
        f"./model --task needle {_TEXT} --length 256 --depths 1 --trials 1 --dry-run",
        "config tokenizer",
        "eval-tasks --dry-run",
    ),
    _of("harness", "./model --task hellaswag", "config"),
    _of(
        "verify-runtime",
        f"./model --runtime vllm --python ./python {_TEXT} --length 16",
        "config weights tokenizer text",
    ),
    _of("patch", "./model -m yarn --factor 4 -o out", "config weights"),
    _of("patch", "./model -m yarn --factor 4 -o out --dry-run", "config weights", "patch --dry-run"),
    _of(
        "finetune",
        f"./model -m pi --factor 2 {_TEXT} --seq-len 64 --steps 1 --batch-size 1 -o tuned",
        "config weights tokenizer text",
    ),
    _of(
        "finetune",
        f"./model -m pi --factor 2 {_TEXT} --seq-len 64 --steps 1 --batch-size 1 --dry-run",
        "config",
        "finetune --dry-run",
    ),
    _of("report", "record.json", "record"),
)


def template(name: str) -> Template:
    """Returns a template by its name."""
    return next(each for each in TEMPLATES if each.name == name)


def reading(*what: str) -> list[Template]:
    """Returns the templates that read all of this."""
    return [each for each in TEMPLATES if each.reads >= set(what)]


#: Where :func:`base_made` has put what :data:`BASE` copies.
_made: list[Path] = []


def _base(folder: Path) -> None:
    for path in _made[-1].iterdir():
        copy = shutil.copytree if path.is_dir() else shutil.copy
        copy(path, folder / path.name)


#: Makes the files that stand around every case.
BASE = Step("model, text.txt, record.json, python", _base)


@contextmanager
def base_made() -> Iterator[None]:
    """Makes model, text, record and the stand-in for a runtime's Python, which :data:`BASE` copies."""
    from ropectl.advise.api import inspect_model
    from ropectl.advise.requests import InspectSettings

    with tempfile.TemporaryDirectory(prefix="ropectl-fuzz-base-") as folder:
        place = Path(folder)
        make_model(place / "model")
        (place / "text.txt").write_text(_WORDS * 200)
        (place / "record.json").write_text(json.dumps(inspect_model(InspectSettings(model=str(place / "model")))[0]))
        (place / "python").write_text(_RUNTIME.format(python=sys.executable))
        (place / "python").chmod(0o755)
        _made.append(place)
        yield
        _made.remove(place)


def make_model(place: Path) -> None:
    """Saves a small random Llama with the tokenizer of the built-in model."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM
    from transformers.utils.logging import disable_progress_bar

    from ropectl.builtin import TINY_MODEL_DIR

    disable_progress_bar()
    torch.manual_seed(0)
    known = {key: value for key, value in CONFIG.items() if key not in ("rope_theta", "architectures", "model_type")}
    LlamaForCausalLM(LlamaConfig(**known, rope_theta=CONFIG["rope_theta"])).save_pretrained(place)
    (place / "config.json").write_text(json.dumps(CONFIG, indent=2))
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (place / name).write_bytes((TINY_MODEL_DIR / name).read_bytes())


def base_cases() -> list[Case]:
    """Returns the invocations as they are, which have to be accepted."""
    return [each.case(0, "nothing", expected=Expected.accepted) for each in TEMPLATES]
