"""Small models and texts that the tests share. Everything is seeded and offline."""

from __future__ import annotations

import gc
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # the models are small: threads only wait for each other
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ["COLUMNS"] = "80"
# As in a log. A bar that an error leaves open would be drawn anew by its library's thread, seconds later, in another test.
os.environ.setdefault("TQDM_DISABLE", "1")
os.environ.setdefault("ROPECTL_CACHE", tempfile.mkdtemp(prefix="ropectl-tests-"))

import pytest
from hypothesis import settings

from ropectl.builtin import TINY_MODEL_DIR
from ropectl.rope.geometry import RopeGeometry
from tests.processes import AFRESH, ROOT, as_script, run_python

if TYPE_CHECKING:  # imported where it is used: the process that only hands tests out to others needs none of it
    from transformers import LlamaConfig, LlamaForCausalLM

    from ropectl.data.tokens import DocumentSet

# The first example of a test may import a library, and the machine may have other work.
settings.register_profile("ropectl", deadline=None)
settings.load_profile("ropectl")

#: TINY's trained length; long enough for a passkey prompt.
TRAINED = 128
VOCABULARY = 1024


#: What Python tells its audit hooks when a process is about to start.
STARTS = ("subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system")
_started: list[str] = []


def _notice(event: str, arguments: tuple[Any, ...]) -> None:
    if event in STARTS and arguments[:1] != ("uname",):  # which Python's platform module asks for the processor
        _started.append(f"{event} {arguments[:2]}")


sys.addaudithook(_notice)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """``-m "not process"`` takes the place of ``-m "not slow"``, so it leaves out what is slow too."""
    for item in items:
        if item.get_closest_marker("slow"):
            item.add_marker("process")


@pytest.fixture(autouse=True)
def _processes_are_marked(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fails a test that starts a process and is not marked so: the inner loop would have it."""
    yield
    started = list(_started)
    _started.clear()
    if started and not request.node.get_closest_marker("process"):
        pytest.fail(f"It starts a process, so it needs @pytest.mark.process: {started[0]}", pytrace=False)


@pytest.fixture(autouse=True, scope="module")
def _libraries_are_frozen() -> None:
    """Spares every garbage collection to come what was imported until now: a training collects twice at its end."""
    gc.collect()
    gc.freeze()


def tiny_config(**changes: Any) -> LlamaConfig:
    """The random two-layer Llama of the tests; its vocabulary is that of the built-in tokenizer."""
    from transformers import LlamaConfig

    settings: dict[str, Any] = {
        "vocab_size": VOCABULARY,
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "max_position_embeddings": TRAINED,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10_000.0},
        "bos_token_id": 0,
        "eos_token_id": None,
    }
    return LlamaConfig(**{**settings, **changes})


def make_model(**changes: Any) -> LlamaForCausalLM:
    """A random model whose attention is sharp enough that positions matter."""
    import torch
    from transformers import LlamaForCausalLM

    torch.manual_seed(0)
    model = LlamaForCausalLM(tiny_config(**changes)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.mul_(6)
    return model


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """Models of this size spend their time waiting for threads."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def model() -> LlamaForCausalLM:
    """TINY, float32, CPU."""
    return make_model()


@pytest.fixture
def zero_model() -> LlamaForCausalLM:
    """ZERO: every prediction is uniform, so perplexity is the vocabulary size."""
    model = make_model(vocab_size=64, tie_word_embeddings=False)
    model.lm_head.weight.data.zero_()
    return model


@pytest.fixture
def geometry() -> RopeGeometry:
    """What TINY was made with."""
    return RopeGeometry(rotary_dim=16, rope_theta=10_000.0, original_max_position_embeddings=TRAINED)


@pytest.fixture(scope="session")
def tokenizer() -> Any:
    """The built-in model's tokenizer: byte-level, a BOS token, single digits."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(TINY_MODEL_DIR)


@pytest.fixture
def documents() -> DocumentSet:
    """Five random documents of 512 tokens that begin with BOS."""
    import torch

    from ropectl.data.tokens import DocumentSet, TokenizedDocument

    generator = torch.Generator().manual_seed(1)
    rows = torch.randint(1, VOCABULARY, (5, 512), generator=generator)
    rows[:, 0] = 0
    return DocumentSet([TokenizedDocument(f"d{i}", row.tolist()) for i, row in enumerate(rows)], 512, 5, 512, 0)


@pytest.fixture(scope="session")
def saved_tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """TINY with a tokenizer in a folder, to be copied."""
    from transformers import AutoTokenizer

    folder = tmp_path_factory.mktemp("tiny")
    make_model().save_pretrained(folder)
    AutoTokenizer.from_pretrained(TINY_MODEL_DIR).save_pretrained(folder)
    return folder


@pytest.fixture
def checkpoint(tmp_path: Path, saved_tiny: Path) -> Callable[..., Path]:
    """Saves TINY with a tokenizer and returns the folder; keyword arguments change its config.json."""

    def save(**config_changes: Any) -> Path:
        folder = shutil.copytree(saved_tiny, tmp_path / "checkpoint", dirs_exist_ok=True)
        path = folder / "config.json"
        config = json.loads(path.read_text()) | config_changes
        path.write_text(json.dumps({key: value for key, value in config.items() if value != "REMOVE"}))
        return folder

    return save


@pytest.fixture
def short_calibration(monkeypatch: pytest.MonkeyPatch) -> None:
    """Times the shortest passes once, where a test is about what a dry run says and not about its seconds."""
    monkeypatch.setattr("ropectl.evaluate.short_passes.BUDGET", 0.0)


@pytest.fixture
def ropectl(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Runs the command line in this process: (exit code, stdout, stderr)."""
    import signal

    from ropectl.cli.app import main

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["ropectl", *map(str, arguments)])
        handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        capsys.readouterr()
        try:
            main()
            code = 0
        except SystemExit as stop:
            code = int(stop.code or 0)
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture
def warm_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    """What ropectl runs with this Python (code that reads a checkpoint anew, a runtime's script) starts warm.

    That a fresh interpreter does the same is for the tests that do without this.
    """
    fresh = subprocess.run

    def run(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        if command[0] != sys.executable or not (command[1] == "-c" or command[1].endswith(".py")):
            return fresh(command, **options)
        code, arguments = (command[2], command[3:]) if command[1] == "-c" else (as_script(command[1]), command[2:])
        return run_python(["-c", AFRESH + code, *arguments], cwd=Path(options.get("cwd") or ROOT))

    monkeypatch.setattr(subprocess, "run", run)
