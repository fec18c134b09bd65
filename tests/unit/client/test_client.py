"""Retries, errors and pages, over an in-memory transport."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import httpx
import pytest

from ninefold_client.client import Client, RetryTransport
from ninefold_client.errors import ApiError, ConnectionFailed, FieldError

Handler = Callable[[httpx.Request], httpx.Response]


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds that the client would have waited."""
    waited: list[float] = []
    monkeypatch.setattr("ninefold_client.client.time.sleep", waited.append)
    return waited


def client(handler: Handler, pauses: list[float]) -> Client:
    transport = RetryTransport(httpx.MockTransport(handler), sleep=pauses.append)
    return Client(url="http://ninefold.example", token="nfp-x", transport=transport)


def answering(*responses: httpx.Response | Exception) -> tuple[Handler, list[httpx.Request]]:
    remaining: Iterator[httpx.Response | Exception] = iter(responses)
    requests: list[httpx.Request] = []

    def handle(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        one = next(remaining)
        if isinstance(one, Exception):
            raise one
        return one

    return handle, requests


def test_an_idempotent_request_is_repeated_with_back_off(pauses: list[float]) -> None:
    handler, requests = answering(
        httpx.ConnectError("refused"),
        httpx.Response(503),
        httpx.Response(429, headers={"Retry-After": "7"}),
        httpx.Response(200, json={"ok": True}),
    )
    with client(handler, pauses) as one:
        assert one.get("me") == {"ok": True}
    assert len(requests) == 4
    assert 0.18 < pauses[0] < 0.32 < pauses[1] < 0.63
    assert pauses[2] == 7


def test_a_post_keeps_its_idempotency_key_and_a_patch_is_not_repeated(pauses: list[float]) -> None:
    handler, requests = answering(httpx.Response(502), httpx.Response(201, json={"uid": "1"}))
    with client(handler, pauses) as one:
        one.post("jobs", {"name": "a"})
    keys = {request.headers["Idempotency-Key"] for request in requests}
    assert (len(requests), len(keys)) == (2, 1)
    handler, requests = answering(httpx.ReadError("reset"))
    with client(handler, pauses) as one, pytest.raises(ConnectionFailed, match="cannot be reached"):
        one.patch("queues/1", {"weight": 2})
    assert len(requests) == 1


def test_a_problem_is_an_exception_with_code_message_and_fields(pauses: list[float]) -> None:
    problem = {
        "code": "spec-refused",
        "detail": "epochs must be > 0, got -1",
        "errors": [{"field": "epochs", "message": "must be > 0, got -1"}],
        "request_id": "5f0c",
    }
    handler, _ = answering(httpx.Response(422, json=problem))
    with client(handler, pauses) as one, pytest.raises(ApiError) as caught:
        one.post("jobs", {})
    error = caught.value
    assert (error.status, error.code, error.request_id) == (422, "spec-refused", "5f0c")
    assert error.errors == (FieldError(field="epochs", message="must be > 0, got -1"),)
    handler, _ = answering(httpx.Response(404, text="<html>"))
    with client(handler, pauses) as one, pytest.raises(ApiError, match="check that the address"):
        one.get("me")


def test_all_pages_are_read_from_the_own_address(pauses: list[float]) -> None:
    following = "http://other.example/api/v1/jobs?cursor=abc&page_size=200"
    handler, requests = answering(
        httpx.Response(200, json={"results": [{"uid": 1}], "next": following}),
        httpx.Response(200, json={"results": [{"uid": 2}], "next": None}),
    )
    with client(handler, pauses) as one:
        assert [row["uid"] for row in one.list_all("jobs", state="failed")] == [1, 2]
    assert str(requests[1].url) == "http://ninefold.example/api/v1/jobs?cursor=abc&page_size=200"
