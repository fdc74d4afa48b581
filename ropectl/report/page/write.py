"""Writing a page, or the tables of runs as a text: complete or not at all, and never over a file that ropectl did not write."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ropectl.errors import ConfigError
from ropectl.output_places import check_folder, check_output, check_writable
from ropectl.records import FinetuneRecord
from ropectl.report.figures.output import write_figures
from ropectl.report.format_names import HTML, REPORT_NAMES
from ropectl.report.page.figures import curve_drawings, joint_drawings, record_drawings
from ropectl.report.page.sections import make_page
from ropectl.report.record_views import ShownRecord, view_of
from ropectl.report.runs_read import RUN_SUFFIX, Run, read_runs
from ropectl.report.writers.formats import FORMATS, check_format
from ropectl.report.writers.html import html_text, is_page
from ropectl.runs import written_aside

PAGE = "report.html"

#: What a browser opens as a page.
SUFFIXES = (".html", ".htm")

_HINT = "Choose another place: -o FILE"


@dataclass(frozen=True)
class Written:
    """A report.

    Attributes:
        path: Its file; None if it was not written to one.
        content: Its text.
        runs: The runs that it shows.
        figures: Figure files.
    """

    path: Path | None
    content: str
    runs: Sequence[Run]
    figures: Sequence[Path]

    @property
    def num_bytes(self) -> int:
        """Its size."""
        return len(self.content.encode("utf-8"))


def write_report(
    places: Sequence[Path],
    out: Path | None = None,
    figures: Path | None = None,
    overwrite: bool = False,
    form: str = HTML,
) -> Written:
    """Makes the page of one run, or of several side by side, or their tables as a text, and writes it to a file.

    Args:
        places: Run folders and record files.
        out: The file; by default the page is ``report.html`` in a run folder, or next to the first of several or of record
            files, and a text is not written.
        figures: Folder that all figures are written to as well.
        overwrite: Whether a file that ropectl did not write may be replaced.
        form: ``html``, or one of ``ropectl.report.writers.formats``.

    Raises:
        ConfigError: If a place holds no record, or the file cannot be written, or its format cannot hold the records.
    """
    runs = read_runs(places)
    for run in runs:
        check_format(form, view_of(run.record), run.name, REPORT_NAMES)
    path = _default(runs) if out is None and form == HTML else out
    if path is not None:
        _check(path, runs, overwrite, form)
    if figures is not None:
        _check_folder(figures)
    content = html_text(make_page(runs)) if form == HTML else FORMATS[form].text(_shown(runs))
    if path is not None and form != HTML and not content.startswith(tuple(FORMATS[form].begins)):
        content = f"{FORMATS[form].begins[0]}\n\n{content}"
    if path is not None:
        with written_aside(path, hint=_HINT) as file:
            file.write(content.encode("utf-8"))
    return Written(path, content, runs, _write_figures(runs, figures) if figures is not None else [])


def _shown(runs: Sequence[Run]) -> list[ShownRecord]:
    """Returns the records as writers of texts take them; several are named."""
    several = len(runs) > 1
    return [ShownRecord(view_of(run.record), run.record, run.metrics, run.name if several else "") for run in runs]


def _default(runs: Sequence[Run]) -> Path:
    first = runs[0].place
    if not first.is_dir() or len(runs) > 1:
        return first.absolute().parent / PAGE if first.is_dir() else first.parent / PAGE
    if isinstance(runs[0].record, FinetuneRecord) and not first.absolute().name.endswith(RUN_SUFFIX):
        whole = first.absolute()  # other programs load a checkpoint: no page goes into it
        beside = whole.with_name(f"{whole.name}{RUN_SUFFIX}")
        return (beside if beside.is_dir() else whole.parent) / PAGE
    return first / PAGE


def _check(path: Path, runs: Sequence[Run], overwrite: bool, form: str) -> None:
    if path.is_dir():
        name = path / f"report{_suffixes(form)[0]}"
        raise ConfigError(f"{path} is a folder; the report is one file.", f"Type for example: -o {name}")
    check_output(path, _HINT)
    if path.exists():
        sources = [place for run in runs for place in (run.place, *(run.folder / name for name, _ in run.files))]
        if any(source.exists() and source.samefile(path) for source in sources):
            raise ConfigError(f"{path} is a file that the report is made from.", _HINT)
    _check_suffix(path, form)
    if path.exists() and not overwrite and not _is_ours(path, form):
        kind = "a page" if form == HTML else f"{form} text"
        raise ConfigError(f"{path} exists and is not {kind} that ropectl wrote.", "To replace it: --overwrite")
    _check_place(path.parent, _HINT)


def _suffixes(form: str) -> Sequence[str]:
    return SUFFIXES if form == HTML else FORMATS[form].suffixes


def _check_suffix(path: Path, form: str) -> None:
    """Refuses a page under another name than a browser opens, and a text under the name of another format."""
    suffix, own = path.suffix.lower(), _suffixes(form)
    other = next((name for name in (*FORMATS, HTML) if name != form and suffix in _suffixes(name)), None)
    if suffix in own or (form != HTML and other is None):
        return
    ending = f", not in {path.suffix}" if path.suffix else ""
    what = "the page is HTML, so its name" if form == HTML else f"the name of {form} text"
    or_format = f", or --format {other}" if other else ""
    raise ConfigError(
        f"-o {path}: {what} ends in {' or '.join(own)}{ending}.",
        f"Type for example: -o {path.with_suffix(own[0])}{or_format}",
    )


def _is_ours(path: Path, form: str) -> bool:
    if form == HTML:
        return is_page(path)
    with path.open("rb") as file:
        first = file.readline(4096).decode("utf-8", "replace").rstrip("\n")
    return first in FORMATS[form].begins


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
