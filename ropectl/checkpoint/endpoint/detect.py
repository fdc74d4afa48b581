"""Finds out which server answers at an address."""

from __future__ import annotations

from ropectl.checkpoint.endpoint.client import Client
from ropectl.checkpoint.endpoint.llama_server import LlamaServer
from ropectl.checkpoint.endpoint.openai_server import OpenAiServer, VllmServer
from ropectl.checkpoint.endpoint.server import Server
from ropectl.checkpoint.endpoint.sglang_server import SglangServer
from ropectl.errors import ConfigError

#: In the order in which they are tried; the last takes every server that lists models.
KINDS: tuple[type[Server], ...] = (LlamaServer, SglangServer, VllmServer, OpenAiServer)


def find_server(client: Client, wanted: str | None) -> Server:
    """Returns the server, asked what it is.

    Args:
        client: How it is reached.
        wanted: Name of the model that is asked; None for the only one.

    Raises:
        ConfigError: If nothing answers, or no such model is served there.
    """
    said = client.find("/v1/models")
    data = said.get("data") if isinstance(said, dict) else None
    listed = [each for each in data if isinstance(each, dict) and "id" in each] if isinstance(data, list) else []
    if not listed:
        raise ConfigError(
            f"{client.url} lists no models at /v1/models: it is not an OpenAI-compatible server.",
            "Give the address that such a server prints when it starts: --endpoint http://HOST:PORT",
        )
    found = (kind.recognise(client, listed, wanted) for kind in KINDS)
    return next(server for server in found if server is not None)
