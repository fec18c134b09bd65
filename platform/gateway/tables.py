"""Snapshots compiled for the request path, and the choice of an endpoint.

A backend is drawn by weight; within it the endpoint with the fewest requests outstanding serves,
the least recently used one among equals. What is known of an endpoint (requests outstanding,
whether it refuses connections) outlives the snapshot that named it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from random import Random

from yarl import URL

from gateway.snapshots import Backend, Endpoint, Key, Operation, Route, Snapshot

#: How long an endpoint that refuses connections gets no requests.
SET_ASIDE_SECONDS = 3.0

PATHS = {Operation.CHAT: "/v1/chat/completions", Operation.COMPLETIONS: "/v1/completions"}


class Target:
    """An endpoint with what this gateway has seen of it."""

    __slots__ = ("aside_until", "endpoint", "headers", "last_used", "outstanding", "urls")

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.urls = {operation: URL(endpoint.url + path) for operation, path in PATHS.items()}
        self.headers = {
            "Content-Type": "application/json",
            # Compressed events could not be passed on one by one.
            "Accept-Encoding": "identity",
            "User-Agent": "ninefold-gateway",
        }
        if endpoint.credential:
            self.headers["Authorization"] = f"Bearer {endpoint.credential}"
        self.outstanding = 0
        self.last_used = 0
        self.aside_until = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """A backend with its targets."""

    backend: Backend
    targets: tuple[Target, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A route with the pools that get a share of its requests."""

    route: Route
    pools: tuple[Pool, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One snapshot, ready for lookups."""

    snapshot: Snapshot
    #: Seconds since 1970 from which on it must not be used.
    stale_at: float
    #: By public name.
    lines: dict[str, Line]
    #: By digest.
    keys: dict[str, Key]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    backend: Backend
    target: Target


class Targets:
    """Every endpoint that the current snapshot names, and the draw among them."""

    def __init__(self, *, monotonic: Callable[[], float], random: Random) -> None:
        self._monotonic = monotonic
        self._random = random
        self._targets: dict[Endpoint, Target] = {}
        self._uses = 0

    def compile(self, snapshot: Snapshot) -> Table:
        """The snapshot's table. Endpoints that it names no more are forgotten."""
        kept: dict[Endpoint, Target] = {}
        lines: dict[str, Line] = {}
        for route in snapshot.routes:
            pools = []
            for backend in route.backends:
                targets = tuple(self._target(endpoint, kept) for endpoint in backend.endpoints)
                if backend.weight > 0 and targets:
                    pools.append(Pool(backend=backend, targets=targets))
            lines[route.name] = Line(route=route, pools=tuple(pools))
        self._targets = kept
        return Table(
            snapshot=snapshot,
            stale_at=snapshot.stale_at.timestamp(),
            lines=lines,
            keys={key.digest: key for key in snapshot.keys},
        )

    def _target(self, endpoint: Endpoint, kept: dict[Endpoint, Target]) -> Target:
        target = kept.get(endpoint) or self._targets.get(endpoint) or Target(endpoint)
        kept[endpoint] = target
        return target

    def choose(self, line: Line, *, avoid: Collection[Target] = ()) -> Choice | None:
        """The backend and endpoint that serve the next request; None if none can.

        The weights hold among the backends that have an endpoint to offer.
        """
        now = self._monotonic()
        offers = [
            (pool, usable)
            for pool in line.pools
            if (
                usable := [
                    target
                    for target in pool.targets
                    if target.aside_until <= now and target not in avoid
                ]
            )
        ]
        if not offers:
            return None
        pool, usable = offers[0] if len(offers) == 1 else self._draw(offers)
        target = min(usable, key=_load)
        self._uses += 1
        target.last_used = self._uses
        return Choice(backend=pool.backend, target=target)

    def _draw(self, offers: list[tuple[Pool, list[Target]]]) -> tuple[Pool, list[Target]]:
        mark = self._random.random() * sum(pool.backend.weight for pool, _ in offers)
        for offer in offers:
            mark -= offer[0].backend.weight
            if mark < 0:
                return offer
        # Only rounding can lead here: the mark lies below the sum of the weights.
        return offers[-1]

    def set_aside(self, target: Target) -> None:
        """Give it no requests for :data:`SET_ASIDE_SECONDS`."""
        target.aside_until = self._monotonic() + SET_ASIDE_SECONDS


def _load(target: Target) -> tuple[int, int]:
    return target.outstanding, target.last_used
