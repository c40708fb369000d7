"""ASGI middleware that checks every request: host, token, and type, size and time of its body."""

from __future__ import annotations

import asyncio
import hmac
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, MutableMapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias, final

from elmo_framework.serve.answers import HttpError, internal_error
from elmo_framework.serve.server_metrics import ServerMetrics

_log = logging.getLogger(__name__)

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Application: TypeAlias = Callable[[Message, Receive, Send], Awaitable[None]]

_OPEN = ("/", "/health")
"""Paths without a token: a page that asks for it, and nothing that tells of a run."""

_MOST_DISCARDED = 64 << 20
"""Bytes of a refused body that are read, since many clients do not read an answer before."""

_GONE = 499
"""The status that nginx gives a request whose client does not wait for the answer."""

_HEADERS = (
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
)


@final
@dataclass(frozen=True)
class Guard:
    """ASGI middleware that answers what must not reach the application, and counts everything.

    Attributes:
        application: gets the requests that pass, with their whole body.
        server_metrics: counts the answers.
        paths: the first parts of the paths of the application, such as `/predict`.
        token: that a request needs; None for none.
        hosts: the names by which the server may be called; None for any.
        max_body: in bytes.
        timeout: seconds for the body of a request to arrive.
    """

    application: Application
    server_metrics: ServerMetrics
    paths: Collection[str]
    token: str | None
    hosts: Collection[str] | None
    max_body: int
    timeout: float

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        since, status = time.monotonic(), 0

        async def counted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), *_HEADERS]
            await send(message)

        try:
            await self._answer(scope, receive, counted)
        except Exception:  # noqa: BLE001 - no bug of ours may reach the client
            _log.exception("%s %s failed", scope["method"], scope["path"])
            if not status:
                await _refuse(internal_error(), counted)
        finally:
            # The path of `OPTIONS *` does not begin with a slash.
            path = f"/{scope['path'].removeprefix('/').partition('/')[0]}"
            path = path if path in self.paths else "other"
            self.server_metrics.count_request(path, status or _GONE, time.monotonic() - since)

    async def _answer(self, scope: Message, receive: Receive, send: Send) -> None:
        pairs = ((name.decode("latin-1"), value) for name, value in scope["headers"])
        headers = {name.lower(): value.decode("latin-1") for name, value in pairs}
        try:
            self._check(scope, headers)
        except HttpError as error:
            if "expect" not in headers:  # the client does not wait for leave to send the body
                with suppress(HttpError):
                    await self._body(receive)
            await _refuse(error, send)
            return
        try:
            body = await self._body(receive)
        except HttpError as error:
            await _refuse(error, send)
            return
        if body is not None:
            await self.application(scope, _replayed(body, receive), send)

    def _check(self, scope: Message, headers: Mapping[str, str]) -> None:
        """Raise HttpError for a request that is refused by its headers."""
        host = headers.get("host", "").rpartition("@")[2]
        if self.hosts is not None and _without_port(host) not in self.hosts:
            # A web page of another host, whose name leads here, must not read the answers.
            raise HttpError(400, "unknown host in the header 'Host'")
        is_open = self.token is None or scope["path"] in _OPEN
        if not (is_open or _is_token(headers.get("authorization", ""), self.token or "")):
            raise HttpError(401, "send the header 'Authorization: Bearer TOKEN'")
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length[:20]) > self.max_body:
            raise self._too_large()
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if scope["method"] == "POST" and kind != "application/json":
            raise HttpError(415, "the body must be JSON, with 'Content-Type: application/json'")

    async def _body(self, receive: Receive) -> bytes | None:
        """Return the whole body; None if the client is gone.

        Raises:
            HttpError: it is too large, or late.
        """
        try:
            return await asyncio.wait_for(self._received(receive), self.timeout)
        except TimeoutError:
            message = f"the body did not arrive within {self.timeout:g} seconds"
            raise HttpError(408, message) from None

    async def _received(self, receive: Receive) -> bytes | None:
        body, size, is_complete = bytearray(), 0, False
        while not is_complete and size < max(_MOST_DISCARDED, self.max_body):
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            chunk = message.get("body", b"")
            size += len(chunk)
            body += chunk if size <= self.max_body else b""
            is_complete = not message.get("more_body", False)
        if size > self.max_body:
            raise self._too_large()
        return bytes(body)

    def _too_large(self) -> HttpError:
        return HttpError(413, f"the body has more than {self.max_body:,} bytes")


async def _refuse(error: HttpError, send: Send) -> None:
    headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
    if error.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": error.body})


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Return what gives a body that was read before, and then what follows it."""
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return messages.pop() if messages else await receive()

    return replay


def _is_token(authorization: str, token: str) -> bool:
    scheme, _, value = authorization.partition(" ")
    # In constant time, so that the time of an answer tells nothing about the token.
    is_equal = hmac.compare_digest(value.strip().encode(), token.encode())
    return is_equal and scheme.lower() == "bearer"


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name.lower() if colon and port.isdecimal() else host.lower()
