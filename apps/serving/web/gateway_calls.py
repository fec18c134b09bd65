"""Calls to the gateway on behalf of a person at the playground.

They go the way that everybody's calls go, with a key of their own, so that limits hold and usage is
counted. The key is made for one person and team, ends by itself, and is kept nowhere but, sealed, in
that person's session.
"""

from __future__ import annotations

import base64
import http.client
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.sessions.backends.base import SessionBase

from apps.accounts.models import Team, User
from apps.serving.selectors.keys import PLAYGROUND_LIFETIME, PLAYGROUND_NAME
from apps.serving.services.keys import key_create
from controlplane.persistence.encryption import Undecryptable, decrypt, encrypt

#: A key with less than this left is replaced before it ends in the middle of an answer.
LEAST_LEFT = timedelta(minutes=2)
#: More than anybody types; a page that runs wild is stopped by it.
REQUESTS_PER_MINUTE = 60
CONCURRENCY = 4
#: How long a gateway may take to hear of a new key.
NEWS_WITHIN_SECONDS = 5.0
NEWS_PAUSE_SECONDS = 0.2
#: Without a byte for so long, the gateway is taken for gone.
SILENCE_SECONDS = 130.0
_SESSION = "playground_keys"


class GatewayAway(Exception):
    """The gateway cannot be reached."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the gateway says; ``chunks`` ends the call when it is closed."""

    status: int
    content_type: str
    #: Seconds until another try makes sense, where the gateway says so.
    retry_after: str
    chunks: Iterator[bytes]


def key_for(*, session: SessionBase, user: User, team: Team, at: datetime) -> str:
    """The text of a key that works for a while yet; made if there is none."""
    kept: dict[str, Any] = session.get(_SESSION, {})
    text = _unsealed(kept.get(team.uid), at=at)
    if text is None:
        expires_at = at + PLAYGROUND_LIFETIME
        _key, text = key_create(
            actor=user,
            team=team,
            name=f"{PLAYGROUND_NAME} ({user.username})"[:80],
            at=at,
            expires_at=expires_at,
            requests_per_minute=REQUESTS_PER_MINUTE,
            concurrency=CONCURRENCY,
        )
        sealed = base64.b64encode(encrypt(text.encode())).decode()
        session[_SESSION] = {
            **kept,
            team.uid: {"sealed": sealed, "expires_at": expires_at.isoformat()},
        }
    return text


def _unsealed(kept: Mapping[str, str] | None, *, at: datetime) -> str | None:
    if kept is None or datetime.fromisoformat(kept["expires_at"]) - at < LEAST_LEFT:
        return None
    try:
        return decrypt(base64.b64decode(kept["sealed"])).decode()
    except Undecryptable:
        return None


def chat(*, key: str, body: Mapping[str, Any]) -> Answer:
    """Ask the gateway; the answer arrives as it is read.

    A gateway that has not heard of the key yet is asked again for a few seconds.

    :raises GatewayAway: if it cannot be reached.
    """
    give_up = time.monotonic() + NEWS_WITHIN_SECONDS
    while True:
        connection, response = _post("/v1/chat/completions", key=key, body=body)
        if response.status != http.HTTPStatus.UNAUTHORIZED or time.monotonic() > give_up:
            return Answer(
                status=response.status,
                content_type=response.headers.get("Content-Type", "application/json"),
                retry_after=response.headers.get("Retry-After", ""),
                chunks=_chunks(connection, response),
            )
        connection.close()
        time.sleep(NEWS_PAUSE_SECONDS)


def _post(
    path: str, *, key: str, body: Mapping[str, Any]
) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
    parts = urlsplit(settings.NINEFOLD_GATEWAY_URL)
    secure = parts.scheme == "https"
    kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=SILENCE_SECONDS)
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    try:
        connection.request(
            "POST", parts.path.rstrip("/") + path, json.dumps(body).encode(), headers
        )
        return connection, connection.getresponse()
    except (OSError, http.client.HTTPException) as error:
        connection.close()
        raise GatewayAway(f"{settings.NINEFOLD_GATEWAY_URL}: {error}") from error


def _chunks(
    connection: http.client.HTTPConnection, response: http.client.HTTPResponse
) -> Iterator[bytes]:
    """Bytes as they come. Closing it hangs up, which ends the generation."""
    with closing(connection), closing(response):
        while chunk := response.read1(16384):
            yield chunk
