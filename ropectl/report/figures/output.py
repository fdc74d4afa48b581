"""Writes figure files: the same bytes for the same record, and never half a file."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ropectl.errors import ConfigError
from ropectl.output_places import check_output, check_writable
from ropectl.report.figures.drawing import Drawing
from ropectl.report.figures.inline import inlined
from ropectl.report.figures.style import house_style
from ropectl.runs import written_aside

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: The formats of figures, with the metadata that keeps the time of day out of them.
FORMATS: dict[str, dict[str, Any]] = {
    ".svg": {"Date": None},
    ".pdf": {"CreationDate": None, "ModDate": None},
    ".png": {},
}


def check_figure(path: Path) -> None:
    """Checks that a figure can be written to ``path``, before anything is computed.

    Raises:
        ConfigError: If its suffix is none of .svg, .pdf and .png, or the place cannot be written.
    """
    if path.suffix.lower() not in FORMATS:
        raise ConfigError(
            f"--plot {path}: the suffix sets the format; it must be one of {', '.join(FORMATS)}.",
            f"Type for example: --plot {path.with_suffix('.svg').name or 'figure.svg'}",
        )
    if path.is_dir():
        raise ConfigError(
            f"--plot {path} is a folder; a figure is one file.", f"Type for example: --plot {path / 'figure.svg'}"
        )
    check_output(path, "Choose another place: --plot FILE")
    try:
        check_writable(path.parent)
    except ConfigError as error:
        raise ConfigError(error.message, "Choose another place: --plot FILE") from None


def save_figure(figure: Figure, path: Path, hint: str = "Choose another place: --plot FILE", dpi: int = 150) -> None:
    """Writes a figure, replacing an older one; if it fails, the older one is left as it was.

    To be called within :func:`~ropectl.report.figures.style.house_style`.

    Args:
        figure: The figure.
        path: File; its suffix sets the format.
        hint: What to type if it cannot be written.
        dpi: Resolution of a bitmap.

    Raises:
        ConfigError: If the place cannot be written.
    """
    suffix = path.suffix.lower()
    with written_aside(path, hint=hint) as file:
        figure.savefig(file, format=suffix[1:], metadata=FORMATS[suffix], dpi=dpi)


def svg_text(figure: Figure, prefix: str = "", title: str = "") -> str:
    """Returns a figure as an SVG element to stand in HTML, the same text for the same record.

    Its background is white and opaque: the colours were chosen on white, and a dark page shows it as a card.

    Args:
        figure: A figure that a drawing drew.
        prefix: Begins every id and makes it unique in a page; by default one that follows from the content.
        title: Text for readers who cannot see it; by default the title of the drawing.
    """
    file = BytesIO()
    with house_style():
        figure.savefig(file, format="svg", metadata=FORMATS[".svg"])
    return inlined(
        file.getvalue(), title or str(figure.get_label()) or "figure", prefix, list(figure.get_size_inches())
    )


def write_figures(drawings: Sequence[Drawing], folder: Path, wide: bool = False) -> list[Path]:
    """Writes each drawing as NAME.svg, NAME.pdf and NAME.png (300 dpi), the same bytes for the same record.

    Args:
        drawings: The figures.
        folder: Folder, made if necessary.
        wide: True for the width of a page instead of a column.

    Raises:
        ConfigError: If the folder cannot be written.
    """
    written = []
    for drawing in drawings:
        figure = drawing.draw(wide=wide)
        for suffix in FORMATS:
            path = folder / f"{drawing.name}{suffix}"
            with house_style():
                save_figure(figure, path, hint="Choose another place: --out PATH", dpi=300)
            written.append(path)
    return written
