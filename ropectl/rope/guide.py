"""What a person wants to know of a method before choosing it: in words, beside its formula."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class MethodGuide:
    """A method explained. It lives in the method's own file; what can be computed is not written here.

    Attributes:
        fast: What becomes of fast pairs, those that turn many times within the trained length.
        slow: What becomes of slow pairs, those that never completed a turn.
        use: When the method is worth using.
        tuning: Whether it works without training, and what training does for it.
        short_text: What it costs on text that the model was trained for.
        cache: What holds of cached keys while text is generated.
        runtimes: How it travels to other programs.
        measured: What it did where ropectl measured it, with the numbers of the README; empty if it was not.
    """

    fast: str
    slow: str
    use: str
    tuning: str
    short_text: str
    cache: str
    runtimes: str
    measured: str = ""

    def to_json(self) -> dict[str, str]:
        """Returns the texts by name."""
        return asdict(self)


#: Cached keys under frequencies that are the same at every length.
CACHE_OF_STATIC = "One set of frequencies for every position: cached keys stay right however the text grows."
