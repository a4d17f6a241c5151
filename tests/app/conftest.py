"""A desk with the shipped model, and a client that talks to the service around it."""

import re
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

import attnscope
from attnscope.app import Desk, Guard
from attnscope.app.server import build


@pytest.fixture(scope="session")
def demo():
    return attnscope.load("demo")


@pytest.fixture
def desk(demo):
    desk = Desk({"demo": demo}, budget=50_000_000)
    yield desk
    desk.close()


@contextmanager
def client_of(desk):
    service = build(desk, upload_bytes=1_000_000)
    with TestClient(Guard(service, upload_bytes=1_000_000), base_url="http://127.0.0.1") as client:
        yield client


@pytest.fixture
def client(desk):
    with client_of(desk) as client:
        yield client


@pytest.fixture
def own_client(desk):
    """The same, also in a file whose tests share a client of their own."""
    with client_of(desk) as client:
        yield client


class Served:
    """`attnscope serve` as a process of its own."""

    def __init__(self, *arguments: str) -> None:
        code = "from attnscope.cli import main; main()"
        command = [sys.executable, "-c", code, "serve", *arguments, "--port", "0"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        self.address = line.split()[1].rstrip("/") if line else ""
        self.log: list[str] = []
        self.reader = threading.Thread(target=lambda: self.log.extend(self.process.stderr))
        self.reader.start()

    def memory(self) -> int:
        """Bytes that the process has now."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return 1024 * int(re.search(r"VmRSS:\s+(\d+)", status)[1])

    def stop(self) -> int:
        """Press Ctrl-C and wait; the exit code."""
        self.process.send_signal(signal.SIGINT)
        code = self.process.wait(60)
        self.reader.join()
        self.process.stdout.close()
        self.process.stderr.close()
        return code


@pytest.fixture(scope="session")
def served():
    """The app with the shipped model, for all tests that need a real server."""
    running = Served("--memory", "50")
    yield running
    running.stop()
