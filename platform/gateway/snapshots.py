"""Snapshots of routes, endpoints, keys and limits: their format, and the long poll of the control plane.

The body is JSON, signed with HMAC-SHA256 under the gateway's token. Nothing in a body is used
before its signature has been checked, whether it came over the network or from the copy on disk.
Unknown fields and operations are ignored, so that the control plane can be upgraded first.

The last snapshot is stored on disk with its signature, so that a gateway can start while the control plane is
unreachable; it is verified like a response. A snapshot past its ``stale_at`` is never served, so a gateway
that cannot be informed of revoked keys stops serving by itself.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from random import SystemRandom
from typing import Any

import aiohttp

from gateway.durable_files import write_durably
from gateway.metrics import GatewayMetrics
from gateway.operations import RouteOperation


class InvalidRoutingSnapshot(Exception):
    """A body is not signed by the control plane, or is not a snapshot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotEndpoint:
    """One replica of a backend."""

    uid: str
    #: Scheme, host and port, without a trailing slash.
    url: str
    #: The bearer token that the engine requires; empty where it requires none.
    credential: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotBackend:
    uid: str
    #: Its share of the route's requests, relative to the other backends; 0 means none.
    weight: int
    #: The name under which the engine knows the model.
    model: str
    endpoints: tuple[SnapshotEndpoint, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotRoute:
    """A public model name."""

    name: str
    team: str
    #: Tokens of prompt and completion together; None where it is not known.
    context_length: int | None
    operations: frozenset[RouteOperation]
    #: Seconds since 1970, as OpenAI's ``created``.
    created: int
    backends: tuple[SnapshotBackend, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotKey:
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

    def may_use(self, route: SnapshotRoute) -> bool:
        return route.team == self.team and (self.routes is None or route.name in self.routes)


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutingSnapshot:
    version: int
    issued_at: datetime
    max_stale: timedelta
    #: How many gateways share the limits.
    gateways: int
    routes: tuple[SnapshotRoute, ...]
    keys: tuple[SnapshotKey, ...]

    @property
    def stale_at(self) -> datetime:
        """The instant from which on it must not be served."""
        return self.issued_at + self.max_stale

    def supersedes(self, other: RoutingSnapshot) -> bool:
        """Whether it was issued after ``other``.

        A replayed older body has neither a higher version nor a later instant. A control plane
        whose database was restored counts from a lower version, but still issues later.
        """
        return self.version > other.version or self.issued_at > other.issued_at


def snapshot_signature(body: bytes, *, token: str) -> str:
    return hmac.new(token.encode(), body, sha256).hexdigest()


def verify_and_parse_snapshot(body: bytes, *, signature: str, token: str) -> RoutingSnapshot:
    """The snapshot in a signed body.

    :raises InvalidRoutingSnapshot: if the signature does not fit the body, or the body is not a snapshot.
    """
    # Compared as bytes: compare_digest refuses text that is not ASCII, which a forger may well
    # send.
    if not hmac.compare_digest(
        snapshot_signature(body, token=token).encode(), signature.strip().lower().encode()
    ):
        raise InvalidRoutingSnapshot("the signature does not fit the body and the gateway's token")
    try:
        content = json.loads(body)
    except ValueError as error:
        raise InvalidRoutingSnapshot(f"the signed body is not JSON: {error}") from error
    if not isinstance(content, dict):
        raise InvalidRoutingSnapshot("the signed body is not a JSON object")
    return _read_snapshot(_SnapshotReader(content, "snapshot"))


class _SnapshotReader:
    """Typed access to a JSON object; errors name the path of the invalid value."""

    def __init__(self, content: Mapping[str, Any], path: str) -> None:
        self._content = content
        self._path = path

    def _refuse_field(self, name: str, expected: str) -> InvalidRoutingSnapshot:
        found = self._content.get(name)
        return InvalidRoutingSnapshot(
            f"{self._path}.{name} must be {expected}; it is {type(found).__name__}"
        )

    def text(self, name: str) -> str:
        value = self._content.get(name)
        if not isinstance(value, str):
            raise self._refuse_field(name, "text")
        return value

    def count(self, name: str) -> int:
        value = self.optional_count(name)
        if value is None:
            raise self._refuse_field(name, "a whole number of at least 0")
        return value

    def optional_count(self, name: str) -> int | None:
        value = self._content.get(name)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise self._refuse_field(name, "a whole number of at least 0")
        return value

    def instant(self, name: str) -> datetime:
        value = self.optional_instant(name)
        if value is None:
            raise self._refuse_field(name, "an ISO 8601 instant")
        return value

    def optional_instant(self, name: str) -> datetime | None:
        value = self._content.get(name)
        if value is None:
            return None
        try:
            instant = datetime.fromisoformat(value)
        except (TypeError, ValueError):
            raise self._refuse_field(name, "an ISO 8601 instant") from None
        if instant.tzinfo is None:
            raise self._refuse_field(name, "an instant with an offset from UTC")
        return instant

    def texts(self, name: str) -> list[str]:
        value = self._content.get(name)
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self._refuse_field(name, "a list of texts")
        return value

    def optional_texts(self, name: str) -> list[str] | None:
        return None if self._content.get(name) is None else self.texts(name)

    def objects(self, name: str) -> list[_SnapshotReader]:
        value = self._content.get(name)
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise self._refuse_field(name, "a list of objects")
        return [
            _SnapshotReader(item, f"{self._path}.{name}[{index}]")
            for index, item in enumerate(value)
        ]


def _read_snapshot(reader: _SnapshotReader) -> RoutingSnapshot:
    return RoutingSnapshot(
        version=reader.count("version"),
        issued_at=reader.instant("issued_at"),
        max_stale=timedelta(seconds=reader.count("max_stale_seconds")),
        gateways=max(1, reader.count("gateways")),
        routes=tuple(_read_route(route) for route in reader.objects("routes")),
        keys=tuple(_read_key(key) for key in reader.objects("keys")),
    )


def _read_route(reader: _SnapshotReader) -> SnapshotRoute:
    known = {operation.value for operation in RouteOperation}
    return SnapshotRoute(
        name=reader.text("name"),
        team=reader.text("team"),
        context_length=reader.optional_count("context_length") or None,
        operations=frozenset(
            RouteOperation(name) for name in reader.texts("operations") if name in known
        ),
        created=reader.count("created"),
        backends=tuple(
            SnapshotBackend(
                uid=backend.text("uid"),
                weight=backend.count("weight"),
                model=backend.text("model"),
                endpoints=tuple(
                    _read_endpoint(endpoint) for endpoint in backend.objects("endpoints")
                ),
            )
            for backend in reader.objects("backends")
        ),
    )


def _read_endpoint(reader: _SnapshotReader) -> SnapshotEndpoint:
    url = reader.text("url")
    if not url.startswith(("http://", "https://")):
        raise InvalidRoutingSnapshot("an endpoint's url must start with http:// or https://")
    return SnapshotEndpoint(
        uid=reader.text("uid"), url=url.rstrip("/"), credential=reader.text("credential")
    )


def _read_key(reader: _SnapshotReader) -> SnapshotKey:
    routes = reader.optional_texts("routes")
    return SnapshotKey(
        digest=reader.text("digest").lower(),
        uid=reader.text("uid"),
        team=reader.text("team"),
        routes=None if routes is None else frozenset(routes),
        expires_at=reader.optional_instant("expires_at"),
        requests_per_minute=reader.optional_count("requests_per_minute"),
        tokens_per_minute=reader.optional_count("tokens_per_minute"),
        concurrency=reader.optional_count("concurrency"),
    )


logger = logging.getLogger(__name__)

#: Open requests by uid of replicas that the gateway's snapshot no longer names, as a JSON object.
DRAINING_HEADER = "X-Ninefold-Draining"
_WAIT_SECONDS = 20
#: While replicas drain, so that the control plane soon learns of the end of their last request.
_DRAINING_WAIT_SECONDS = 2
_POLL_TIMEOUT = aiohttp.ClientTimeout(total=_WAIT_SECONDS + 10.0)
_MIN_BACKOFF_SECONDS = 0.25
_MAX_BACKOFF_SECONDS = 5.0
#: Least time between two requests for a newly issued snapshot while nothing has changed.
_RENEWAL_SECONDS = 60.0


class PollFailed(Exception):
    """The control plane answered with something that is not a snapshot."""


class SnapshotFeed:
    """Polls the control plane for new snapshots and installs them."""

    def __init__(
        self,
        *,
        url: str,
        token: str,
        headers: dict[str, str],
        copy: Path,
        install: Callable[[RoutingSnapshot], None],
        draining_requests: Callable[[], Mapping[str, int]],
        metrics: GatewayMetrics,
        wall: Callable[[], float],
    ) -> None:
        self._url = url
        self._token = token
        self._headers = headers
        self._copy = copy
        self._install = install
        self._draining_requests = draining_requests
        self._metrics = metrics
        self._wall = wall
        self._current: RoutingSnapshot | None = None
        self._renewed_at = 0.0

    def load_stored_snapshot(self) -> None:
        """Install the stored snapshot, if there is one and its signature is valid."""
        try:
            signature, _, body = self._copy.read_bytes().partition(b"\n")
        except FileNotFoundError:
            return
        except OSError:
            logger.exception("the copy of the snapshot cannot be read")
            return
        try:
            self._accept_snapshot(body, signature=signature.decode("ascii", "replace"))
        except InvalidRoutingSnapshot as refusal:
            self._metrics.snapshots.add("copy refused")
            logger.error("the copy of the snapshot is refused: %s", refusal)

    def _accept_snapshot(self, body: bytes, *, signature: str) -> bool:
        """Install the snapshot in the body if it is newer than the current one; whether it is."""
        snapshot = verify_and_parse_snapshot(body, signature=signature, token=self._token)
        if self._current is not None and not snapshot.supersedes(self._current):
            return False
        self._current = snapshot
        self._install(snapshot)
        return True

    async def run(self, session: aiohttp.ClientSession) -> None:
        """Poll until cancelled."""
        # Jitter, so that gateways do not all poll a restarted control plane at once.
        spread = SystemRandom()
        backoff = _MIN_BACKOFF_SECONDS
        while True:
            try:
                await self._poll_once(session)
                backoff = _MIN_BACKOFF_SECONDS
            except InvalidRoutingSnapshot as refusal:
                self._metrics.snapshots.add("refused")
                logger.error("a snapshot is refused, the old one stays: %s", refusal)
            except (PollFailed, aiohttp.ClientError, OSError) as error:
                self._metrics.snapshots.add("failed")
                logger.warning("no snapshot to be had: %r", error)
            else:
                continue
            await asyncio.sleep(backoff * spread.uniform(0.5, 1.0))
            backoff = min(backoff * 2, _MAX_BACKOFF_SECONDS)

    async def _poll_once(self, session: aiohttp.ClientSession) -> None:
        draining = self._draining_requests()
        parameters = {
            "after": self._version_to_poll_after(),
            "wait": _DRAINING_WAIT_SECONDS if draining else _WAIT_SECONDS,
        }
        # A header, which earlier control planes ignore.
        headers = {**self._headers, DRAINING_HEADER: json.dumps(draining)}
        async with session.get(
            self._url, params=parameters, headers=headers, timeout=_POLL_TIMEOUT
        ) as response:
            if response.status == 304:
                return
            if response.status != 200:
                raise PollFailed(f"the control plane answered with status {response.status}")
            body = await response.read()
            signature = response.headers.get("X-Ninefold-Signature", "")
        if not self._accept_snapshot(body, signature=signature):
            self._metrics.snapshots.add("not newer")
            return
        self._metrics.snapshots.add("installed")
        await asyncio.to_thread(self._store_on_disk, body, signature)

    def _version_to_poll_after(self) -> int:
        """The version after which the poll waits for a newer one.

        A 304 is not signed and so does not extend the validity of a snapshot: one that has reached half of its
        maximum age is requested again, whatever its version.
        """
        if self._current is None:
            return 0
        now = self._wall()
        age = now - self._current.issued_at.timestamp()
        due = age > self._current.max_stale.total_seconds() / 2
        if due and now - self._renewed_at >= _RENEWAL_SECONDS:
            self._renewed_at = now
            return 0
        return self._current.version

    def _store_on_disk(self, body: bytes, signature: str) -> None:
        try:
            write_durably(self._copy, signature.encode("latin-1") + b"\n" + body)
        except OSError:
            # The snapshot in memory is served; only a restart would miss the file.
            logger.exception("the copy of the snapshot cannot be written")
