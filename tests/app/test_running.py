"""The server as a process: where it listens, who may come, how it ends; and a crowd."""

import re
import socket
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from typer.testing import CliRunner

from attnscope import BadInput
from attnscope.app.running import address_of, bound, serve
from attnscope.cli import app

from .conftest import Served

CLIENTS, SECONDS = 32, 3


def test_a_port_that_is_taken_gives_a_sentence():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(BadInput, match=rf"cannot listen at 127\.0\.0\.1, port {port} \(Address already in use\)"):
            bound("127.0.0.1", port)
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
        bound(host, port)


def test_the_address_is_what_a_browser_takes():
    assert address_of("::1", 80, "x") == "http://[::1]:80/?token=x"


def test_another_address_asks_for_a_token_and_ctrl_c_ends_it_cleanly_while_work_goes_on():
    running = Served("--host", "0.0.0.0")  # noqa: S104 - with a token, which is what is tested
    address, _, token = running.address.partition("/?token=")
    address = address.replace("0.0.0.0", "127.0.0.1")  # noqa: S104 - where we can reach it
    assert len(token) > 20
    assert httpx.get(f"{address}/api/start").status_code == 401
    with httpx.Client(base_url=address, headers={"authorization": f"Bearer {token}"}, timeout=60) as client:
        assert client.get("/api/start").status_code == 200
        text = client.post("/api/texts", json={"model": "demo", "text": "the key " * 25}).json()
        with client.stream("POST", "/api/views", json={"text": text["id"], "view": "flow"}):
            assert running.stop() == 0
    assert not any("Traceback" in line for line in running.log)


def test_without_the_extra_the_sentence_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with socket.socket() as listening, pytest.raises(BadInput, match=r"pip install 'attnscope\[app\]'"):
        serve({}, listening)


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
