from __future__ import annotations

from typing import Any

import pytest

from gateway.http_exchange import HttpExchange


def exchange(client: tuple[str, int] | None, *headers: tuple[bytes, bytes]) -> HttpExchange:
    async def unused(*_: Any) -> Any:
        raise AssertionError("nothing is read or sent")

    scope = {"method": "GET", "path": "/metrics", "headers": list(headers), "client": client}
    return HttpExchange(scope, unused, unused)


@pytest.mark.parametrize(
    ("address", "local"),
    [
        ("127.0.0.1", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("10.0.0.7", False),
        ("::ffff:10.0.0.7", False),
        ("/run/gateway.sock", False),
    ],
)
def test_only_direct_loopback_clients_are_local(address: str, local: bool) -> None:
    assert exchange((address, 1)).is_loopback is local


def test_client_without_address_is_not_local() -> None:
    assert not exchange(None).is_loopback


@pytest.mark.parametrize(
    ("header", "token"),
    [(b"Bearer abc", "abc"), (b"bearer  abc ", "abc"), (b"Basic abc", ""), (b"", "")],
)
def test_a_bearer_token_is_read_from_its_header(header: bytes, token: str) -> None:
    assert exchange(None, (b"authorization", header)).bearer == token
