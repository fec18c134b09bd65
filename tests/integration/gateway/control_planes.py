"""A fake control plane for gateways: signed snapshots and usage."""

from __future__ import annotations

import asyncio
import json
import time
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from aiohttp import web

from gateway.snapshots import snapshot_signature
from tests.integration.gateway.servers import ThreadedServer

TOKEN = "a-gateway-token-for-tests"


def key_of(secret: str, **fields: Any) -> dict[str, Any]:
    """A key of team ``team-a`` without limits, in the format of a snapshot."""
    return {
        "digest": sha256(secret.encode()).hexdigest(),
        "uid": f"key-of-{secret}",
        "team": "team-a",
        "routes": None,
        "expires_at": None,
        "requests_per_minute": None,
        "tokens_per_minute": None,
        "concurrency": None,
        **fields,
    }


def route_of(name: str, *backends: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A route of team ``team-a`` with all operations."""
    return {
        "name": name,
        "team": "team-a",
        "context_length": 512,
        "operations": ["chat", "completions"],
        "created": 1_790_000_000,
        "backends": list(backends),
        **fields,
    }


class FakeControl(ThreadedServer):
    """Publishes snapshots and stores each batch of usage once."""

    def __init__(self) -> None:
        super().__init__()
        self.snapshot: dict[str, Any] = {
            "version": 0,
            "max_stale_seconds": 86_400,
            "gateways": 1,
            "routes": [],
            "keys": [],
        }
        self.forge = False
        #: Stores batches and closes the connection without a response.
        self.swallow_acknowledgements = False
        self.usage_status = 200
        self.batches: dict[tuple[str, int], list[dict[str, Any]]] = {}
        self.posts: list[tuple[str, int]] = []
        self.polls = 0
        #: Open requests by uid of endpoints that left the snapshot, as the newest poll reported them.
        self.draining: dict[str, int] = {}
        self._changed: asyncio.Event | None = None

    def routes(self) -> list[web.RouteDef]:
        self._changed = asyncio.Event()
        return [
            web.get("/internal/gateway/snapshot", self._get_snapshot),
            web.post("/internal/gateway/usage", self._post_usage),
        ]

    def publish(self, **changes: Any) -> int:
        """Publish the next version; return its number."""
        fresh = {
            "version": self.snapshot["version"] + 1,
            "issued_at": datetime.now(UTC).isoformat(),
        }
        self.snapshot = {**self.snapshot, **fresh, **changes}

        async def wake() -> None:
            if self._changed is not None:
                self._changed.set()
                self._changed = asyncio.Event()

        self.run(wake())
        version: int = self.snapshot["version"]
        return version

    @property
    def records(self) -> list[dict[str, Any]]:
        return [record for batch in self.batches.values() for record in batch]

    def _check(self, request: web.Request) -> None:
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            raise web.HTTPUnauthorized

    async def _get_snapshot(self, request: web.Request) -> web.Response:
        self._check(request)
        self.polls += 1
        self.draining = json.loads(request.headers["X-Ninefold-Draining"])
        after = int(request.query["after"])
        deadline = time.monotonic() + float(request.query["wait"])
        while self.snapshot["version"] <= after:
            left = deadline - time.monotonic()
            if left <= 0 or self._changed is None:
                return web.Response(status=304)
            try:
                async with asyncio.timeout(left):
                    await self._changed.wait()
            except TimeoutError:
                return web.Response(status=304)
        body = json.dumps(self.snapshot).encode()
        token = "somebody else's token" if self.forge else TOKEN
        return web.Response(
            body=body,
            content_type="application/json",
            headers={"X-Ninefold-Signature": snapshot_signature(body, token=token)},
        )

    async def _post_usage(self, request: web.Request) -> web.Response:
        self._check(request)
        content = await request.json()
        if self.usage_status != 200:
            return web.Response(status=self.usage_status)
        number = (content["gateway"], content["sequence"])
        self.posts.append(number)
        self.batches.setdefault(number, content["records"])
        if self.swallow_acknowledgements and request.transport is not None:
            request.transport.abort()
        return web.json_response({})
