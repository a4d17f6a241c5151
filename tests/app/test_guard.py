"""Who may come: the right host, the right site, the token; and what is too large stays out."""

import asyncio
import json
import logging
from concurrent.futures import ThreadPoolExecutor

import pytest
from fastapi.testclient import TestClient

from attnscope.app import Guard
from attnscope.app.guard import is_known_host


async def echo(scope, receive, send):
    """Answers with the size of the body."""
    size, more = 0, True
    while more:
        message = await receive()
        size += len(message.get("body", b""))
        more = message.get("more_body", False)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
    await send({"type": "http.response.body", "body": json.dumps({"size": size}).encode()})


def guarded(base_url="http://127.0.0.1:8765", **options):
    return TestClient(Guard(echo, **options), base_url=base_url)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:8765", "localhost", "localhost:1", "[::1]:80", "192.168.1.7"])
def test_addresses_and_own_names_are_known(host):
    assert is_known_host(host, {"localhost"})


@pytest.mark.parametrize(
    "host", ["", "evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "[::1", "a:b:c"]
)
def test_a_name_that_points_here_by_itself_is_refused(host):
    assert not is_known_host(host, {"localhost"})
    answer = guarded().get("/health", headers={"host": host})
    assert (answer.status_code, list(answer.json())) == (421, ["error"])


def test_a_form_of_another_site_is_refused_and_our_own_page_is_not():
    client = guarded()
    assert client.post("/api/texts", headers={"origin": "http://evil.example"}).status_code == 403
    assert client.post("/api/texts", headers={"origin": "null"}).status_code == 403
    assert client.post("/api/texts", headers={"origin": "http://127.0.0.1:8765"}).status_code == 200
    assert client.get("/", headers={"origin": "http://evil.example"}).status_code == 200


def test_the_token_comes_by_link_as_a_cookie_or_in_a_header():
    client = guarded(token="secret")
    answer = client.get("/api/start")
    assert (answer.status_code, answer.json()["error"]) == (
        401,
        "This server wants its token: open the link that it printed when it started.",
    )
    assert client.get("/?token=wrong").status_code == 401
    assert client.get("/api/start?token=secret").status_code == 401
    assert client.get("/api/start", headers={"authorization": "Bearer secret"}).status_code == 200
    opened = client.get("/?token=secret", follow_redirects=False)
    assert (opened.status_code, opened.headers["location"]) == (303, "/")
    assert "HttpOnly" in opened.headers["set-cookie"]
    assert "SameSite=Strict" in opened.headers["set-cookie"]
    assert client.get("/api/start").status_code == 200


def test_a_body_is_counted_whatever_its_header_says():
    client = guarded(upload_bytes=1_000_000)
    assert client.post("/api/texts", content=b"x" * 256_000).json() == {"size": 256_000}
    assert client.post("/api/texts", content=b"x" * 256_001).status_code == 413
    refused = client.post("/api/texts", content=(b"x" * 100_000 for _ in range(3)))
    assert (refused.status_code, refused.json()["error"]) == (
        413,
        "This request is too large: /api/texts takes at most 256,000 bytes.",
    )
    assert client.post("/api/files", content=b"x" * 1_000_000).json() == {"size": 1_000_000}
    assert client.post("/api/files", content=b"x" * 1_000_001).status_code == 413


def test_every_answer_has_the_policy_also_a_refusal():
    client = guarded()
    for answer in (client.get("/"), client.get("/", headers={"host": "evil.example"})):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_each_request_is_one_line_of_json_without_what_was_typed(caplog):
    with caplog.at_level(logging.INFO, logger="attnscope.access"):
        guarded().post("/api/texts?token=secret", content=b"private words")
    (line,) = [json.loads(record.message) for record in caplog.records if record.name == "attnscope.access"]
    assert (line["method"], line["path"], line["status"]) == ("POST", "/api/texts", 200)
    assert line["bytes"] == len('{"size": 13}')
    assert "private" not in caplog.text
    assert "secret" not in caplog.text


def test_only_two_files_are_taken_in_at_a_time():
    """The third is told to come again; a place is free as soon as one is done."""

    async def run():
        go, answers = asyncio.Event(), []

        async def slow(scope, receive, send):
            await go.wait()
            await echo(scope, receive, send)

        guard = Guard(slow)
        scope = {
            "type": "http",
            "method": "POST",
            "path": "/api/files",
            "query_string": b"",
            "headers": [(b"host", b"localhost")],
        }

        async def receive():
            return {"type": "http.request", "body": b""}

        async def send(message):
            if message["type"] == "http.response.start":
                answers.append(message["status"])

        first = [asyncio.create_task(guard(scope, receive, send)) for _ in range(2)]
        await asyncio.sleep(0)
        await guard(scope, receive, send)
        go.set()
        await asyncio.gather(*first)
        await guard(scope, receive, send)
        return answers

    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(asyncio.run, run()).result() == [503, 200, 200, 200]
