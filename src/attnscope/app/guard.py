"""What stands before every request: the right host, the token, the size of bodies, safe headers, one line of log."""

import hmac
import ipaddress
import json
import logging
import time
from collections.abc import Awaitable, Callable, Container, Iterable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs, urlsplit

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

COOKIE = "attnscope_token"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
BODY = 256_000
"""Bytes that a request may have."""
UPLOADS = ("/api/files", "/api/folders")
AT_ONCE = 2
"""Uploads that are taken in at a time: each is held in memory."""
log = logging.getLogger("attnscope.access")


class TooLarge(Exception):
    """A body that grew beyond its limit while it was read."""


class Guard:
    """The application behind its checks; plain ASGI."""

    def __init__(
        self,
        application: Application,
        *,
        token: str | None = None,
        names: Iterable[str] = (),
        upload_bytes: int = 64_000_000,
    ) -> None:
        self._application, self._token, self._upload_bytes = application, token, upload_bytes
        self._names = frozenset({"localhost", *names})
        self._uploading = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check, pass on, and log."""
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        start, answer = time.perf_counter(), {"status": 500, "bytes": 0}

        async def sending(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                answer["status"] = message["status"]
                present = {name.lower() for name, _ in message["headers"]}
                safe = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message["headers"] = [*message["headers"], *(pair for pair in safe if pair[0] not in present)]
            elif message["type"] == "http.response.body":
                answer["bytes"] += len(message.get("body", b""))
            await send(message)

        try:
            await self._checked(scope, receive, sending)
        finally:
            line = {
                "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                "method": scope["method"],
                "path": scope["path"],
                "status": answer["status"],
                "milliseconds": round(1000 * (time.perf_counter() - start), 1),
                "bytes": answer["bytes"],
            }
            log.info(json.dumps(line))

    async def _checked(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        if not is_known_host(headers.get("host", ""), self._names):
            await _refuse(send, 421, "This server does not answer to that host name: use its address, or localhost.")
            return
        if scope["method"] not in ("GET", "HEAD") and not _is_own_origin(headers):
            await _refuse(send, 403, "This request comes from another site.")
            return
        if self._token is not None and not await self._admitted(scope, headers, send):
            return
        uploads = scope["path"] in UPLOADS
        limit = self._upload_bytes if uploads else BODY
        too_large = f"This request is too large: {scope['path']} takes at most {limit:,} bytes."
        told = headers.get("content-length", "0")
        if told.isdigit() and int(told) > limit:
            await _refuse(send, 413, too_large)
            return
        if uploads and self._uploading >= AT_ONCE:
            await _refuse(send, 503, "Other files are being opened: try again in a moment.")
            return
        self._uploading += uploads
        try:
            await self._application(scope, _counted(receive, limit), send)
        except TooLarge:
            await _refuse(send, 413, too_large)
        finally:
            self._uploading -= uploads

    async def _admitted(self, scope: Scope, headers: MutableMapping[str, str], send: Send) -> bool:
        """Whether the request has the token; a link with the token is answered by a cookie and the plain address."""
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if scope["path"] == "/" and _same(given, self._token):
            cookie = f"{COOKIE}={self._token}; HttpOnly; SameSite=Strict; Path=/"
            reply = [(b"location", b"/"), (b"set-cookie", cookie.encode()), (b"content-length", b"0")]
            await send({"type": "http.response.start", "status": 303, "headers": reply})
            await send({"type": "http.response.body", "body": b""})
            return False
        bearer = headers.get("authorization", "").removeprefix("Bearer ")
        if _same(_cookie(headers), self._token) or _same(bearer, self._token):
            return True
        await _refuse(send, 401, "This server wants its token: open the link that it printed when it started.")
        return False


def is_known_host(host: str, names: Container[str]) -> bool:
    """Whether a Host header names this server: an address as numbers, or a name that it goes by.

    A page elsewhere can make its own name point to this machine, but it cannot make the browser send another name.

    >>> is_known_host("127.0.0.1:8000", {"localhost"}), is_known_host("evil.example", {"localhost"})
    (True, False)
    """
    try:
        name = urlsplit(f"//{host}").hostname
    except ValueError:
        return False
    if not name:
        return False
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return name in names
    return True


def _is_own_origin(headers: MutableMapping[str, str]) -> bool:
    """Whether a request that changes something comes from our own page, or from no page at all."""
    origin = headers.get("origin")
    return origin is None or urlsplit(origin).netloc == headers.get("host")


def _cookie(headers: MutableMapping[str, str]) -> str:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return ""
    return "" if found is None else found.value


def _same(given: str, token: str | None) -> bool:
    return hmac.compare_digest(given.encode(), (token or "").encode())


def _counted(receive: Receive, limit: int) -> Receive:
    """The body, as long as it stays within the limit, whatever its header has said."""
    read = 0

    async def receiving() -> MutableMapping[str, Any]:
        nonlocal read
        message = await receive()
        read += len(message.get("body", b""))
        if read > limit:
            raise TooLarge
        return message

    return receiving


async def _refuse(send: Send, status: int, sentence: str) -> None:
    body = json.dumps({"error": sentence}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
