"""Explanations of methods in words, for people who choose one."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class MethodGuide:
    """A method explained. It is written in the method's own file, and says nothing that can be computed.

    Attributes:
        fast: The effect on fast pairs, those that turn many times within the trained length.
        slow: The effect on slow pairs, those that never completed a turn.
        use: When the method is worth using.
        tuning: Whether it works without training, and what training does for it.
        short_text: The cost on text of lengths that the model was trained for.
        cache: The consequences for cached keys while text is generated.
        runtimes: The forms in which other programs can load it.
        measured: Results that ropectl measured, with the numbers of the README; empty if there are none.
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
