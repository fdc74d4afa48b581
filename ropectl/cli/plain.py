"""The last step before text is printed: no character controls the terminal, and the encoding can write them all."""

from __future__ import annotations

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook, RenderResult
from rich.segment import Segment

from ropectl.printable import printable
from ropectl.report.graphics import ASCII


def encodable(text: str, encoding: str) -> str:
    """Returns a text without characters that an encoding lacks: drawings become ASCII, the rest ``?``."""
    if encoding.lower().startswith("utf"):
        return text
    return text.translate(ASCII).encode(encoding, "replace").decode(encoding)


class PlainConsole(Console):
    """A console whose reader may leave; rich would then exit with code 1, as if the program had failed."""

    def on_broken_pipe(self) -> None:
        """Raises the error that is being handled again, to be turned into an exit code elsewhere."""
        self.quiet = True
        raise


class PlainText(RenderHook):
    """Cleans everything that a console prints."""

    def __init__(self, console: Console) -> None:
        self._encoding = console.encoding

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        """Returns the same renderables, each wrapped in one that cleans it."""
        return [_Cleaned(each, self) for each in renderables]

    def clean(self, text: str) -> str:
        """Returns a text without controls, in characters that the console's encoding can write."""
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
        else:  # only the text, without styles
            yield Segment(_trimmed("".join(segment.text for segment in segments if not segment.control)))


def _trimmed(text: str) -> str:
    """Returns a text without spaces at the ends of lines."""
    *lines, rest = text.split("\n")
    return "\n".join([*(line.rstrip(" ") for line in lines), rest])
