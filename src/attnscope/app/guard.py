"""What stands before every request: the right host, the token, a body that comes whole, safe headers, a line of log."""

import asyncio
import hmac
import ipaddress
import json
import logging
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Container, Iterable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs, urlsplit

from ..errors import BadInput

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

COOKIE = "attnscope_token"
TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]{1,200}")
"""What a cookie and an Authorization header carry alike, whoever writes and reads them."""
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
"""Uploads that are opened at a time. Of those that still come, no more bytes are held than these may have together."""
BUSY = "Other files are being opened: try again in a moment."
PAUSE, WHOLE = 15.0, 300.0
"""Seconds that a body may pause, and that it may take in all."""
log = logging.getLogger("attnscope.access")


class Refused(Exception):
    """Why a request goes no further, with the status that says so."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


def check_token(token: str) -> None:
    """Refuse a token that would open the door to all, or that a browser could not bring along."""
    if not token:
        raise BadInput("The token is empty, which would let everybody in: give one, or leave --token out.")
    if not TOKEN.fullmatch(token):
        raise BadInput(
            "A token travels in a link, a cookie and a header: give at most 200 letters, digits and -._~+/= for it."
        )


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
        if token is not None:
            check_token(token)
        self._application, self._token, self._upload_bytes = application, token, upload_bytes
        self._names = frozenset({"localhost", *(name.lower() for name in names)})
        self._opening = self._held = 0

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
            await self._check_and_pass_on(scope, receive, sending)
        except Refused as refused:
            await _refuse(sending, refused)
        finally:
            line = {
                "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                "method": scope["method"],
                "path": scope["path"][:200],
                "status": answer["status"],
                "milliseconds": round(1000 * (time.perf_counter() - start), 1),
                "bytes": answer["bytes"],
            }
            log.log(logging.WARNING if answer["status"] >= 400 else logging.INFO, json.dumps(line))

    async def _check_and_pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        if not is_known_host(headers.get("host", ""), self._names):
            raise Refused(421, "This server does not answer to that host name: use its address, or localhost.")
        if scope["method"] not in ("GET", "HEAD") and not _is_own_origin(headers):
            raise Refused(403, "This request comes from another site.")
        if self._token is not None and not await self._admit(scope, headers, send):
            return
        if scope["path"] not in UPLOADS:
            text = bytearray()
            async for part in _parts(scope["path"], headers, receive, BODY):
                text += part
            await self._application(scope, _replay(text, receive), send)
            return
        body = bytearray()
        try:
            async for part in _parts(scope["path"], headers, receive, self._upload_bytes):
                body += part
                self._held += len(part)
                if self._held > AT_ONCE * self._upload_bytes:
                    raise Refused(503, BUSY)
        finally:
            self._held -= len(body)
        if self._opening >= AT_ONCE:
            raise Refused(503, BUSY)
        self._opening += 1
        try:
            await self._application(scope, _replay(body, receive), send)
        finally:
            self._opening -= 1

    async def _admit(self, scope: Scope, headers: MutableMapping[str, str], send: Send) -> bool:
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
        raise Refused(401, "This server wants its token: open the link that it printed when it started.")


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
    try:
        return origin is None or urlsplit(origin).netloc == headers.get("host")
    except ValueError:  # "http://[" is the origin of nobody
        return False


def _cookie(headers: MutableMapping[str, str]) -> str:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return ""
    return "" if found is None else found.value


def _same(given: str, token: str | None) -> bool:
    return hmac.compare_digest(given.encode(), (token or "").encode())


async def _parts(path: str, headers: MutableMapping[str, str], receive: Receive, limit: int) -> AsyncIterator[bytes]:
    """The body as it comes: within the limit, whatever its header has said, and not too slowly."""
    too_large = Refused(413, f"This request is too large: {path[:200]} takes at most {limit:,} bytes.")
    told = headers.get("content-length", "")
    if re.fullmatch(r"[0-9]+", told) and (len(told) > len(str(limit)) or int(told) > limit):
        raise too_large
    clock = asyncio.get_running_loop().time
    until, size, more = clock() + WHOLE, 0, True
    while more:
        try:
            async with asyncio.timeout_at(min(clock() + PAUSE, until)):
                message = await receive()
        except TimeoutError:
            raise Refused(408, "This request did not come to its end in time: send it again.") from None
        if message["type"] == "http.disconnect":
            raise Refused(499, "The client went away before its request was whole.")
        part = message.get("body", b"")
        size, more = size + len(part), message.get("more_body", False)
        if size > limit:
            raise too_large
        yield part


def _replay(body: bytearray, receive: Receive) -> Receive:
    """The body in one piece, and then whatever happens after it."""
    given = [body]

    async def receiving() -> MutableMapping[str, Any]:
        return {"type": "http.request", "body": bytes(given.pop())} if given else await receive()

    return receiving


async def _refuse(send: Send, refused: Refused) -> None:
    body = json.dumps({"error": str(refused)}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if refused.status == 408:
        headers.append((b"connection", b"close"))  # nobody waits for the rest
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
