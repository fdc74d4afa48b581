"""The registry of perplexity protocols.

Every module in ``ropectl/evaluate/perplexity/protocols`` is scanned, and every module that an installed package names
under the entry-point group ``ropectl.protocols``.
"""

from __future__ import annotations

from functools import cache

from ropectl.discovery import find_classes
from ropectl.evaluate.perplexity import protocols
from ropectl.evaluate.perplexity.protocol import PerplexityProtocol
from ropectl.names import unknown_choice

ENTRY_POINT_GROUP = "ropectl.protocols"

#: This one comes first in lists: it is the default.
FIRST = "prefix"


@cache
def all_protocols() -> dict[str, PerplexityProtocol]:
    """Returns every known protocol by name.

    Raises:
        ConfigError: If two protocols share a name.
    """
    found = find_classes(protocols, PerplexityProtocol, ENTRY_POINT_GROUP, "protocols")  # type: ignore[type-abstract]
    return {name: found[name]() for name in sorted(found, key=lambda name: (name != FIRST, name))}


def find_protocol(name: str) -> PerplexityProtocol:
    """Returns a protocol by its name.

    Raises:
        ConfigError: If there is none of that name.
    """
    known = all_protocols()
    if name not in known:
        raise unknown_choice("protocol", name, known)
    return known[name]
