"""Snapshots compiled into a routing table, and the choice of an endpoint.

A backend is chosen at random by weight; within it the endpoint with the fewest outstanding requests is
chosen, the least recently used one among equals. The state of an endpoint (outstanding requests, ejection)
outlives the snapshot that named it. Open requests are counted until they end, also those to endpoints that the
snapshot no longer names: the control plane stops such a replica once it has none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from random import Random

from yarl import URL

from gateway.operations import FORMATS
from gateway.snapshots import (
    RoutingSnapshot,
    SnapshotBackend,
    SnapshotEndpoint,
    SnapshotKey,
    SnapshotRoute,
)

#: How long an endpoint that refuses connections gets no requests.
EJECTION_SECONDS = 3.0


class EngineTarget:
    """An endpoint with its state in this gateway."""

    __slots__ = ("ejected_until", "endpoint", "headers", "last_used", "outstanding", "urls")

    def __init__(self, endpoint: SnapshotEndpoint) -> None:
        self.endpoint = endpoint
        self.urls = {
            operation: URL(endpoint.url + form.path) for operation, form in FORMATS.items()
        }
        self.headers = {
            # Compressed events could not be forwarded one by one.
            "Accept-Encoding": "identity",
            "User-Agent": "ninefold-gateway",
        }
        if endpoint.credential:
            self.headers["Authorization"] = f"Bearer {endpoint.credential}"
        self.outstanding = 0
        self.last_used = 0
        self.ejected_until = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendPool:
    """A backend with its targets."""

    backend: SnapshotBackend
    targets: tuple[EngineTarget, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteWithPools:
    """A route with the pools that its requests are distributed to."""

    route: SnapshotRoute
    pools: tuple[BackendPool, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutingTable:
    """One snapshot, compiled for lookups."""

    snapshot: RoutingSnapshot
    #: Seconds since 1970 from which on it must not be used.
    stale_at: float
    #: By public name.
    entries: dict[str, RouteWithPools]
    #: By digest.
    keys: dict[str, SnapshotKey]


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointChoice:
    backend: SnapshotBackend
    target: EngineTarget


class LoadBalancer:
    """The endpoints of the current snapshot, and the choice among them."""

    def __init__(self, *, monotonic: Callable[[], float], random: Random) -> None:
        self._monotonic = monotonic
        self._random = random
        self._targets: dict[SnapshotEndpoint, EngineTarget] = {}
        self._open: Counter[SnapshotEndpoint] = Counter()
        self._uses = 0

    def compile(self, snapshot: RoutingSnapshot) -> RoutingTable:
        """The routing table of the snapshot. State of endpoints that it does not name is dropped."""
        current: dict[SnapshotEndpoint, EngineTarget] = {}
        entries: dict[str, RouteWithPools] = {}
        for route in snapshot.routes:
            pools = []
            for backend in route.backends:
                targets = tuple(
                    self._target_of_endpoint(endpoint, current) for endpoint in backend.endpoints
                )
                if backend.weight > 0 and targets:
                    pools.append(BackendPool(backend=backend, targets=targets))
            entries[route.name] = RouteWithPools(route=route, pools=tuple(pools))
        self._targets = current
        return RoutingTable(
            snapshot=snapshot,
            stale_at=snapshot.stale_at.timestamp(),
            entries=entries,
            keys={key.digest: key for key in snapshot.keys},
        )

    def _target_of_endpoint(
        self, endpoint: SnapshotEndpoint, current: dict[SnapshotEndpoint, EngineTarget]
    ) -> EngineTarget:
        target = current.get(endpoint) or self._targets.get(endpoint) or EngineTarget(endpoint)
        current[endpoint] = target
        return target

    def choose(
        self, entry: RouteWithPools, *, exclude: Collection[EngineTarget] = ()
    ) -> EndpointChoice | None:
        """The backend and endpoint for the next request; None if none is available.

        The weights apply among the backends that have an available endpoint.
        """
        now = self._monotonic()
        offers = [
            (pool, candidates)
            for pool in entry.pools
            if (
                candidates := [
                    target
                    for target in pool.targets
                    if target.ejected_until <= now and target not in exclude
                ]
            )
        ]
        if not offers:
            return None
        pool, candidates = offers[0] if len(offers) == 1 else self._draw_pool(offers)
        target = min(candidates, key=_endpoint_load)
        self._uses += 1
        target.last_used = self._uses
        return EndpointChoice(backend=pool.backend, target=target)

    def _draw_pool(
        self, offers: list[tuple[BackendPool, list[EngineTarget]]]
    ) -> tuple[BackendPool, list[EngineTarget]]:
        draw = self._random.random() * sum(pool.backend.weight for pool, _ in offers)
        for offer in offers:
            draw -= offer[0].backend.weight
            if draw < 0:
                return offer
        # Only rounding can lead here: the drawn number is below the sum of the weights.
        return offers[-1]

    def begin_request(self, target: EngineTarget) -> None:
        """Count a request to it until ``end_request``."""
        target.outstanding += 1
        self._open[target.endpoint] += 1

    def end_request(self, target: EngineTarget) -> None:
        target.outstanding -= 1
        self._open[target.endpoint] -= 1
        if not self._open[target.endpoint]:
            del self._open[target.endpoint]

    def draining_requests(self) -> Mapping[str, int]:
        """Open requests by uid of the replicas that the snapshot no longer names."""
        found: Counter[str] = Counter()
        for endpoint, count in self._open.items():
            if endpoint not in self._targets:
                found[endpoint.uid] += count
        return found

    def eject(self, target: EngineTarget) -> None:
        """Exclude it from load balancing for :data:`EJECTION_SECONDS`."""
        target.ejected_until = self._monotonic() + EJECTION_SECONDS


def _endpoint_load(target: EngineTarget) -> tuple[int, int]:
    return target.outstanding, target.last_used
