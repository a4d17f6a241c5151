"""The server as a process: a socket, who may come, the log, and a clean end."""

import logging
import secrets
import socket
import webbrowser
from collections.abc import Callable, Mapping
from ipaddress import ip_address
from urllib.parse import quote

from ..capture import InstrumentedModel
from ..errors import BadInput
from .desk import Desk
from .guard import Guard

MEMORY = 1_000_000_000
UPLOAD_BYTES = 64_000_000
LAST_PORT = 65_535
PATIENCE = 3
"""Seconds that open connections have after Ctrl-C."""


def serve(
    models: Mapping[str, InstrumentedModel],
    listening: socket.socket,
    *,
    host: str = "127.0.0.1",
    token: str | None = None,
    memory: int = MEMORY,
    open_browser: bool = False,
    tell: Callable[[str], None] = lambda _: None,
) -> None:
    """Serve the app at a socket until it is stopped. `tell` is given the address, once it can be opened.

    An address other than the machine's own loopback needs a token; one is made where none is given.
    """
    try:
        import uvicorn

        from .requests import Connection
        from .server import build
    except ImportError as error:
        raise BadInput("The app needs FastAPI and uvicorn: pip install 'attnscope[app]'.") from error

    if token is None and not is_loopback(host):
        token = secrets.token_urlsafe(24)
    desk = Desk(models, memory)
    servers: list[uvicorn.Server] = []
    service = build(desk, UPLOAD_BYTES, lambda: servers[0].should_exit)
    names = {socket.gethostname(), host}
    guarded = Guard(service, token=token, names=names, upload_bytes=UPLOAD_BYTES)
    address = address_of(host, listening.getsockname()[1], token)
    _log_to_stderr()
    config = uvicorn.Config(
        guarded,
        http=Connection,
        ws="none",
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=PATIENCE,
        server_header=False,
    )
    servers.append(uvicorn.Server(config))
    tell(address)
    if open_browser:
        webbrowser.open(address)  # the socket listens already: the browser waits until it is answered
    try:
        servers[0].run(sockets=[listening])
    except KeyboardInterrupt:
        pass  # uvicorn hands Ctrl-C on after it has shut down
    finally:
        desk.close()
        listening.close()


def listen_at(host: str, port: int) -> socket.socket:
    """A socket that listens there, or a sentence."""
    if not 0 <= port <= LAST_PORT:
        raise BadInput(f"There is no port {port}: choose one up to {LAST_PORT}, or 0 for any that is free.")
    try:
        family, kind, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind)
    except OSError as error:
        raise BadInput(f"The server cannot listen at {host}: {error.strerror}.") from None
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind(address)
        listening.listen()
    except OSError as error:
        listening.close()
        raise BadInput(
            f"The server cannot listen at {host}, port {port} ({error.strerror}): choose another with --port, or 0 for"
            " any that is free."
        ) from None
    return listening


def is_loopback(host: str) -> bool:
    """Whether only this machine can come to an address.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def address_of(host: str, port: int, token: str | None) -> str:
    """What to type into a browser.

    >>> address_of("127.0.0.1", 8765, None)
    'http://127.0.0.1:8765/'
    """
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{port}/" + (f"?token={quote(token, safe='')}" if token else "")


def exposure(host: str) -> str | None:
    """What it means to listen there, if others can come.

    >>> exposure("127.0.0.1")
    """
    if is_loopback(host):
        return None
    return (
        f"Others can come to {host}, and over plain HTTP: whoever can read the network reads the token and the texts."
        " Put a proxy with TLS before it, or listen at 127.0.0.1 and come by an ssh tunnel."
    )


def _log_to_stderr() -> None:
    """One line of JSON for each request that was refused or failed; `attnscope.access` has the others, at INFO."""
    access = logging.getLogger("attnscope.access")
    if not access.handlers:
        access.addHandler(logging.StreamHandler())
    access.setLevel(logging.WARNING)
    access.propagate = False
