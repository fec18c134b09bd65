"""Liveness, readiness and metrics endpoints of the gateway."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from hmac import compare_digest

from gateway.errors import ApiError, ErrorType
from gateway.http_exchange import HttpExchange
from gateway.load_balancing import RoutingTable
from gateway.metrics import CONTENT_TYPE, GatewayMetrics

Page = Callable[[HttpExchange], Awaitable[None]]


class MonitoringEndpoints:
    """``/healthz``, ``/readyz`` and ``/metrics`` of one gateway.

    ``table`` returns the table installed last, if any; ``fresh_table`` raises an :class:`ApiError` if there is
    none or it is stale; ``tasks`` are those that should never end.
    """

    def __init__(
        self,
        *,
        gateway_id: str,
        metrics: GatewayMetrics,
        metrics_token: str,
        metrics_on_loopback: bool,
        tasks: Sequence[asyncio.Task[None]],
        table: Callable[[], RoutingTable | None],
        fresh_table: Callable[[], RoutingTable],
        wall: Callable[[], float],
    ) -> None:
        self._gateway_id = gateway_id
        self._metrics = metrics
        self._metrics_token = metrics_token
        self._metrics_on_loopback = metrics_on_loopback
        self._tasks = tasks
        self._table = table
        self._fresh_table = fresh_table
        self._wall = wall
        self.pages: Mapping[str, Page] = {
            "/healthz": self._healthz,
            "/readyz": self._readyz,
            "/metrics": self._metrics_page,
        }
        metrics.gauge(
            "ninefold_gateway_snapshot_age_seconds",
            "Since the snapshot was issued.",
            read=self._age,
        )
        metrics.gauge(
            "ninefold_gateway_snapshot_version", "Version of the snapshot.", read=self._version
        )

    def _version(self) -> int | None:
        table = self._table()
        return None if table is None else table.snapshot.version

    def _age(self) -> float | None:
        table = self._table()
        return None if table is None else self._wall() - table.snapshot.issued_at.timestamp()

    async def _healthz(self, exchange: HttpExchange) -> None:
        """200 while all background tasks run, else 503: only a restart helps then."""
        ended = [task.get_name() for task in self._tasks if task.done()]
        content = {
            "status": "failed" if ended else "ok",
            "gateway": self._gateway_id,
            "snapshot_version": self._version(),
            "snapshot_age_seconds": self._age(),
            "ended_tasks": ended,
        }
        await exchange.respond_json(content, status=503 if ended else 200)

    async def _readyz(self, exchange: HttpExchange) -> None:
        """200 while requests can be served, else 503 with an error."""
        self._fresh_table()
        await exchange.respond_json({"status": "ready"})

    async def _metrics_page(self, exchange: HttpExchange) -> None:
        """Metrics for clients with the metrics token, and for loopback where no jobs run on this machine.

        :raises ApiError: 403 for all other clients.
        """
        if not self._may_read_metrics(exchange):
            raise ApiError(
                "Send the metrics token as a bearer token: NINEFOLD_METRICS_TOKEN, or var/secrets/metrics_token.",
                status=403,
                kind=ErrorType.PERMISSION,
                code="metrics_refused",
            )
        await exchange.respond(
            status=200, body=self._metrics.text().encode(), content_type=CONTENT_TYPE.encode()
        )

    def _may_read_metrics(self, exchange: HttpExchange) -> bool:
        token = self._metrics_token
        if token and exchange.bearer:
            return compare_digest(exchange.bearer.encode(), token.encode())
        return self._metrics_on_loopback and exchange.is_loopback
