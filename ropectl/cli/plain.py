"""The last step before text is printed: nothing in it controls the terminal, and the encoding has all of its characters."""

from __future__ import annotations

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook, RenderResult

from ropectl.printable import printable
from ropectl.report.graphics import ASCII


class PlainText(RenderHook):
    """Cleans what a console is given to print.

    Args:
        console: The console.
    """

    def __init__(self, console: Console) -> None:
        self._writes_all = console.encoding.lower().startswith("utf")
        self._encoding = console.encoding

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        """Wraps what is to be printed."""
        return [_Cleaned(each, self) for each in renderables]

    def clean(self, text: str) -> str:
        """Returns a text without controls, drawings in ASCII where the encoding has no others."""
        text = printable(text, keep="\n")
        if self._writes_all:
            return text
        return text.translate(ASCII).encode(self._encoding, "replace").decode(self._encoding)


class _Cleaned:
    def __init__(self, renderable: ConsoleRenderable, hook: PlainText) -> None:
        self._renderable, self._hook = renderable, hook

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for segment in console.render(self._renderable, options):
            yield segment if segment.control else segment._replace(text=self._hook.clean(segment.text))
