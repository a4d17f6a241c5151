"""The server as a process: where it listens, who may come, how it ends; and a crowd."""

import asyncio
import re
import socket
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import httpx
import pytest
import uvicorn
from typer.testing import CliRunner

from attnscope import BadInput
from attnscope.app import requests
from attnscope.app.process import address_of, exposure, listen_at, serve
from attnscope.cli import app

from .conftest import Served

CLIENTS, SECONDS = 32, 3


def test_a_port_that_is_taken_gives_a_sentence():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(BadInput, match=rf"cannot listen at 127\.0\.0\.1, port {port} \(Address already in use\)"):
            listen_at("127.0.0.1", port)
        done = CliRunner().invoke(app, ["serve", "--port", str(port)])
    assert done.exit_code == 2
    assert done.stderr.strip().endswith("choose another with --port, or 0 for any that is free.")


@pytest.mark.parametrize(
    ("host", "port", "said"),
    [
        ("no such host", 80, "The server cannot listen at no such host: "),
        ("127.0.0.1", 99_999, "There is no port 99999: choose one up to 65535"),
        ("203.0.113.1", 0, "cannot listen at 203.0.113.1, port 0"),
    ],
)
def test_where_nobody_can_listen_a_sentence_says_so(host, port, said):
    with pytest.raises(BadInput, match=re.escape(said)):
        listen_at(host, port)


def test_the_address_is_what_a_browser_takes():
    assert address_of("::1", 80, "x") == "http://[::1]:80/?token=x"
    assert address_of("0.0.0.0", 80, "a+b/c=") == "http://0.0.0.0:80/?token=a%2Bb%2Fc%3D"  # noqa: S104 - an address


@pytest.mark.parametrize("token", ["", "a;b c", "\n"])
def test_a_token_that_protects_nothing_ends_with_a_sentence(token):
    done = CliRunner().invoke(app, ["serve", "--host", "0.0.0.0", "--port", "0", "--token", token])  # noqa: S104
    assert done.exit_code == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert "token" in done.stderr


def test_who_lets_others_come_is_told_what_plain_http_means():
    assert exposure("::1") is exposure("localhost") is None
    for host in ("0.0.0.0", "192.168.1.7", "some.host", ""):  # noqa: S104 - nobody listens
        assert "plain HTTP: whoever can read the network reads the token and the texts" in exposure(host)


def test_another_address_asks_for_a_token_and_ctrl_c_ends_it_cleanly_while_work_goes_on():
    running = Served("--host", "0.0.0.0")  # noqa: S104 - with a token, which is what is tested
    address, _, token = running.address.partition("/?token=")
    address = address.replace("0.0.0.0", "127.0.0.1")  # noqa: S104 - where we can reach it
    assert len(token) > 20
    assert running.process.poll() is None
    assert httpx.get(f"{address}/api/start").status_code == 401
    with httpx.Client(base_url=address, headers={"authorization": f"Bearer {token}"}, timeout=60) as client:
        assert client.get("/api/start").status_code == 200
        text = client.post("/api/texts", json={"model": "demo", "text": "the key " * 25}).json()
        with client.stream("POST", "/api/views", json={"text": text["id"], "view": "flow"}):
            assert running.stop() == 0
    said, *lines = running.log
    assert "over plain HTTP" in said
    assert not any("Traceback" in line or '"status": 200' in line for line in lines)
    assert any('"status": 401' in line for line in lines)


def test_without_the_extra_the_sentence_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with socket.socket() as listening, pytest.raises(BadInput, match=r"pip install 'attnscope\[app\]'"):
        serve({}, listening)


def served_by(served, *messages, seconds=5):
    """What a server answers to bytes on a socket of their own."""
    port = int(served.address.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as connected:
        for message in messages:
            connected.sendall(message)
        answer = b""
        with suppress(ConnectionResetError):  # what was sent beyond the answer
            while part := connected.recv(65_536):
                answer += part
        return answer


def test_a_chunked_upload_without_a_length_is_bounded(served):
    """Seventy megabytes in chunks: a sentence and no 500, and then the connection is as good as before."""
    part = b"%x\r\n%s\r\n" % (1_000_000, bytes(1_000_000))
    head = b"POST /api/files HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    after = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    answer = served_by(served, head, *[part] * 70, b"0\r\n\r\n", after, seconds=60)
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"takes at most 64,000,000 bytes" in answer
    assert b'"status":"ok"' in answer


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 200_000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"\x00" * 70_000 + b"\r\n\r\n",
    ],
    ids=["a head of 200 kB", "a length below nothing", "two hosts", "two lengths", "TLS", "zeros"],
)
def test_what_is_no_request_is_answered_as_such(served, request_bytes):
    assert served_by(served, request_bytes)[:12] in (b"HTTP/1.1 400", b"HTTP/1.1 408", b"HTTP/1.1 405", b"")
    assert httpx.get(f"{served.address}/health").status_code == 200


class Wire(asyncio.Transport):
    """A transport that remembers how it ended."""

    ended = None

    def get_extra_info(self, name, default=None):
        return ("127.0.0.1", 1) if name in {"peername", "sockname"} else default

    def abort(self):
        self.ended = "aborted"

    def close(self):
        self.ended = "closed"

    def is_closing(self):
        return self.ended is not None

    def pause_reading(self):
        pass

    resume_reading = pause_reading

    def write(self, data):
        pass


def wires(monkeypatch, act, count=1):
    """What became of connections on which something was done, a moment after their time was over."""
    monkeypatch.setattr(requests, "ASKING", 0.02)
    monkeypatch.setattr(requests, "READING", 0.02)

    async def run():
        async def answers_never(scope, receive, send):
            await asyncio.Event().wait()

        config = uvicorn.Config(answers_never, http=requests.Connection, ws="none", log_level="critical")
        state = uvicorn.server.ServerState()
        config.load()
        made = []
        for _ in range(count):
            made.append((requests.Connection(config, state, {}), Wire()))
            made[-1][0].connection_made(made[-1][1])
            act(made[-1][0])
        await asyncio.sleep(0.1)
        for task in state.tasks:
            task.cancel()
        return [wire.ended for _, wire in made]

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, run()).result()


WHOLE_HEAD = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


def test_a_connection_says_in_time_what_it_wants_or_is_closed(monkeypatch):
    assert wires(monkeypatch, lambda made: None) == ["aborted"]
    assert wires(monkeypatch, lambda made: made.data_received(WHOLE_HEAD[:20])) == ["aborted"]
    assert wires(monkeypatch, lambda made: made.data_received(WHOLE_HEAD)) == [None]


def test_a_client_that_does_not_read_is_closed(monkeypatch):
    def stops_reading(made):
        made.data_received(WHOLE_HEAD)
        made.pause_writing()

    def reads_on(made):
        stops_reading(made)
        made.resume_writing()

    assert wires(monkeypatch, stops_reading) == ["aborted"]
    assert wires(monkeypatch, reads_on) == [None]


def test_there_are_only_so_many_connections(monkeypatch):
    monkeypatch.setattr(requests, "MOST_CONNECTIONS", 3)
    assert wires(monkeypatch, lambda made: made.transport.ended or made.data_received(WHOLE_HEAD), 5) == [
        None,
        None,
        None,
        "aborted",
        "aborted",
    ]


def test_a_crowd_gets_answers_or_is_told_that_the_server_is_busy(served):
    """Thirty-two clients at once: nothing but answers and `busy`, and memory within the budget."""
    start, until = served.memory(), time.monotonic() + SECONDS

    def one(number):
        counts = {}
        with httpx.Client(base_url=served.address, timeout=60) as client:
            for turn in range(10_000):
                if time.monotonic() > until:
                    return counts
                text = f"the key to the cabinets near the {'doors ' * ((number + turn) % 20)}"
                answer = client.post("/api/texts", json={"model": "demo", "text": text})
                counts[answer.status_code] = counts.get(answer.status_code, 0) + 1
                if answer.status_code == 200:
                    asked = {"text": answer.json()["id"], "view": ("head", "flow", "model")[turn % 3]}
                    seen = client.post("/api/views", json=asked)
                    fine = seen.status_code in (404, 503) or '"view"' in seen.text
                    counts["view" if fine else seen.text] = counts.get("view" if fine else seen.text, 0) + 1
                else:
                    time.sleep(0.05)
        return counts

    with ThreadPoolExecutor(CLIENTS) as clients:
        found = list(clients.map(one, range(CLIENTS)))
    outcomes = {outcome for counts in found for outcome in counts}
    assert {200, "view"} <= outcomes <= {200, 503, "view"}
    assert httpx.get(f"{served.address}/health").json()["kept_bytes"] <= 50_000_000
    assert served.memory() - start < 400_000_000
