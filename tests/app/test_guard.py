"""Who may come: the right host, the right site, the token; and what is too large stays out."""

import asyncio
import json
import logging
from concurrent.futures import ThreadPoolExecutor

import pytest
from fastapi.testclient import TestClient

from attnscope import BadInput
from attnscope.app import Guard, guard
from attnscope.app.guard import check_token, is_known_host


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
    for nobody in ("http://[", "http://[::1", "//", "http://127.0.0.1:8765@evil.example", "http://127.0.0.1:x"):
        assert client.post("/api/texts", headers={"origin": nobody}).status_code == 403, nobody
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


@pytest.mark.parametrize(
    "token",
    ["", " ", "\t", "a b", "a;b c", "a,b", 'a"b', "a'b", "a\\b", "a\nb", "a\x00b", "ä", "a&b", "a#b", "a%b", "x" * 201],
)
def test_a_token_that_opens_the_door_or_breaks_the_cookie_is_refused(token):
    with pytest.raises(BadInput, match=r"^(The token is empty|A token travels).*\.$"):
        Guard(echo, token=token)


@pytest.mark.parametrize("token", ["a", "A-z.0_9~", "b64+/==", "x" * 200])
def test_a_token_that_is_taken_lets_its_owner_in_and_nobody_else(token):
    check_token(token)
    client = guarded(token=token)
    assert client.get("/", params={"token": token}, follow_redirects=False).status_code == 303
    assert client.get("/api/start").status_code == 200
    client.cookies.clear()
    for wrong in ("", "Bearer", "Bearer ", f"Bearer {token}x", f"Bearer {token[:-1]}"):
        assert client.get("/api/start", headers={"authorization": wrong}).status_code == 401
    for wrong in ("attnscope_token", "attnscope_token=", 'attnscope_token=""', f"attnscope_token={token}x", "=", ";;="):
        assert client.get("/api/start", headers={"cookie": wrong}).status_code == 401


def test_a_token_is_compared_in_constant_time(monkeypatch):
    compared = []
    monkeypatch.setattr(guard.hmac, "compare_digest", lambda *pair: compared.append(pair) or False)
    assert guarded(token="secret").get("/?token=secret").status_code == 401
    assert (b"secret", b"secret") in compared


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


@pytest.mark.parametrize("length", ["9" * 5000, "256001", "-1", "x", "1e9"])
def test_a_length_that_is_none_or_too_large_is_answered_without_an_error(length):
    assert guarded().post("/api/texts", headers={"content-length": length}).status_code in (200, 413)


def asked_of(application, path="/api/files", *, parts, **options):
    """The answers of a guard to requests whose bodies come as these coroutines say, all at once."""

    async def run():
        guarding, answers = Guard(application, **options), {}

        async def one(number, coming):
            async def send(message):
                if message["type"] == "http.response.start":
                    answers[number] = message["status"]

            scope = {
                "type": "http",
                "method": "POST",
                "path": path,
                "query_string": b"",
                "headers": [(b"host", b"localhost")],
            }
            await guarding(scope, coming, send)

        await asyncio.gather(*(one(number, coming) for number, coming in enumerate(parts)))
        return [answers[number] for number in range(len(parts))]

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, run()).result()


def comes(*sizes, then=None):
    """A body in parts of these sizes, which then stalls, goes away, or ends."""
    messages = iter([{"type": "http.request", "body": bytes(size), "more_body": True} for size in sizes])

    async def receive():
        message = next(messages, None)
        if message is None and then == "stall":
            await asyncio.Event().wait()
        return message or {"type": "http.disconnect" if then == "leave" else "http.request"}

    return receive


def test_a_stalled_body_is_told_so_and_others_are_taken_meanwhile(monkeypatch):
    monkeypatch.setattr(guard, "PAUSE", 0.05)
    stalled = [comes(10, then="stall") for _ in range(5)]
    assert asked_of(echo, parts=[*stalled, comes(10), comes()]) == [408] * 5 + [200, 200]
    assert asked_of(echo, "/api/texts", parts=[comes(10, then="stall")]) == [408]


def test_a_body_that_drips_comes_to_its_end_in_time_or_is_refused(monkeypatch):
    monkeypatch.setattr(guard, "WHOLE", 0.05)

    async def drips():
        await asyncio.sleep(0.01)
        return {"type": "http.request", "body": b"x", "more_body": True}

    assert asked_of(echo, parts=[drips]) == [408]


def test_who_goes_away_is_not_answered_for():
    async def never(scope, receive, send):
        raise AssertionError("half a body was passed on")

    assert asked_of(never, parts=[comes(10, then="leave")]) == [499]


def test_bodies_that_still_come_are_held_within_the_limit_of_two(monkeypatch):
    """Three uploads of almost the limit at once: the third would be too much, and what was held is given back."""
    monkeypatch.setattr(guard, "PAUSE", 0.05)
    parts = [comes(90, then="stall"), comes(90, then="stall"), comes(90)]
    assert asked_of(echo, parts=parts, upload_bytes=100) == [408, 408, 503]
    assert asked_of(echo, parts=[comes(90), comes(90)], upload_bytes=100) == [200, 200]


def test_errors_are_written_and_the_rest_is_not(caplog):
    with caplog.at_level(logging.WARNING, logger="attnscope.access"):
        client = guarded()
        client.get("/client/app.js")
        client.get("/" + "x" * 5000, headers={"host": "evil.example"})
    (line,) = [json.loads(record.message) for record in caplog.records if record.name == "attnscope.access"]
    assert (line["status"], len(line["path"])) == (421, 200)


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
