"""Python processes that start warm: each is forked where torch, transformers and ropectl have been imported already.

A fresh interpreter needs seconds for these imports, and the tests start more than a hundred processes. What such a process
does, ends with and prints is its own; what happens before the first line of a program (which modules ``ropectl --help``
imports, the hash seed) needs a fresh interpreter instead.
"""

from __future__ import annotations

import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from multiprocessing import forkserver
from pathlib import Path

ROOT = Path(__file__).parents[1]

#: Code that a process runs first to find ropectl and the tests as a fresh one would, with the libraries still imported.
AFRESH = """import os, sys
for name in [name for name in sys.modules if name.partition(".")[0] in ("ropectl", "tests", "scripts")]:
    del sys.modules[name]
sys.path[:0] = os.environ.get("PYTHONPATH", "").split(os.pathsep)
"""


def as_script(path: str) -> str:
    """The code that runs a file as ``python FILE`` does."""
    folder = str(Path(path).parent)
    return f"import runpy, sys; sys.path.insert(0, {folder!r}); runpy.run_path({path!r}, run_name='__main__')"


class Running:
    """A process that has been started: like ``subprocess.Popen``, with what it prints in two files.

    Args:
        arguments: What follows ``python``: ``-m`` and a module, ``-c`` and code, or a script; then its arguments.
        env: More environment variables.
        cwd: Working directory.
        log: Where both outputs go; None for two files that :meth:`communicate` reads.
    """

    def __init__(
        self,
        arguments: Sequence[str | Path],
        env: Mapping[str, str] | None = None,
        cwd: Path = ROOT,
        log: Path | None = None,
    ) -> None:
        self.args = [str(argument) for argument in arguments]
        self._outputs = (log, log) if log else tuple(Path(tempfile.mkstemp(prefix="ropectl-")[1]) for _ in range(2))
        sys.audit("subprocess.Popen", "python", self.args, str(cwd), env)  # for who looks after processes: conftest.py
        whole = {**os.environ, "OMP_NUM_THREADS": "1", **(env or {})}
        self._process = _context().Process(target=_become, args=(self.args, whole, str(cwd), *map(str, self._outputs)))
        self._process.daemon = True  # pytest does not wait for one that a failed test leaves behind
        self._process.start()

    @property
    def returncode(self) -> int | None:
        """The exit code, minus the signal that ended it; None while it runs."""
        return self._process.exitcode

    def poll(self) -> int | None:
        """As :attr:`returncode`."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Waits for the end and returns the exit code.

        Raises:
            subprocess.TimeoutExpired: If it still runs after ``timeout`` [s]; then it is killed.
        """
        self._process.join(timeout)
        if self._process.exitcode is None:
            self.kill()
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return self._process.exitcode

    def communicate(self, timeout: float | None = None) -> tuple[bytes, bytes]:
        """Waits for the end and returns what was printed."""
        self.wait(timeout)
        out, err = (output.read_bytes() for output in self._outputs)
        return out, err

    def send_signal(self, number: int) -> None:
        """Sends a signal to the process, unless it has ended."""
        if self._process.pid is not None and self.poll() is None:
            os.kill(self._process.pid, number)

    def kill(self) -> None:
        """Kills it, and waits for its end."""
        self.send_signal(signal.SIGKILL)
        self._process.join()


def run_python(
    arguments: Sequence[str | Path], env: Mapping[str, str] | None = None, cwd: Path = ROOT, timeout: float = 300
) -> subprocess.CompletedProcess[str]:
    """Runs one to its end, as ``subprocess.run`` does, and returns its exit code and what it printed."""
    process = Running(arguments, env, cwd)
    out, err = process.communicate(timeout)
    return subprocess.CompletedProcess(process.args, process.wait(), out.decode(), err.decode())


def _context() -> multiprocessing.context.ForkServerContext:
    """Starts the process that the others are forked from, once a session."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.warm_imports"])
    before, threads = Path.cwd(), os.environ.get("OMP_NUM_THREADS")
    os.chdir(ROOT)  # where it finds the package ``tests``
    os.environ["OMP_NUM_THREADS"] = "1"  # read by torch when it is imported
    try:
        forkserver.ensure_running()
    finally:
        os.chdir(before)
        os.environ.pop("OMP_NUM_THREADS") if threads is None else os.environ.update(OMP_NUM_THREADS=threads)
    return context


def _become(arguments: list[str], env: dict[str, str], cwd: str, out: str, err: str) -> None:
    """In the forked process: runs a program as ``python *arguments`` would."""
    os.setsid()
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    for number, path in ((1, out), (2, err)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)
    sys.stdout, sys.stderr = (open(number, "w", buffering=1, closefd=False) for number in (1, 2))  # noqa: SIM115
    sys.__stdout__, sys.__stderr__ = sys.stdout, sys.stderr
    first, rest = arguments[0], arguments[1:]
    if first == "-m":
        sys.argv = rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif first == "-c":
        sys.argv = ["-c", *rest[1:]]
        exec(compile(rest[0], "<string>", "exec"), {"__name__": "__main__"})
    else:
        sys.argv = arguments
        sys.path.insert(0, str(Path(first).parent))
        runpy.run_path(first, run_name="__main__")
