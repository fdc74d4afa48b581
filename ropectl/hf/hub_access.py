"""Asks only the hub's cache where there is no network, instead of half a minute of retries."""

from __future__ import annotations

import os
import socket
import sys
from threading import Thread
from urllib.parse import urlparse

#: Time after which a name server is taken to be slow, not absent [s].
_PATIENCE = 2.0

_PROXIES = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")


def hub_host() -> str:
    """Returns the host that the hub client asks."""
    return urlparse(os.environ.get("HF_ENDPOINT", "")).hostname or "huggingface.co"


def stay_offline_without_network() -> bool:
    """Tells the hub client to use its cache only, if its host has no address here; returns whether it did.

    Behind a proxy, names are looked up elsewhere, so a missing address means nothing.
    """
    if any(os.environ.get(name) for name in _PROXIES) or not _is_unknown(hub_host()):
        return False
    os.environ["HF_HUB_OFFLINE"] = "1"
    constants = sys.modules.get("huggingface_hub.constants")
    if constants is not None:  # it has read the environment already
        constants.HF_HUB_OFFLINE = True  # type: ignore[attr-defined]
    return True


def _is_unknown(host: str) -> bool:
    found: list[bool] = []

    def ask() -> None:
        try:
            socket.getaddrinfo(host, 443)
        except socket.gaierror:
            found.append(True)

    thread = Thread(target=ask, daemon=True)  # a name server that does not answer must not delay the command
    thread.start()
    thread.join(_PATIENCE)
    return bool(found)
