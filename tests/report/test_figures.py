"""Figures: what they show, the same bytes every time, whole files or none, one message for what cannot be."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ropectl.advise.inspection import inspect_rope
from ropectl.errors import ConfigError
from ropectl.records import InspectionRecord
from ropectl.report.figures.decay import plot_decay
from ropectl.report.figures.frequencies import plot_frequencies
from ropectl.report.figures.output import check_figure, save_figure
from ropectl.report.figures.style import MAX_LABEL, curve_style, house_style, method_label, shorten
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.registry import all_methods, parse_method
from tests.report.boxes import faults

pytestmark = pytest.mark.process

Run = Callable[..., tuple[int, str, str]]
GEOMETRY = RopeGeometry(64, 10_000.0, 2048)
NUMBERS = "rotary_dim=64,rope_theta=10000,original_max_position_embeddings=2048"


def records(*specs: str, target: int = 8192) -> list[InspectionRecord]:
    methods = [parse_method(spec) for spec in specs]
    return [inspect_rope(GEOMETRY, m, target if m.depends_on_seq_len else None) for m in methods]


def decay_record(num_methods: int = 2) -> dict[str, Any]:
    def curve(kind: str, index: int) -> dict[str, Any]:
        distances = [1.0, 10.0, 100.0, 1000.0]
        return {
            "kind": kind,
            "method": f"pi:factor={index + 2}",
            "rope_theta": 10.0 ** (index + 4),
            "seq_len": None,
            "distances": distances,
            "mean": [0.9, 0.6, 0.3, 0.05],
            "low": [0.9, 0.5, 0.1, -0.2],
            "high": [0.9, 0.7, 0.4, 0.1],
            "first_negative": 700 if index else None,
            "measured": {"distances": [1, 10, 100, 1000], "scores": [0.9, 0.61, 0.3, 0.0]},
        }

    curves = [curve("base", i) for i in range(3)] + [curve("method", i) for i in range(num_methods)]
    return {"model": "m<&>", "geometry": vars(GEOMETRY), "target_length": 8192, "decay": curves}


def texts(path: Path) -> list[str]:
    """Every text in an SVG, as a reader shows it."""
    found = ["".join(node.itertext()).strip() for node in ET.parse(path).iter("{http://www.w3.org/2000/svg}text")]
    return [text for text in found if text]


def drawn(monkeypatch: pytest.MonkeyPatch, call: Callable[[Path], None], path: Path) -> Any:
    """The matplotlib figure that a call draws."""
    kept: list[Any] = []

    def keep(figure: Any, place: Path) -> None:
        kept.append(figure)
        save_figure(figure, place)

    for module in ("frequencies", "decay"):
        monkeypatch.setattr(f"ropectl.report.figures.{module}.save_figure", keep)
    call(path)
    return kept[0]


def test_the_curves_are_the_records(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shown = records("pi:factor=4", "yarn:factor=4")
    figure = drawn(monkeypatch, lambda path: plot_frequencies(path, "m", shown, 8192), tmp_path / "f.svg")
    upper, lower = figure.axes
    for axes, key in ((upper, "divisors"), (lower, "wavelengths")):
        assert axes.get_yscale() == "log"
        curves = [list(line.get_ydata()) for line in axes.get_lines() if len(line.get_xdata()) == 32]
        assert curves[-2:] == [getattr(record, key) for record in shown]
    trained = [2 * math.pi * 10_000 ** (2 * i / 64) for i in range(32)]
    assert list(lower.get_lines()[0].get_ydata()) == pytest.approx(trained)
    flat = {line.get_ydata()[0] for line in lower.get_lines() if len(line.get_xdata()) == 2}
    assert {2048, 8192} <= flat
    shaded = lower.patches[0].get_extents().transformed(lower.transData.inverted())
    assert shaded.y1 == pytest.approx(2048) and shaded.y0 <= min(trained)
    critical = shown[0].critical_dimension - 0.5
    for axes in (upper, lower):
        assert any(list(line.get_xdata()) == [critical, critical] for line in axes.get_lines())


def test_texts_of_the_frequency_figure(tmp_path: Path) -> None:
    path = tmp_path / "f.svg"
    plot_frequencies(path, "a<b>&$c_d$", records("pi:factor=4", "dynamic-ntk"), 8192)
    content = " | ".join(texts(path))
    for words in ("a<b>&$c_d$", "rotary_dim 64", "rope_theta 10000", "L = 2048", "L' = 8192", "pi:factor=4"):
        assert words in content, words
    for words in ("dynamic-ntk", "(frozen at 8192 tokens)", "wavelength [tokens]", "divisor f_i [1]", "rotary pair i"):
        assert words in content, words
    first = next(i for i in range(32) if 2 * math.pi * 10_000 ** (2 * i / 64) > 2048)
    assert f"critical pairs: from {first} on" in content


@pytest.mark.parametrize("suffix", [".svg", ".pdf", ".png"])
def test_same_record_same_bytes(tmp_path: Path, suffix: str) -> None:
    contents = []
    for name in ("a", "b"):
        for kind in ("frequencies", "decay"):
            path = tmp_path / f"{name}-{kind}{suffix}"
            if kind == "decay":
                plot_decay(path, decay_record())
            else:
                plot_frequencies(path, "m", records("pi:factor=4", "yarn:factor=4"), 8192)
            contents.append(path.read_bytes())
    assert contents[:2] == contents[2:] and contents[0] != contents[1]
    assert b"<dc:date>" not in contents[0] and b"CreationDate" not in contents[0]
    assert {path.suffix for path in tmp_path.iterdir()} == {suffix}, "nothing is left beside the figures"


def test_a_users_settings_change_nothing(tmp_path: Path) -> None:
    import matplotlib

    plot_frequencies(tmp_path / "a.svg", "m", records("pi:factor=4"), 8192)
    with matplotlib.rc_context(
        {"font.size": 30, "axes.facecolor": "red", "svg.fonttype": "path", "svg.hashsalt": None}
    ):
        plot_frequencies(tmp_path / "b.svg", "m", records("pi:factor=4"), 8192)
        assert matplotlib.rcParams["font.size"] == 30
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def all_specs() -> list[str]:
    names = [n for n, kind in all_methods().items() if not kind.missing(kind.fill_factor({}, 4.0, GEOMETRY))]
    specs = [str(parse_method(name, 4.0, GEOMETRY)) for name in names]
    long = f"longrope:factor=4,long_factor={':'.join(['1.234567'] * 32)}"
    more = ["yarn:factor=4,beta_fast=16", "yarn:factor=4,beta_fast=64,beta_slow=2,attention_factor=1.25", long]
    return [*(spec for spec in specs if spec != "none"), *more, "pi:factor=2"]


@pytest.mark.parametrize("num_methods", [1, 12])
def test_the_decay_figure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, num_methods: int) -> None:
    record = decay_record(num_methods)
    figure = drawn(monkeypatch, lambda path: plot_decay(path, record), tmp_path / "d.png")
    assert faults(figure) == []
    by_base, by_method = figure.axes
    lines = [list(line.get_ydata()) for line in by_method.get_lines() if line.get_marker() == ""]
    assert lines.count([0.9, 0.6, 0.3, 0.05]) == num_methods and by_base.get_xscale() == "log"
    ticks = [line.get_xdata()[0] for line in by_base.get_lines() if line.get_marker() == "|"]
    assert ticks == [700, 700], "two of three bases turn negative"
    assert by_base.get_ylim()[0] < -0.2, "the lowest value is inside"
    assert len(by_method.collections) == (num_methods if num_methods <= 5 else 0)


def test_decay_texts(tmp_path: Path) -> None:
    plot_decay(tmp_path / "d.svg", decay_record())
    content = " | ".join(texts(tmp_path / "d.svg"))
    for words in ("m<&>", "distance between query and key [tokens]", "mean score", "1e+06", "pi:factor=3", "L' = 8192"):
        assert words in content, words


def test_no_two_curves_look_alike() -> None:
    for key in (("color", "linestyle"), ("linestyle", "marker")):
        looks = [tuple(str(curve_style(i, 20, 64)[part]) for part in key) for i in range(20)]
        assert len(set(looks)) == 20, key
    assert curve_style(0, 3, 64)["linewidth"] > curve_style(2, 3, 64)["linewidth"], "what lies below stays visible"


def test_long_names_are_cut_in_the_middle() -> None:
    assert shorten("a" * MAX_LABEL) == "a" * MAX_LABEL
    cut = shorten("begin" + "x" * 100 + "end")
    assert len(cut) == MAX_LABEL and cut.startswith("begin") and cut.endswith("end") and "\u2026" in cut
    assert shorten("a\nb\x00") == "a?b?"
    assert method_label("dynamic-ntk", 8192) == "dynamic-ntk\n(frozen at 8192 tokens)"


def test_pairs_that_stand_still_are_said(tmp_path: Path) -> None:
    record = records("pi:factor=4")[0]
    record.divisors[-2:] = record.wavelengths[-2:] = [None, None]
    plot_frequencies(tmp_path / "f.svg", "m", [record], 8192)
    assert "(2 pairs stand still)" in texts(tmp_path / "f.svg")


def test_a_failed_save_leaves_the_old_figure(tmp_path: Path) -> None:
    class Broken:
        def savefig(self, file: Any, **_: Any) -> None:
            file.write(b"half")
            raise KeyboardInterrupt

    path = tmp_path / "f.svg"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt), house_style():
        save_figure(Broken(), path)  # type: ignore[arg-type]
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["f.jpg", "f", ".svg", "folder.svg", "/dev/null/f.svg"])
@pytest.mark.parametrize("more", [[], ["--self-test"]])
def test_impossible_places_are_found_first(
    ropectl: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, more: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.svg").mkdir()
    monkeypatch.setattr("ropectl.advise.inspected.Inspected.of", None)  # no work before the check
    code, out, err = ropectl("inspect", "--plot", name, *more)
    assert code == 2 and out == "" and err.startswith("Error: ") and name.split("/f")[0] in err and "--plot" in err
    if name in ("f.jpg", "f", ".svg"):
        assert ".svg, .pdf, .png" in err
    assert [path.name for path in tmp_path.iterdir()] == ["folder.svg"]


def test_check_figure_makes_no_folder(tmp_path: Path) -> None:
    check_figure(tmp_path / "new" / "f.SVG")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ConfigError):
        check_figure(tmp_path)


def test_command_with_several_methods(ropectl: Run, tmp_path: Path) -> None:
    path = tmp_path / "new" / "f.svg"
    arguments = ("inspect", "--geometry", NUMBERS, "-m", "pi", "-m", "yarn", "--factor", "4")
    code, out, err = ropectl(*arguments, "--plot", path, "--format", "json")
    assert (code, err) == (0, "") and [record["method"] for record in json.loads(out)] == [
        "pi:factor=4",
        "yarn:factor=4",
    ]
    labels = texts(path)
    assert {"pi:factor=4", "yarn:factor=4", "as trained"} <= set(labels) and "ntk:factor=4" not in labels
    code, out, _ = ropectl(*arguments)
    assert code == 0 and out.count("method pi:factor=4") == 1 and out.count("method yarn:factor=4") == 1
    single = ropectl("inspect", "--geometry", NUMBERS, "-m", "pi:factor=4", "--plot", path, "--format", "json")[1]
    assert json.loads(single)["method"] == "pi:factor=4", "one method: the record itself"


def test_command_without_methods_draws_all_that_a_factor_is_enough_for(ropectl: Run, tmp_path: Path) -> None:
    path = tmp_path / "f.svg"
    code, out, _ = ropectl("inspect", "--target-length", "2k", "--plot", path, "--format", "json")
    names = [record["method"].partition(":")[0] for record in json.loads(out)]
    wanted = [n for n, kind in all_methods().items() if "factor" in kind.model_fields or kind.varies_with_length]
    assert code == 0 and set(names) == {"none", "abf", *wanted} - {"longrope"} and names[0] == "none"
    assert "builtin:tiny" in " ".join(texts(path)) and "(frozen at 2048 tokens)" in texts(path)
    assert ropectl("inspect", "--plot", path, "--format", "json")[0] == 0
    assert "frozen" not in " ".join(texts(path)), "no factor: the model as it is"


def test_seq_len_freezes_the_curves(ropectl: Run, tmp_path: Path) -> None:
    path = tmp_path / "f.svg"
    code, _, _ = ropectl("inspect", "-m", "dynamic-ntk", "--factor", "4", "--seq-len", "1k", "--plot", path)
    assert code == 0 and "(frozen at 1024 tokens)" in texts(path)


@pytest.mark.process
def test_matplotlib_only_for_a_figure(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    code = (
        "import sys; sys.argv = ['ropectl', *sys.argv[1:]]\nfrom ropectl.cli.app import main\n"
        "try: main()\nexcept SystemExit: print([m for m in ('torch', 'matplotlib') if m in sys.modules])"
    )
    for more, wanted in (([], "[]"), (["--plot", "f.svg"], "['matplotlib']")):
        arguments = [sys.executable, "-c", code, "inspect", *more]
        result = subprocess.run(arguments, capture_output=True, text=True, check=True, cwd=tmp_path, env=environment)
        assert result.stdout.strip().endswith(wanted)
