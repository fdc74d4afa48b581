"""The last step before text is printed: nothing in it controls the terminal, and the encoding has all of its characters."""

from __future__ import annotations

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook, RenderResult
from rich.segment import Segment

from ropectl.printable import printable
from ropectl.report.graphics import ASCII


def encodable(text: str, encoding: str) -> str:
    """Returns a text with what an encoding lacks in other characters: drawings in ASCII, the rest as ``?``."""
    if encoding.lower().startswith("utf"):
        return text
    return text.translate(ASCII).encode(encoding, "replace").decode(encoding)


class PlainConsole(Console):
    """A console whose reader may leave: rich would end the program with 1 then, as if it had failed."""

    def on_broken_pipe(self) -> None:
        """Lets the error through that is being handled, to whoever knows exit codes."""
        self.quiet = True
        raise


class PlainText(RenderHook):
    """Cleans what a console is given to print.

    Args:
        console: The console.
    """

    def __init__(self, console: Console) -> None:
        self._encoding = console.encoding

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        """Wraps what is to be printed."""
        return [_Cleaned(each, self) for each in renderables]

    def clean(self, text: str) -> str:
        """Returns a text without controls that the console's encoding can write."""
        return encodable(printable(text, keep="\n"), self._encoding)


class _Cleaned:
    def __init__(self, renderable: ConsoleRenderable, hook: PlainText) -> None:
        self._renderable, self._hook = renderable, hook

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        segments = [
            segment if segment.control else segment._replace(text=self._hook.clean(segment.text))
            for segment in console.render(self._renderable, options)
        ]
        if console.is_terminal:
            yield from segments
        else:  # no styles there: the text is all
            yield Segment(_trimmed("".join(segment.text for segment in segments if not segment.control)))


def _trimmed(text: str) -> str:
    """A text whose lines end where their writing does."""
    *lines, rest = text.split("\n")
    return "\n".join([*(line.rstrip(" ") for line in lines), rest])
