from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.operations import RouteOperation
from gateway.snapshots import (
    InvalidRoutingSnapshot,
    snapshot_signature,
    verify_and_parse_snapshot,
)

TOKEN = "a-token-of-the-tests"


def content_of(**changes: Any) -> dict[str, Any]:
    return {
        "version": 42,
        "issued_at": "2026-11-21T01:00:00+00:00",
        "max_stale_seconds": 86400,
        "gateways": 2,
        "routes": [
            {
                "name": "parser",
                "team": "team-a",
                "context_length": 512,
                "operations": ["chat", "telepathy"],
                "created": 1,
                "backends": [
                    {
                        "uid": "b",
                        "weight": 100,
                        "model": "m",
                        "endpoints": [{"uid": "e", "url": "http://127.0.0.1:1/", "credential": ""}],
                    }
                ],
            }
        ],
        "keys": [{"digest": "AB", "uid": "k", "team": "team-a", "routes": ["parser"]}],
        **changes,
    }


def body_of(**changes: Any) -> bytes:
    return json.dumps(content_of(**changes)).encode()


def test_a_signed_body_opens_and_unknown_operations_are_ignored() -> None:
    body = body_of()
    snapshot = verify_and_parse_snapshot(
        body, signature=snapshot_signature(body, token=TOKEN), token=TOKEN
    )
    assert snapshot.version == 42
    assert snapshot.stale_at == datetime(2026, 11, 22, 1, tzinfo=UTC)
    (route,), (key,) = snapshot.routes, snapshot.keys
    assert route.operations == {RouteOperation.CHAT}
    assert route.backends[0].endpoints[0].url == "http://127.0.0.1:1"
    assert key.digest == "ab"
    assert key.may_use(route)
    assert not key.may_use(replace(route, team="team-b"))
    assert not key.may_use(replace(route, name="other"))


@given(st.data())
def test_a_body_that_is_changed_anywhere_is_refused(data: st.DataObject) -> None:
    body = bytearray(body_of())
    signature = snapshot_signature(bytes(body), token=TOKEN)
    place = data.draw(st.integers(0, len(body) - 1))
    body[place] ^= data.draw(st.integers(1, 255))
    with pytest.raises(InvalidRoutingSnapshot, match="signature"):
        verify_and_parse_snapshot(bytes(body), signature=signature, token=TOKEN)


@pytest.mark.parametrize(
    "signature", ["", "00", "é", snapshot_signature(body_of(), token="another")]
)
def test_another_signature_is_refused(signature: str) -> None:
    with pytest.raises(InvalidRoutingSnapshot, match="signature"):
        verify_and_parse_snapshot(body_of(), signature=signature, token=TOKEN)


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"version": "42"}, "snapshot.version"),
        ({"version": True}, "snapshot.version"),
        ({"max_stale_seconds": -1}, "snapshot.max_stale_seconds"),
        ({"issued_at": "yesterday"}, "snapshot.issued_at"),
        ({"issued_at": "2026-11-21T01:00:00"}, "timezone"),
        ({"routes": {}}, "snapshot.routes"),
        ({"routes": [{"name": 1}]}, r"snapshot.routes\[0\]"),
        ({"keys": [{"digest": "a", "uid": "k", "team": "t", "routes": "x"}]}, r"keys\[0\].routes"),
    ],
)
def test_signed_invalid_snapshot_is_refused_with_path(changes: dict[str, Any], place: str) -> None:
    body = body_of(**changes)
    with pytest.raises(InvalidRoutingSnapshot, match=place):
        verify_and_parse_snapshot(
            body, signature=snapshot_signature(body, token=TOKEN), token=TOKEN
        )


def test_a_replayed_snapshot_does_not_supersede_and_a_restored_control_plane_does() -> None:
    body = body_of()
    current = verify_and_parse_snapshot(
        body, signature=snapshot_signature(body, token=TOKEN), token=TOKEN
    )
    older = replace(current, version=41, issued_at=current.issued_at - timedelta(seconds=1))
    restored = replace(current, version=7, issued_at=current.issued_at + timedelta(seconds=1))
    skewed = replace(current, version=43, issued_at=current.issued_at - timedelta(seconds=1))
    assert not current.supersedes(current)
    assert not older.supersedes(current)
    assert restored.supersedes(current)
    assert skewed.supersedes(current)
