"""What a gateway may serve: routes, endpoints, keys and limits, published by the control plane.

The body is JSON, signed with HMAC-SHA256 under the gateway's token. Nothing in a body is used
before its signature has been checked, whether it came over the network or from the copy on disk.
Fields and operations that this version does not know are ignored, so that the control plane can be
upgraded first.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from hashlib import sha256
from typing import Any


class SnapshotRefused(Exception):
    """A body is not signed by the control plane, or is not a snapshot."""


class Operation(StrEnum):
    """What a route can be asked to do."""

    CHAT = "chat"
    COMPLETIONS = "completions"


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One replica of a backend."""

    uid: str
    #: Scheme, host and port, without a trailing slash.
    url: str
    #: The bearer token that the engine requires; empty where it requires none.
    credential: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    uid: str
    #: Its share of the route's requests, relative to the other backends; 0 means none.
    weight: int
    #: The name under which the engine knows the model.
    model: str
    endpoints: tuple[Endpoint, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A public model name."""

    name: str
    team: str
    #: Tokens of prompt and completion together; None where it is not known.
    context_length: int | None
    operations: frozenset[Operation]
    #: Seconds since 1970, as OpenAI's ``created``.
    created: int
    backends: tuple[Backend, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """An API key; only its digest ever leaves the control plane."""

    #: SHA-256 of the whole key, in hexadecimal.
    digest: str
    uid: str
    team: str
    #: Names that narrow the key to some of its team's routes; None means all of them.
    routes: frozenset[str] | None = None
    expires_at: datetime | None = None
    #: Limits over all gateways together; None means no limit.
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    concurrency: int | None = None

    def may_use(self, route: Route) -> bool:
        return route.team == self.team and (self.routes is None or route.name in self.routes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    version: int
    issued_at: datetime
    max_stale: timedelta
    #: How many gateways share the limits.
    gateways: int
    routes: tuple[Route, ...]
    keys: tuple[Key, ...]

    @property
    def stale_at(self) -> datetime:
        """From this instant on nothing may be served from it."""
        return self.issued_at + self.max_stale

    def supersedes(self, other: Snapshot) -> bool:
        """Whether it was issued after ``other``.

        A replayed older body has neither a higher version nor a later instant. A control plane
        whose database was restored counts from a lower version, but still issues later.
        """
        return self.version > other.version or self.issued_at > other.issued_at


def signature_of(body: bytes, *, token: str) -> str:
    return hmac.new(token.encode(), body, sha256).hexdigest()


def open_snapshot(body: bytes, *, signature: str, token: str) -> Snapshot:
    """The snapshot in a signed body.

    :raises SnapshotRefused: if the signature does not fit the body, or the body is not a snapshot.
    """
    # Compared as bytes: compare_digest refuses text that is not ASCII, which a forger may well
    # send.
    if not hmac.compare_digest(
        signature_of(body, token=token).encode(), signature.strip().lower().encode()
    ):
        raise SnapshotRefused("the signature does not fit the body and the gateway's token")
    try:
        content = json.loads(body)
    except ValueError as error:
        raise SnapshotRefused(f"the signed body is not JSON: {error}") from error
    if not isinstance(content, dict):
        raise SnapshotRefused("the signed body is not a JSON object")
    return _snapshot(_Reader(content, "snapshot"))


class _Reader:
    """Typed access to a JSON object that names the place of what does not fit."""

    def __init__(self, content: Mapping[str, Any], place: str) -> None:
        self._content = content
        self._place = place

    def _refuse(self, name: str, expected: str) -> SnapshotRefused:
        found = self._content.get(name)
        return SnapshotRefused(
            f"{self._place}.{name} must be {expected}; it is {type(found).__name__}"
        )

    def text(self, name: str) -> str:
        value = self._content.get(name)
        if not isinstance(value, str):
            raise self._refuse(name, "text")
        return value

    def count(self, name: str) -> int:
        value = self.optional_count(name)
        if value is None:
            raise self._refuse(name, "a whole number of at least 0")
        return value

    def optional_count(self, name: str) -> int | None:
        value = self._content.get(name)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise self._refuse(name, "a whole number of at least 0")
        return value

    def instant(self, name: str) -> datetime:
        value = self.optional_instant(name)
        if value is None:
            raise self._refuse(name, "an ISO 8601 instant")
        return value

    def optional_instant(self, name: str) -> datetime | None:
        value = self._content.get(name)
        if value is None:
            return None
        try:
            instant = datetime.fromisoformat(value)
        except (TypeError, ValueError):
            raise self._refuse(name, "an ISO 8601 instant") from None
        if instant.tzinfo is None:
            raise self._refuse(name, "an instant with an offset from UTC")
        return instant

    def texts(self, name: str) -> list[str]:
        value = self._content.get(name)
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self._refuse(name, "a list of texts")
        return value

    def optional_texts(self, name: str) -> list[str] | None:
        return None if self._content.get(name) is None else self.texts(name)

    def objects(self, name: str) -> list[_Reader]:
        value = self._content.get(name)
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise self._refuse(name, "a list of objects")
        return [_Reader(item, f"{self._place}.{name}[{index}]") for index, item in enumerate(value)]


def _snapshot(reader: _Reader) -> Snapshot:
    return Snapshot(
        version=reader.count("version"),
        issued_at=reader.instant("issued_at"),
        max_stale=timedelta(seconds=reader.count("max_stale_seconds")),
        gateways=max(1, reader.count("gateways")),
        routes=tuple(_route(route) for route in reader.objects("routes")),
        keys=tuple(_key(key) for key in reader.objects("keys")),
    )


def _route(reader: _Reader) -> Route:
    known = {operation.value for operation in Operation}
    return Route(
        name=reader.text("name"),
        team=reader.text("team"),
        context_length=reader.optional_count("context_length") or None,
        operations=frozenset(
            Operation(name) for name in reader.texts("operations") if name in known
        ),
        created=reader.count("created"),
        backends=tuple(
            Backend(
                uid=backend.text("uid"),
                weight=backend.count("weight"),
                model=backend.text("model"),
                endpoints=tuple(_endpoint(endpoint) for endpoint in backend.objects("endpoints")),
            )
            for backend in reader.objects("backends")
        ),
    )


def _endpoint(reader: _Reader) -> Endpoint:
    url = reader.text("url")
    if not url.startswith(("http://", "https://")):
        raise SnapshotRefused("an endpoint's url must start with http:// or https://")
    return Endpoint(
        uid=reader.text("uid"), url=url.rstrip("/"), credential=reader.text("credential")
    )


def _key(reader: _Reader) -> Key:
    routes = reader.optional_texts("routes")
    return Key(
        digest=reader.text("digest").lower(),
        uid=reader.text("uid"),
        team=reader.text("team"),
        routes=None if routes is None else frozenset(routes),
        expires_at=reader.optional_instant("expires_at"),
        requests_per_minute=reader.optional_count("requests_per_minute"),
        tokens_per_minute=reader.optional_count("tokens_per_minute"),
        concurrency=reader.optional_count("concurrency"),
    )
