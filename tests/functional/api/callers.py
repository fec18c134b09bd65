"""Programs that call REST with a personal token."""

from __future__ import annotations

import secrets
from typing import Any

from rest_framework.test import APIClient

from apps.accounts import services as accounts
from apps.accounts.models import Team, User
from controlplane.domain.common.permissions import Scope

API = "/api/v1"


def caller(user: User, *scopes: Scope, team: Team | None = None) -> APIClient:
    """A client that acts as the user; by default with everything that they may do."""
    _, text = accounts.token_create(
        user=user,
        name=f"test {secrets.token_hex(4)}",
        scopes=frozenset(scopes or {Scope.ALL}),
        team=team,
    )
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {text}")
    return client


def problem(response: Any, status: int, code: str) -> dict[str, Any]:
    """The problem that was answered, after a look at its form."""
    assert response.status_code == status, response.content
    assert response["Content-Type"] == "application/problem+json"
    body: dict[str, Any] = response.json()
    assert (body["status"], body["code"]) == (status, code), body
    assert body["type"].endswith(f"#{code}")
    assert body["detail"]
    return body


def wrong_fields(response: Any, status: int = 400, code: str = "invalid") -> dict[str, str]:
    """What was wrong, by field."""
    return {error["field"]: error["message"] for error in problem(response, status, code)["errors"]}


def body_of(response: Any) -> bytes:
    """The whole of an answer that is streamed; the test client closes it at its end."""
    return b"".join(response.streaming_content)
