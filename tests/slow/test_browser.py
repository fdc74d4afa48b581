"""The page in a real browser: no error, nothing fetched, nothing wider than the window, drawn in both colour schemes."""

from __future__ import annotations

import functools
import html
import http.server
import json
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from ropectl.compare.run import compare_methods
from ropectl.evaluate.config import CompareConfig
from ropectl.report.page.write import write_report

BROWSER = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)

pytestmark = [pytest.mark.slow, pytest.mark.skipif(BROWSER is None, reason="needs a chromium on PATH")]

#: Opens the page in frames of several widths and tells how wide each is, and what it fetched.
FRAMES = """<!DOCTYPE html><pre id="told"></pre><script>
const widths = [320, 390, 768, 1280], told = {};
for (const width of widths) {
  const frame = document.createElement("iframe");
  frame.width = width; frame.height = 900; frame.src = "page.html";
  frame.onload = () => setTimeout(() => {
    const root = frame.contentDocument.documentElement, scripts = frame.contentDocument.querySelectorAll("thead button");
    told[width] = {scroll: root.scrollWidth, client: root.clientWidth, buttons: scripts.length,
      fetched: frame.contentWindow.performance.getEntriesByType("resource").map((entry) => entry.name)};
    if (Object.keys(told).length === widths.length) document.getElementById("told").textContent = JSON.stringify(told);
  }, 100);
  document.body.append(frame);
}
</script>"""


@dataclass
class Server:
    """Serves a folder and remembers what was asked for."""

    folder: Path
    asked: list[str] = field(default_factory=list)

    def __enter__(self) -> str:
        asked = self.asked

        class Handler(http.server.SimpleHTTPRequestHandler):
            def do_GET(self) -> None:
                asked.append(self.path)
                super().do_GET()

            def log_message(self, *_: Any) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(
            ("127.0.0.1", 0), functools.partial(Handler, directory=str(self.folder))
        )
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{self._server.server_port}"

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()


def browse(profile: Path, *arguments: str) -> tuple[str, list[str]]:
    """Returns what the browser printed, and what its console said."""
    assert BROWSER is not None
    command = [
        BROWSER,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        f"--user-data-dir={profile}",
        "--enable-logging=stderr",
    ]
    done = subprocess.run([*command, "--v=0", *arguments], capture_output=True, text=True, timeout=120)
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("site")
    config = CompareConfig(factor=4, methods=("yarn", "pi"), lengths=(256, 512), documents=2, trials=2, depths=2)
    compare_methods(config, folder / "run")
    write_report([folder / "run"], folder / "page.html")
    (folder / "frames.html").write_text(FRAMES)
    yield folder


def test_nothing_is_fetched_and_nothing_is_too_wide(site: Path, tmp_path: Path) -> None:
    server = Server(site)
    with server as address:
        shown, console = browse(tmp_path, "--virtual-time-budget=10000", "--dump-dom", f"{address}/frames.html")
    found = re.search(r'<pre id="told">(.*?)</pre>', shown, re.DOTALL)
    assert found and found[1], shown[:500]
    told = json.loads(html.unescape(found[1]))
    assert set(told) == {"320", "390", "768", "1280"}
    for width, entry in told.items():
        assert entry["scroll"] == entry["client"], f"at {width} the page scrolls sideways"
        assert entry["fetched"] == [] and entry["buttons"] > 5, "its own script may run"
    assert set(server.asked) <= {"/frames.html", "/page.html", "/favicon.ico"}
    assert console == []


@pytest.mark.parametrize("scheme", [0, 1], ids=["dark", "light"])
def test_it_is_drawn(site: Path, tmp_path: Path, scheme: int) -> None:
    from PIL import Image

    picture = tmp_path / "page.png"
    arguments = [
        f"--blink-settings=preferredColorScheme={scheme}",
        "--window-size=1000,1400",
        f"--screenshot={picture}",
    ]
    _, console = browse(tmp_path / "profile", *arguments, (site / "page.html").as_uri())
    assert console == []
    colours = Image.open(picture).convert("L").getcolors() or []
    brightness = max(colours)[1]
    assert (brightness < 60) == (scheme == 0) and len(colours) > 50


def test_it_is_printed(site: Path, tmp_path: Path) -> None:
    paper = tmp_path / "page.pdf"
    browse(tmp_path / "profile", f"--print-to-pdf={paper}", (site / "page.html").as_uri())
    assert paper.read_bytes().startswith(b"%PDF") and paper.stat().st_size > 50_000
