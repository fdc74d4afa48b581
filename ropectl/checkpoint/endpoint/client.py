"""JSON over HTTP to one server, with every fault in our own words."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import urlsplit

from ropectl.errors import ConfigError, MeasurementError
from ropectl.printable import shorten, shown

#: Longest answer that is read: log-probabilities of a million tokens are shorter [bytes].
MAX_ANSWER = 1 << 28

#: Longest message of a server that is passed on [characters].
_MESSAGE_WIDTH = 300

_LOCKED = (401, 403)


class Refusal(Exception):
    """An answer other than success.

    Args:
        status: HTTP status.
        message: What the server said, in a line.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows nobody: a key must not travel to another host."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


class Client:
    """Asks one server.

    Args:
        url: Its address: ``http`` or ``https``, host and port, with or without ``/v1``.
        key: Sent as a bearer token; None for none.
        timeout: Longest wait for a sign of life [seconds].

    Raises:
        ConfigError: If the address cannot be one.
    """

    def __init__(self, url: str, key: str | None = None, timeout: float = 600.0) -> None:
        self.url = base_url(url)
        self._headers = {"Content-Type": "application/json", "User-Agent": "ropectl"}
        if key is not None:
            self._headers["Authorization"] = f"Bearer {key}"
        self._timeout = timeout
        self._opener = urllib.request.build_opener(_NoRedirect)

    def find(self, path: str) -> Any:
        """Returns the JSON at a path; None where there is none.

        Raises:
            ConfigError: If nothing answers, or the server asks for a key.
        """
        try:
            return self._ask(path, None)
        except Refusal:
            return None

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Returns the answer to a request.

        Raises:
            Refusal: If the server says no.
            ConfigError: If nothing answers, or the server asks for a key.
            MeasurementError: If the answer is no JSON object, or too long.
        """
        answer = self._ask(path, body)
        if not isinstance(answer, dict):
            raise MeasurementError(f"{self.url}{path} answered with something else than a JSON object.")
        return answer

    def _ask(self, path: str, body: dict[str, Any] | None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, self._headers)
        try:
            with self._opener.open(request, timeout=self._timeout) as answer:
                return self._read(path, answer, is_needed=body is not None)
        except urllib.error.HTTPError as error:
            raise self._refusal(error) from None
        except TimeoutError:
            raise self._too_slow() from None
        except (urllib.error.URLError, OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", error)
            if isinstance(reason, TimeoutError):
                raise self._too_slow() from None
            text = getattr(reason, "strerror", None) or reason or type(error).__name__
            raise ConfigError(
                f"No server answers at {self.url}: {shorten(str(text), _MESSAGE_WIDTH)}.",
                "Start it, or give its address: --endpoint http://HOST:PORT",
            ) from None

    def _read(self, path: str, answer: http.client.HTTPResponse, is_needed: bool) -> Any:
        data = answer.read(MAX_ANSWER + 1)
        if len(data) > MAX_ANSWER:
            raise MeasurementError(f"{self.url}{path} answered with more than {MAX_ANSWER >> 20} MiB.")
        try:
            return json.loads(data)
        except (ValueError, RecursionError):
            if not is_needed:
                return None
            raise MeasurementError(f"{self.url}{path} answered with something else than JSON.") from None

    def _refusal(self, error: urllib.error.HTTPError) -> Exception:
        with error:
            text = error.read(1 << 16).decode("utf-8", "replace")
        if error.code in _LOCKED:
            return ConfigError(
                f"{self.url} asks for a key (HTTP {error.code}).",
                "Name the environment variable that holds it: --api-key-env NAME",
            )
        if 300 <= error.code < 400:
            return ConfigError(
                f"{self.url} sends on to {shown(error.headers.get('Location'))}.", "Give the server's own address."
            )
        return Refusal(error.code, shorten(_message(text) or f"HTTP {error.code}", _MESSAGE_WIDTH))

    def _too_slow(self) -> MeasurementError:
        return MeasurementError(
            f"{self.url} did not answer within {self._timeout:g} seconds.",
            "Allow more with --timeout, or ask for less: --length",
        )


def base_url(url: str) -> str:
    """Returns an address without what follows the server's root.

    Raises:
        ConfigError: If it is not http or https with a host, or holds a password or a query.
    """
    hint = "Type for example: --endpoint http://localhost:8000"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ConfigError(f"{shown(url)} is not an address: {error}.", hint) from None
    if parts.scheme not in ("http", "https") or not parts.hostname or any(ord(c) <= 32 or ord(c) > 126 for c in url):
        raise ConfigError(f"{shown(url)} is not the http or https address of a server.", hint)
    if parts.username is not None or parts.password is not None:
        raise ConfigError(
            "The address holds a user name or a password.", "Keys stand in an environment variable: --api-key-env NAME"
        )
    if parts.query or parts.fragment:
        raise ConfigError(f"{shown(url)} holds more than an address.", hint)
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    path = parts.path.rstrip("/").removesuffix("/completions").removesuffix("/v1").rstrip("/")
    return f"{parts.scheme}://{host}{'' if port is None else f':{port}'}{path}"


def _message(text: str) -> str:
    """Returns what an error's body says, in the forms that servers use."""
    try:
        found = json.loads(text)
    except ValueError:
        return text.strip()
    for key in ("error", "detail", "message"):
        if isinstance(found, dict) and key in found:
            found = found[key]
    return str(found)
