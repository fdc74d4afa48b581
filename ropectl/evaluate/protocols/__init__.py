"""The protocols of perplexity: one file each, and its line in the table here."""

from __future__ import annotations

from ropectl.evaluate.protocols.key_tokens import KEY_TOKENS
from ropectl.evaluate.protocols.overlapping import OVERLAPPING
from ropectl.evaluate.protocols.prefix import PREFIX
from ropectl.evaluate.protocols.protocol import Protocol
from ropectl.evaluate.protocols.sliding import SLIDING
from ropectl.evaluate.protocols.tail import TAIL
from ropectl.names import unknown_choice

PROTOCOLS = {protocol.name: protocol for protocol in (PREFIX, SLIDING, OVERLAPPING, TAIL, KEY_TOKENS)}


def find_protocol(name: str) -> Protocol:
    """Returns a protocol by its name.

    Raises:
        ConfigError: If there is none of that name.
    """
    if name not in PROTOCOLS:
        raise unknown_choice("protocol", name, PROTOCOLS)
    return PROTOCOLS[name]
