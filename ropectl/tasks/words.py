"""An endless supply of words to hide, ask for and count."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator

#: None of these words is part of another, so that none is found in an answer that says another.
_ADJECTIVES = (
    "amber ancient bitter blunt bold brave bright broken calm careful cheap clever cold cosy crisp curious damp dark "
    "dear deep distant dusty eager early empty faint famous fierce flat foggy formal frail fresh gentle glad golden "
    "grand heavy hidden hollow honest humble idle jolly keen kind lazy lively lonely loud lucky mellow mild modest "
    "narrow noble odd pale patient plain polite proud quick quiet rapid rare rough round rusty sharp shy silent silver "
    "simple slim smooth soft solid steady steep strange sturdy sudden sunny swift tame tender thick tidy tiny upset "
    "vague vivid warm weary wide wise witty young"
)
_NOUNS = (
    "acorn anchor almond apron attic autumn badge bakery banjo basket beacon bell bishop blanket border bottle branch "
    "bridge bucket butter button cabin camel candle canyon carpet castle cedar cellar chapel cherry chimney cinema "
    "circle clover coast copper corner cotton cousin cradle curtain dancer desert dinner doctor dolphin donkey dragon "
    "drawer engine falcon farmer feather fiddle forest fountain garden garlic glacier goblet guitar hammer harbour "
    "helmet hotel iceberg island jacket jungle kettle kitten ladder lantern lemon letter library lizard magnet "
    "marble market meadow mirror monkey mountain museum needle nephew ocean olive orchard oven oyster palace parcel "
    "parrot pencil pepper piano pigeon pillow pirate planet pocket pony potato puzzle rabbit ribbon river rocket "
    "saddle sailor salmon sandal scholar shovel sister spider spoon statue stream studio sugar summer teacher temple "
    "thunder ticket tiger tomato tower tunnel turtle uncle valley velvet village violin wagon walnut weaver window "
    "winter wizard yogurt zebra"
)
ADJECTIVES, NOUNS = tuple(_ADJECTIVES.split()), tuple(_NOUNS.split())
WORDS = ADJECTIVES + NOUNS

#: Words of two parts that are drawn before those of three parts; there are more than twice as many.
MAX_PAIRS = 6000

#: The filler of the passkey task, as published.
FILLER = (
    "The grass is green.",
    "The sky is blue.",
    "The sun is yellow.",
    "Here we go.",
    "There and back again.",
)

_CONSONANTS, _VOWELS = "bdfgklmnprstvz", "aeiou"


def draw_name(rng: random.Random) -> str:
    """Returns a name such as ``quiet-lantern``."""
    return f"{rng.choice(ADJECTIVES)}-{rng.choice(NOUNS)}"


def draw_number(rng: random.Random, digits: int) -> str:
    """Returns a number of so many digits, the first not zero."""
    return str(rng.randrange(10 ** (digits - 1), 10**digits))


def draw_invented(rng: random.Random, syllables: int = 3) -> str:
    """Returns an invented word; words with equally many syllables are equally long."""
    return "".join(rng.choice(_CONSONANTS) + rng.choice(_VOWELS) for _ in range(syllables))


def other_words(rng: random.Random, taken: Collection[str]) -> Iterator[str]:
    """Yields different words without end; none of them, and no part of one, is ``taken``.

    Plain words come first, then words of two parts, then of three.
    """
    plain = [word for word in WORDS if word not in taken]
    rng.shuffle(plain)
    yield from plain
    seen: set[str] = set()
    while True:
        parts = [*rng.choices(ADJECTIVES, k=1 if len(seen) < MAX_PAIRS else 2), rng.choice(NOUNS)]
        word = "-".join(parts)
        if word not in seen and not any(part in taken for part in parts):
            seen.add(word)
            yield word
