"""Figure files: the same bytes for the same record, whole or not there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ropectl.errors import ConfigError
from ropectl.runs import check_writable, written_aside

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: What a figure can be written as, and the metadata that keeps the time of day out of it.
FORMATS: dict[str, dict[str, Any]] = {
    ".svg": {"Date": None},
    ".pdf": {"CreationDate": None, "ModDate": None},
    ".png": {},
}

_SETTINGS: Any = {
    "font.family": "sans-serif",
    "font.size": 10.0,
    "axes.titlesize": 11.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "text.usetex": False,
    "svg.hashsalt": "ropectl",
    "svg.fonttype": "none",
}


def check_figure(path: Path) -> None:
    """Checks that a figure can be written to ``path``, before anything is computed.

    Raises:
        ConfigError: If its suffix is none of .svg, .pdf and .png, or the place cannot be written.
    """
    if path.suffix.lower() not in FORMATS:
        raise ConfigError(
            f"--plot {path}: the suffix says the format; it must be one of {', '.join(FORMATS)}.",
            f"Type for example: --plot {path.with_suffix('.svg').name or 'figure.svg'}",
        )
    if path.is_dir():
        raise ConfigError(
            f"--plot {path} is a folder; a figure is one file.", f"Type for example: --plot {path / 'figure.svg'}"
        )
    try:
        check_writable(path.parent)
    except ConfigError as error:
        raise ConfigError(error.message, "Choose another place: --plot FILE") from None


@contextmanager
def house_style() -> Iterator[None]:
    """Draws with our settings only: neither a user's matplotlibrc nor an earlier figure changes anything."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_SETTINGS)
        yield


def save_figure(figure: Figure, path: Path) -> None:
    """Writes a figure that is either whole or not there; one that was there is replaced.

    To be called within :func:`house_style`.

    Raises:
        ConfigError: If the place cannot be written.
    """
    suffix = path.suffix.lower()
    with written_aside(path, hint="Choose another place: --plot FILE") as file:
        figure.savefig(file, format=suffix[1:], metadata=FORMATS[suffix], dpi=150)
