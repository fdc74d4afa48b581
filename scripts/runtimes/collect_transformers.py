"""Runs every version of transformers over every family and type of scaling, and keeps what came out as data.

    bash scripts/runtimes/install_old_transformers.sh DIR
    PYTHONPATH=. python scripts/runtimes/collect_transformers.py DIR

Every version reads the same files (``rope_files.py``) with its own config and rotary classes (``rotary_worker.py``), in one process
each. What was run stays in DIR (``runs-*.jsonl``) and is not run again until the files change. Written are ``ropectl/runtimes/runs/transformers.json`` and
``transformers_types.json``, which the matrix reads, and ``tests/golden/transformers_runs.json.gz``, with which the tests replay all of it.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import transformers

from scripts.runtimes.rope_files import TRAINED, FamilyFiles, families, family_files
from scripts.runtimes.transformers_data import golden, runs_file, types_file

ROOT = Path(__file__).parent.parent.parent
WORKER = Path(__file__).parent / "rotary_worker.py"
#: The trained length, and one past every length that a file declares.
LENGTHS = [TRAINED, 8 * TRAINED]
#: The key of what a version says about itself.
ABOUT = "about"
RUNS = ROOT / "ropectl" / "runtimes" / "runs"
GOLDEN = ROOT / "tests" / "golden" / "transformers_runs.json.gz"


def main() -> None:
    """Runs what was not run yet, and writes the data."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="folder of install_old_transformers.sh")
    folder = parser.parse_args().folder
    subjects = [family_files(model_type) for model_type in families()]
    found = {}
    for release, path in [*_installed(folder), (transformers.__version__, None)]:
        found[".".join(release.split(".")[:2])] = collect(folder, release, path, subjects)
    dump(RUNS / "transformers_types.json", types_file(found))
    dump(RUNS / "transformers.json", runs_file(found, subjects, LENGTHS))
    GOLDEN.write_bytes(gzip.compress(json.dumps(golden(found, subjects, LENGTHS)).encode(), mtime=0))
    for path in (RUNS / "transformers_types.json", RUNS / "transformers.json", GOLDEN):
        print(path.relative_to(ROOT), path.stat().st_size, "bytes")


def _installed(folder: Path) -> Iterator[tuple[str, Path]]:
    paths = sorted(folder.glob("tf*/"), key=lambda path: [int(part) for part in path.name[2:].split(".")])
    yield from ((path.name[2:], path) for path in paths)


def collect(folder: Path, release: str, path: Path | None, subjects: list[FamilyFiles]) -> dict[str, Any]:
    """Returns what one version computes: ``version``, ``date``, ``model_types``, ``defaults`` and ``results`` by family and file.

    Args:
        folder: Where runs are kept.
        release: The version.
        path: Where it is installed; None for the one in use.
        subjects: The families and their files.
    """
    kept = folder / f"runs-{release}.jsonl"
    done: dict[str, Any] = {}
    for line in kept.read_text().splitlines() if kept.is_file() else ():
        done |= json.loads(line)
    if ABOUT not in done or any(_missing(subject, done) for subject in subjects):
        with kept.open("a") as file, _worker(path) as worker:
            assert worker.stdin and worker.stdout
            about = {**_answer(worker.stdout), "date": datetime.now(timezone.utc).date().isoformat()}
            assert about["version"] == release, about["version"]
            done[ABOUT] = about
            file.write(json.dumps({ABOUT: about}) + "\n")
            for subject in subjects:
                files = _missing(subject, done)
                if not files:
                    continue
                task = {"model_type": subject.model_type, "layer_type": subject.layer_type, "lengths": LENGTHS}
                worker.stdin.write(json.dumps({**task, "files": files}) + "\n")
                worker.stdin.flush()
                found = _answer(worker.stdout)
                done |= found
                file.write(json.dumps(found) + "\n")
                file.flush()
                print(release, subject.model_type, len(found), flush=True)
            worker.stdin.close()
    results = {
        subject.model_type: {name: done[_key(subject, config)] for name, config in subject.files.items()}
        for subject in subjects
        if subject.model_type in done[ABOUT]["model_types"]
    }
    return {**done[ABOUT], "results": results}


def _missing(subject: FamilyFiles, done: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the files of a family that a version was not run on, if it has the family."""
    if ABOUT in done and subject.model_type not in done[ABOUT]["model_types"]:
        return {}
    keys = {_key(subject, config): config for config in subject.files.values()}
    return {key: config for key, config in keys.items() if key not in done}


def _key(subject: FamilyFiles, config: Mapping[str, Any]) -> str:
    text = json.dumps([subject.model_type, subject.layer_type, LENGTHS, config])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _worker(path: Path | None) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": "" if path is None else str(path), "OMP_NUM_THREADS": "1"}
    pipes: Mapping[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    return subprocess.Popen([sys.executable, str(WORKER)], env=environment, text=True, **pipes)


def _answer(stdout: Any) -> dict[str, Any]:
    """Returns the next line that is an answer; libraries print too."""
    for line in stdout:
        if line.startswith("{"):
            return dict(json.loads(line))
    raise SystemExit("The worker died; run rotary_worker.py by itself to see why.")


def dump(path: Path, content: Any) -> None:
    """Writes data so that changes can be read: a line for each family or type."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(_text(content) + "\n")


def _text(value: Any, indent: str = "") -> str:
    """Returns JSON in which objects of objects, and of names, are written over several lines."""
    items = list(value.values()) if isinstance(value, dict) else []
    if not any(isinstance(item, dict) for item in items) and not all(isinstance(item, str) for item in items or [0]):
        return json.dumps(value, ensure_ascii=False)
    lines = [f"{indent} {json.dumps(key)}: {_text(item, indent + ' ')}" for key, item in value.items()]
    return "{\n" + ",\n".join(lines) + f"\n{indent}}}"


if __name__ == "__main__":
    main()
