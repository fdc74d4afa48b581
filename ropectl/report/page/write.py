"""Writing a page: complete or not at all, and never over a file that ropectl did not write."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ropectl.errors import ConfigError
from ropectl.output_places import check_folder, check_output, check_writable
from ropectl.records import FinetuneRecord
from ropectl.report.figures.output import write_figures
from ropectl.report.page.figures import curve_drawings, joint_drawings, record_drawings
from ropectl.report.page.sections import make_page
from ropectl.report.runs_read import RUN_SUFFIX, Run, read_runs
from ropectl.report.writers.html import html_text, is_page
from ropectl.runs import written_aside

PAGE = "report.html"

#: What a browser opens as a page.
SUFFIXES = (".html", ".htm")

_HINT = "Choose another place: -o FILE"


@dataclass(frozen=True)
class Written:
    """A written page.

    Attributes:
        path: The page.
        num_bytes: Its size.
        runs: The runs that it shows.
        figures: Figure files.
    """

    path: Path
    num_bytes: int
    runs: Sequence[Run]
    figures: Sequence[Path]


def write_report(
    places: Sequence[Path], out: Path | None = None, figures: Path | None = None, overwrite: bool = False
) -> Written:
    """Writes the page of one run, or of several side by side.

    Args:
        places: Run folders and record files.
        out: The page; by default ``report.html`` in a run folder, or next to the first of several or of record files.
        figures: Folder that all figures are written to as well.
        overwrite: Whether a file that ropectl did not write may be replaced.

    Raises:
        ConfigError: If a place holds no record, or the page cannot be written.
    """
    runs = read_runs(places)
    path = _default(runs) if out is None else out
    _check(path, runs, overwrite)
    if figures is not None:
        _check_folder(figures)
    content = html_text(make_page(runs)).encode("utf-8")
    with written_aside(path, hint=_HINT) as file:
        file.write(content)
    return Written(path, len(content), runs, _write_figures(runs, figures) if figures is not None else [])


def _default(runs: Sequence[Run]) -> Path:
    first = runs[0].place
    if not first.is_dir() or len(runs) > 1:
        return first.absolute().parent / PAGE if first.is_dir() else first.parent / PAGE
    if isinstance(runs[0].record, FinetuneRecord) and not first.absolute().name.endswith(RUN_SUFFIX):
        whole = first.absolute()  # other programs load a checkpoint: no page goes into it
        beside = whole.with_name(f"{whole.name}{RUN_SUFFIX}")
        return (beside if beside.is_dir() else whole.parent) / PAGE
    return first / PAGE


def _check(path: Path, runs: Sequence[Run], overwrite: bool) -> None:
    if path.is_dir():
        raise ConfigError(f"{path} is a folder; the page is one file.", f"Type for example: -o {path / PAGE}")
    check_output(path, _HINT)
    if path.exists():
        sources = [place for run in runs for place in (run.place, *(run.folder / name for name, _ in run.files))]
        if any(source.exists() and source.samefile(path) for source in sources):
            raise ConfigError(f"{path} is a file that the page is made from.", _HINT)
    if path.suffix.lower() not in SUFFIXES:
        ending = f", not in {path.suffix}" if path.suffix else ""
        raise ConfigError(
            f"-o {path}: the page is HTML, so its name ends in {' or '.join(SUFFIXES)}{ending}.",
            f"Type for example: -o {path.with_suffix('.html')}",
        )
    if path.exists() and not overwrite and not is_page(path):
        raise ConfigError(f"{path} exists and is not a page that ropectl wrote.", "To replace it: --overwrite")
    _check_place(path.parent, _HINT)


def _check_folder(folder: Path) -> None:
    hint = "Choose another place: --figures FOLDER"
    check_folder(folder, hint)
    _check_place(folder, hint)


def _check_place(folder: Path, hint: str) -> None:
    try:
        check_writable(folder)
    except ConfigError as error:
        raise ConfigError(error.message, hint) from None


def _write_figures(runs: Sequence[Run], folder: Path) -> list[Path]:
    """Writes the figures of one run into the folder itself; of several, each run's into its own folder in it."""
    written: list[Path] = []
    several = len(runs) > 1
    if several:
        written += write_figures(joint_drawings(runs), folder)
    for number, run in enumerate(runs, 1):
        own = folder / f"run-{number}" if several else folder
        written += write_figures(record_drawings(run), own)
        for name, drawings in curve_drawings(run).items():
            written += write_figures(drawings, own / f"training-{name}" if name else own)
    return written
