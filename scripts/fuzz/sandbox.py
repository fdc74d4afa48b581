"""Runs one invocation in a forked process, in a folder of its own, under limits of memory and time."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import stat
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fuzz.case import Case

#: Memory above that of the process that it is forked from [bytes].
MEMORY = 2**30

#: Processor time, and time in which nothing at all happens [s].
SECONDS = 3.0

#: No file that a command writes here is larger [bytes]; a special file that is copied byte for byte fills no disk.
LARGEST_FILE = 2**28

Entry = tuple[str, int, int, str]


@dataclass(frozen=True)
class Outcome:
    """What became of an invocation.

    Attributes:
        code: Exit code; minus the signal that ended it.
        out: Standard output.
        err: Standard error.
        seconds: Processor time [s].
        memory: Memory above that of the process that it was forked from [bytes].
        stopped: Why it had to be ended; empty if it ended by itself.
        changed: Files that are new, gone or different afterwards.
    """

    code: int
    out: str
    err: str
    seconds: float
    memory: int
    stopped: str
    changed: tuple[str, ...]


def run_all(
    cases: Sequence[Case], main: Callable[[], None], jobs: int = 1, scratch: Path | None = None
) -> Iterator[tuple[Case, Outcome]]:
    """Yields each case with its outcome, as they end.

    Args:
        cases: What to run.
        main: The program, which reads ``sys.argv``.
        jobs: How many run at a time.
        scratch: Where their folders are made.
    """
    waiting, running = list(reversed(cases)), []
    with tempfile.TemporaryDirectory(prefix="ropectl-fuzz-", dir=scratch) as place:
        number = 0
        try:
            while waiting or running:
                while waiting and len(running) < jobs:
                    number += 1
                    running.append(_Running(waiting.pop(), Path(place) / str(number), main))
                time.sleep(0.003)
                for each in list(running):
                    if outcome := each.poll():
                        running.remove(each)
                        yield each.case, outcome
        finally:
            for each in running:
                each.stop("interrupted")
                os.waitpid(each.pid, 0)


class _Running:
    """An invocation under way."""

    def __init__(self, case: Case, place: Path, main: Callable[[], None]) -> None:
        self.case, self.place = case, place
        self.folder = place / "here"
        self.folder.mkdir(parents=True)
        (self.folder / "tmp").mkdir()
        for step in case.steps:
            step.make(self.folder)
        self.before = snapshot(self.folder)
        self.stopped = ""
        self._cpu, self._moved = 0.0, time.monotonic()
        self._memory, self._base = 0, _status("self", "RssAnon")
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            _become(case, place, self.folder, main)

    def poll(self) -> Outcome | None:
        """Returns the outcome once there is one."""
        pid, status, usage = os.wait4(self.pid, os.WNOHANG)
        if not pid:
            self._watch()
            return None
        after = snapshot(self.folder)
        out, err = ((self.place / name).read_text(errors="replace") for name in ("out", "err"))
        outcome = Outcome(
            os.waitstatus_to_exitcode(status),
            out,
            err,
            usage.ru_utime + usage.ru_stime,
            max(self._memory - self._base, 0),
            self.stopped,
            tuple(sorted({path for path, *_ in self.before ^ after})),
        )
        for path in self.folder.rglob("*"):
            if path.is_dir() and not path.is_symlink():
                path.chmod(0o700)
        shutil.rmtree(self.place, ignore_errors=True)
        return outcome

    def stop(self, reason: str) -> None:
        """Kills it and what it started."""
        self.stopped = reason
        for kill in (os.killpg, os.kill):
            try:
                kill(self.pid, signal.SIGKILL)
                return
            except ProcessLookupError:  # before it has a group of its own
                continue

    def _watch(self) -> None:
        """Stops what works too long, or waits for what never comes; one that only waits for a processor does not."""
        if self.stopped:
            return
        try:
            self._memory = max(self._memory, _status(str(self.pid), "RssAnon"))
            used = _used(self.pid)
        except (OSError, ValueError, StopIteration):  # it is ending
            return
        if used != self._cpu:
            self._cpu, self._moved = used, time.monotonic()
        if used > 2 * SECONDS:
            self.stop(f"works longer than {2 * SECONDS:g} s")
        elif time.monotonic() - self._moved > SECONDS and not _is_busy(self.pid):
            self.stop("waits without end")


def snapshot(folder: Path) -> set[Entry]:
    """Returns what is in a folder: for each path its type, size and time of change, or where it leads."""
    found: set[Entry] = set()
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(place) / name
            about = path.lstat()
            mode = stat.S_IFMT(about.st_mode)
            key = str(path.relative_to(folder))
            if mode == stat.S_IFDIR:  # files that came and went change its time
                found.add((key, mode, 0, ""))
            elif mode == stat.S_IFLNK:
                found.add((key, mode, 0, str(path.readlink())))
            else:
                when = about.st_mtime_ns if mode == stat.S_IFREG else 0  # who opens a pipe changes its time
                found.add((key, mode, about.st_size, str(when)))
    return found


def _status(pid: str, key: str) -> int:
    """Returns an amount of memory that the system knows of a process [bytes]."""
    lines = (Path("/proc") / pid / "status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith(f"{key}:"))) * 1024


def _used(pid: int) -> float:
    """Returns the processor time of a process [s]."""
    fields = (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _is_busy(pid: int) -> bool:
    """Returns whether a process waits for a processor only, or for a process of its own that does not just wait."""
    here = Path("/proc") / str(pid)
    try:
        state = (here / "stat").read_text().rpartition(")")[2].split()[0]
        children = (here / "task" / str(pid) / "children").read_text().split()
        return state in "RD" or any(_used(int(child)) < 4 * SECONDS for child in children)
    except OSError:
        return False


def _become(case: Case, place: Path, folder: Path, main: Callable[[], None]) -> None:
    """In the forked process: runs the program as the command line would, and never returns."""
    code = 1
    try:
        os.setsid()
        os.chdir(folder)
        for name in ("ROPECTL_CACHE", "XDG_CACHE_HOME", "ROPECTL_DEBUG", "WORLD_SIZE", "RANK"):
            os.environ.pop(name, None)
        os.environ.update(HOME=str(folder), TMPDIR=str(folder / "tmp"), COLUMNS="80", HF_HUB_OFFLINE="1")
        tempfile.tempdir = None
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for number, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(place / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), number)
        sys.stdin = open(0, closefd=False)  # noqa: SIM115 (it lasts as long as the process)
        sys.stdout, sys.stderr = (open(number, "w", buffering=1, closefd=False) for number in (1, 2))  # noqa: SIM115
        sys.__stdout__, sys.__stderr__ = sys.stdout, sys.stderr
        limit = _status("self", "VmData") + MEMORY
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
        resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST_FILE, LARGEST_FILE))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        sys.argv = ["ropectl", case.command, *case.args]
        try:
            main()
            code = 0
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        traceback.print_exc()
        code = 1
    finally:
        os._exit(code)
