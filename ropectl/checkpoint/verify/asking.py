"""Asks a running server for the log-probabilities of a text, as much of it as the server takes."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable

from ropectl.checkpoint.endpoint.client import Refusal
from ropectl.checkpoint.endpoint.server import Server
from ropectl.checkpoint.verify.answer import Answer
from ropectl.checkpoint.verify.passages import below_and_beyond, spread
from ropectl.errors import ConfigError, MeasurementError
from ropectl.records import AskedServer
from ropectl.reporter import Reporter

#: Tokens compared where each takes a request of its own.
FEW_POSITIONS = 128

#: The shortest text that says anything [tokens].
SHORTEST = 8

#: How servers say their context in a refusal.
_CONTEXT = re.compile(r"context (?:length|size|window)\D{0,40}?(\d{1,9})", re.IGNORECASE)

#: HTTP statuses of a text that is too long.
_TOO_LONG = (400, 413, 422)


def read_key(name: str | None) -> str | None:
    """Returns the key in an environment variable; it is never shown, and neither is a name that may be a key itself.

    Raises:
        ConfigError: If there is no such variable, or it cannot be sent.
    """
    if name is None:
        return None
    key = os.environ.get(name, "") if name.isidentifier() else ""
    if not key:
        raise ConfigError(
            "The environment variable that --api-key-env names is not set.",
            "Set it first, and give its name, not the key: --api-key-env NAME",
        )
    if any(not 32 < ord(letter) < 127 for letter in key):
        raise ConfigError("The key that --api-key-env names holds spaces or letters that no header can carry.")
    return key


def ask_server(
    server: Server,
    make_ids: Callable[[int], list[int]],
    length: int,
    trained: int,
    wanted: int | None,
    reporter: Reporter,
) -> Answer:
    """Returns what a server computes.

    Args:
        server: The server.
        make_ids: Returns so many tokens of the text.
        length: How many are asked for [tokens].
        trained: The trained length [tokens].
        wanted: How many tokens are compared; None for all, or few where each takes a request.
        reporter: Shows progress.

    Raises:
        MeasurementError: If it gives no log-probabilities.
        ConfigError: If what it takes is too short to say anything.
    """
    context = server.limit
    fitting = length if context is None else min(length, context - 1)  # it generates one more
    try:
        return _ask(server, make_ids, fitting, length, context, trained, wanted, reporter)
    except Refusal as refusal:
        found = _CONTEXT.search(refusal.message) if refusal.status in _TOO_LONG else None
        if found is None or int(found[1]) - 1 >= fitting:
            raise _refused(server, refusal) from None
    context = int(found[1])
    try:
        return _ask(server, make_ids, context - 1, length, context, trained, wanted, reporter)
    except Refusal as refusal:
        raise _refused(server, refusal) from None


def _ask(
    server: Server,
    make_ids: Callable[[int], list[int]],
    fitting: int,
    length: int,
    context: int | None,
    trained: int,
    wanted: int | None,
    reporter: Reporter,
) -> Answer:
    if fitting < SHORTEST:
        raise ConfigError(
            f"{server.client.url} takes {context} tokens: too few to say anything.", "Start it with a larger context."
        )
    ids = make_ids(fitting)
    few = FEW_POSITIONS if server.one_by_one and wanted is None else wanted
    passages = below_and_beyond(len(ids), spread(len(ids), few), trained)
    # Where the cache holds what was read, a longer passage costs only what it adds.
    total = len(ids) if server.one_by_one else sum(passage.num_tokens for passage in passages)
    reporter.start(f"{len(ids)} tokens at {server.client.url}", float(total))
    logprobs: list[float] = []
    for passage in passages:
        logprobs += server.score(ids[: passage.num_tokens], passage.positions, reporter.advance)
    if not all(math.isfinite(value) for value in logprobs):
        raise MeasurementError(f"{server.client.url} returned log-probabilities that are no numbers.")
    capped = context if fitting < length else None
    version = f"{server.kind} {server.version}".strip()
    return Answer(server.kind, version, ids, passages, logprobs, described(server, context), capped)


def described(server: Server, context: int | None) -> AskedServer:
    """Returns a server as records hold it."""
    return AskedServer(
        url=server.client.url,
        kind=server.kind,
        version=server.version,
        model=server.model,
        context=context,
        details=dict(server.details),
        evidence=server.evidence,
    )


def _refused(server: Server, refusal: Refusal) -> MeasurementError:
    return MeasurementError(
        f"{server.client.url} refuses to score the text (HTTP {refusal.status}): {refusal.message}",
        "If the text is too long for it: --length N",
    )
