"""One connection of a browser: it must say in time what it wants, read in time what it asked for, or it is closed."""

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

MOST = 256
"""Connections at a time: a process has some thousand open files, and needs some for itself."""
ASKING = 15.0
"""Seconds from the first byte of a request, or from the start of a connection, to the end of the request's head."""
READING = 120.0
"""Seconds in which a client must take what was written to it."""


class Connection(H11Protocol):
    """A connection as uvicorn has it, which by itself waits forever for the rest of a head and for a slow reader."""

    _alarm: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """Begin to wait for a request, unless there are too many already."""
        super().connection_made(transport)
        if len(self.connections) > MOST:
            transport.abort()
        else:
            self._close_after(ASKING)

    def data_received(self, data: bytes) -> None:
        """Take what comes; between two requests it is the beginning of one, or the rest of one that was refused."""
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_waiting()
        elif self._alarm is None:
            self._close_after(ASKING)

    def pause_writing(self) -> None:
        """Wait for a client that does not read what it asked for."""
        super().pause_writing()
        self._close_after(READING)

    def resume_writing(self) -> None:
        """It has read."""
        super().resume_writing()
        self._stop_waiting()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the alarm."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _close_after(self, seconds: float) -> None:
        self._stop_waiting()
        self._alarm = self.loop.call_later(seconds, self.transport.abort)

    def _stop_waiting(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
