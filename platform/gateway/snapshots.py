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
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from random import SystemRandom
from typing import Annotated, Any

import aiohttp
from pydantic import (
    AfterValidator,
    AwareDatetime,
    BeforeValidator,
    Field,
    TypeAdapter,
    ValidationError,
)

from gateway.durable_files import write_durably
from gateway.metrics import GatewayMetrics
from gateway.operations import RouteOperation


class InvalidRoutingSnapshot(Exception):
    """A body is not signed by the control plane, or is not a snapshot."""


def _checked_url(url: str) -> str:
    if not url.startswith(("http://", "https://")):
        raise ValueError("an endpoint's url must start with http:// or https://")
    return url.rstrip("/")


def _known_operations(names: Any) -> Any:
    """Those of this version; the control plane may be newer."""
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        return names
    return frozenset(RouteOperation(name) for name in names if name in _OPERATIONS)


def _seconds(value: Any) -> timedelta:
    if type(value) is not int or value < 0:
        raise ValueError("must be a whole number of at least 0")
    return timedelta(seconds=value)


_OPERATIONS = frozenset(operation.value for operation in RouteOperation)
Count = Annotated[int, Field(ge=0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotEndpoint:
    """One replica of a backend."""

    uid: str
    #: Scheme, host and port, without a trailing slash.
    url: Annotated[str, AfterValidator(_checked_url)]
    #: The bearer token that the engine requires; empty where it requires none.
    credential: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotBackend:
    uid: str
    #: Its share of the route's requests, relative to the other backends; 0 means none.
    weight: Count
    #: The name under which the engine knows the model.
    model: str
    endpoints: tuple[SnapshotEndpoint, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotRoute:
    """A public model name."""

    name: str
    team: str
    #: Tokens of prompt and completion together; None where it is not known.
    context_length: Annotated[Count | None, AfterValidator(lambda length: length or None)] = None
    operations: Annotated[frozenset[RouteOperation], BeforeValidator(_known_operations)]
    #: Operation → parameter that an engine of the route ignores → the first release that reads it.
    ignored_parameters: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    #: Seconds since 1970, as OpenAI's ``created``.
    created: Count
    backends: tuple[SnapshotBackend, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotKey:
    """An API key; only its digest ever leaves the control plane."""

    #: SHA-256 of the whole key, in hexadecimal.
    digest: Annotated[str, AfterValidator(str.lower)]
    uid: str
    team: str
    #: Names that narrow the key to some of its team's routes; None means all of them.
    routes: frozenset[str] | None = None
    expires_at: AwareDatetime | None = None
    #: Limits over all gateways together; None means no limit.
    requests_per_minute: Count | None = None
    tokens_per_minute: Count | None = None
    concurrency: Count | None = None

    def may_use(self, route: SnapshotRoute) -> bool:
        return route.team == self.team and (self.routes is None or route.name in self.routes)


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutingSnapshot:
    version: Count
    issued_at: AwareDatetime
    max_stale: Annotated[
        timedelta, Field(validation_alias="max_stale_seconds"), BeforeValidator(_seconds)
    ]
    #: How many gateways share the limits.
    gateways: Annotated[Count, AfterValidator(lambda count: max(1, count))]
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


_SNAPSHOT = TypeAdapter(RoutingSnapshot)


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
        return _SNAPSHOT.validate_json(body, strict=True)
    except ValidationError as error:
        wrong = error.errors()[0]
        path = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in wrong["loc"])
        raise InvalidRoutingSnapshot(f"snapshot{path}: {wrong['msg']}") from error


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
