"""The ASGI app: authentication, routing of paths, CORS, and the endpoints for monitoring.

``uvicorn gateway.app:create_app --factory``, or ``python -m gateway``, which also bounds the drain.
One process per folder; more gateways are more processes with an id each.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import time
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from hashlib import sha256
from hmac import compare_digest
from random import Random
from typing import Any

import aiohttp

from controlplane.domain.common.reasons import Reason
from gateway import logs
from gateway.durable_files import FolderLock
from gateway.errors import (
    ApiError,
    ErrorType,
    bad_request,
    internal_error,
    invalid_api_key_error,
    model_not_found_error,
    shutting_down_error,
    unavailable_error,
)
from gateway.http_exchange import ClientAborted, HttpExchange, Receive, Scope, Send
from gateway.load_balancing import LoadBalancer, RoutingTable
from gateway.metrics import CONTENT_TYPE, GatewayMetrics
from gateway.model_requests import (
    ModelRequest,
    check_supported,
    parse_form_request,
    parse_json_request,
)
from gateway.operations import FORMATS, OPERATIONS_BY_PATH, RouteOperation
from gateway.rate_limits import RateLimiter
from gateway.relay import EngineClient, EngineRelay, RequestDeadlines
from gateway.settings import GatewaySettings
from gateway.snapshots import (
    RoutingSnapshot,
    SnapshotFeed,
    SnapshotKey,
    SnapshotRoute,
)
from gateway.usage_reporting import UsageJournal, UsageReporter

logger = logging.getLogger(__name__)

_MODELS = "/v1/models"
_RETRY_SECONDS = 5.0
#: Time for posting the journal at shutdown; the rest is posted after the next start.
_LAST_POST_SECONDS = 3.0


class GatewayApp:
    """One gateway process. Its parts exist from the lifespan's startup to its shutdown."""

    def __init__(
        self,
        settings: GatewaySettings,
        *,
        wall: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        random: Random | None = None,
    ) -> None:
        self._settings = settings
        self._wall = wall
        self._monotonic = monotonic
        self._metrics = GatewayMetrics()
        # SystemRandom would cost more than the choice of a target does.
        rng = random or Random()  # noqa: S311 - spreads load; no secret depends on it
        self._load_balancer = LoadBalancer(monotonic=monotonic, random=rng)
        self._rate_limiter = RateLimiter(monotonic=monotonic)
        self._table: RoutingTable | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._cors = CorsPolicy(settings.origins)
        self._pages = MonitoringEndpoints(
            gateway_id=settings.gateway_id,
            metrics=self._metrics,
            metrics_token=settings.metrics_token,
            metrics_on_loopback=settings.metrics_on_loopback,
            tasks=self._tasks,
            table=lambda: self._table,
            fresh_table=self._fresh_table,
            wall=wall,
        ).pages

    # -- lifespan -----------------------------------------------------------------------------

    async def start(self) -> None:
        """Load the stored snapshot and begin to poll the control plane.

        :raises FolderInUse: if another process has the gateway's folder.
        """
        settings = self._settings
        self._lock = FolderLock(settings.folder)
        headers = {
            "Authorization": f"Bearer {settings.token}",
            "X-Ninefold-Gateway": settings.gateway_id,
        }
        self._usage = UsageReporter(
            journal=UsageJournal(
                settings.folder / "usage",
                gateway_id=settings.gateway_id,
                max_bytes=settings.usage_max_bytes,
                wall=self._wall,
            ),
            metrics=self._metrics,
            url=f"{settings.control_url}/internal/gateway/usage",
            headers=headers,
        )
        self._engine_client = EngineClient(connect_seconds=settings.connect_seconds)
        self._relay = EngineRelay(
            engine_client=self._engine_client,
            load_balancer=self._load_balancer,
            rate_limiter=self._rate_limiter,
            usage=self._usage,
            metrics=self._metrics,
            deadlines=RequestDeadlines(
                first_byte=settings.first_byte_seconds, total=settings.total_seconds
            ),
            monotonic=self._monotonic,
            wall=self._wall,
        )
        feed = SnapshotFeed(
            url=f"{settings.control_url}/internal/gateway/snapshot",
            token=settings.token,
            headers=headers,
            copy=settings.folder / "snapshot",
            install=self._install_snapshot,
            draining_requests=self._load_balancer.draining_requests,
            metrics=self._metrics,
            wall=self._wall,
        )
        feed.load_stored_snapshot()
        self._register_gauges()
        self._control = aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar(), trust_env=False)
        self._writer = self._start_background_task("usage writer", self._usage.run_writer())
        self._poster = self._start_background_task(
            "usage poster", self._usage.run_poster(self._control)
        )
        self._poller = self._start_background_task("snapshot poller", feed.run(self._control))

    def _register_gauges(self) -> None:
        gauges: tuple[tuple[str, str, Callable[[], float]], ...] = (
            ("open_requests", "Requests being served.", lambda: self._relay.open_requests),
            (
                "tasks",
                "Asynchronous tasks, those of the process itself included.",
                lambda: len(asyncio.all_tasks()),
            ),
            (
                "usage_records_waiting",
                "Usage records not acknowledged yet.",
                lambda: self._usage.unacknowledged_records,
            ),
            (
                "usage_journal_bytes",
                "Size of the usage journal's unacknowledged batches.",
                lambda: self._usage.unacknowledged_bytes,
            ),
        )
        for name, meaning, read in gauges:
            self._metrics.gauge(f"ninefold_gateway_{name}", meaning, read=read)

    def _start_background_task(
        self, name: str, work: Coroutine[Any, Any, None]
    ) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.append(task)
        return task

    async def stop(self) -> None:
        """Flush usage and release all resources. Requests have ended or been cancelled before."""
        self._poller.cancel()
        self._poster.cancel()
        await asyncio.gather(self._poller, self._poster, return_exceptions=True)
        await self._usage.stop(self._control, seconds=_LAST_POST_SECONDS)
        await asyncio.gather(self._writer, return_exceptions=True)
        await self._engine_client.close()
        await self._control.close()
        self._lock.release()

    def _install_snapshot(self, snapshot: RoutingSnapshot) -> None:
        self._table = self._load_balancer.compile(snapshot)
        self._rate_limiter.retain(snapshot.keys)
        logger.info("snapshot installed", extra={"version": snapshot.version})

    # -- requests -----------------------------------------------------------------------------

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._handle_request(HttpExchange(scope, receive, send))
        elif scope["type"] == "lifespan":
            await self._handle_lifespan(receive, send)
        else:
            await send({"type": "websocket.close", "code": 1000})

    async def _handle_lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            await self.start()
        except Exception as error:
            logger.exception("the gateway cannot start")
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            return
        # Objects of the startup are permanent; collecting them again and again would delay requests.
        gc.collect()
        gc.freeze()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.stop()
        await send({"type": "lifespan.shutdown.complete"})

    async def _handle_request(self, exchange: HttpExchange) -> None:
        self._cors.add_headers(exchange)
        try:
            await self._dispatch_request(exchange)
        except ClientAborted:
            return
        except ApiError as error:
            await self._send_error(exchange, error)
        except asyncio.CancelledError:
            # By the server, at the end of its shutdown time; no later request runs in this task.
            await self._send_error(exchange, shutting_down_error())
        except Exception:
            logger.exception("a request failed", extra={"request_id": exchange.request_id})
            await self._send_error(exchange, internal_error())

    async def _send_error(self, exchange: HttpExchange, error: ApiError) -> None:
        self._metrics.errors.add(str(error.status))
        if not exchange.started:
            await exchange.respond_error(error)

    async def _dispatch_request(self, exchange: HttpExchange) -> None:
        path = exchange.path
        operation = OPERATIONS_BY_PATH.get(path)
        if self._cors.is_preflight(exchange):
            await self._cors.respond_preflight(exchange)
        elif operation is not None:
            exchange.error_format = FORMATS[operation].errors
            _require_method(exchange, "POST")
            await self._relay_request(exchange, operation)
        elif path == _MODELS:
            _require_method(exchange, "GET")
            await self._list_models(exchange)
        elif path.startswith(f"{_MODELS}/"):
            _require_method(exchange, "GET")
            await self._show_model(exchange, path.removeprefix(f"{_MODELS}/"))
        elif (page := self._pages.get(path)) is not None:
            _require_method(exchange, "GET")
            await page(exchange)
        else:
            raise bad_request(
                "gateway.url.unknown",
                "Invalid URL ({method} {path}). The gateway serves {models_path} and {paths}.",
                method=exchange.method[:20],
                path=path[:200],
                models_path=_MODELS,
                paths=", ".join(OPERATIONS_BY_PATH),
                code="unknown_url",
                status=404,
            )

    def _fresh_table(self) -> RoutingTable:
        """The current routing table.

        :raises ApiError: 503 if there is no snapshot, or only one that is too old.
        """
        table = self._table
        if table is None:
            raise unavailable_error(
                "gateway.snapshot.missing",
                "The gateway has not received a configuration from the control plane yet.",
                code="no_snapshot",
                retry_after_seconds=_RETRY_SECONDS,
            )
        if self._wall() >= table.stale_at:
            raise unavailable_error(
                "gateway.snapshot.stale",
                "The configuration of the gateway is out of date, because the control "
                "plane has not updated it.",
                code="stale_snapshot",
                retry_after_seconds=_RETRY_SECONDS,
            )
        return table

    def _authenticate_key(self, exchange: HttpExchange, table: RoutingTable) -> SnapshotKey:
        secret = exchange.bearer
        if not secret:
            raise invalid_api_key_error(
                "gateway.api_key.missing",
                "An API key is required: send 'Authorization: Bearer <key>'.",
            )
        # The digest is looked up, the key is not compared: timing leaks nothing that helps to guess it.
        key = table.keys.get(sha256(secret.encode()).hexdigest())
        if key is None:
            raise invalid_api_key_error(
                "gateway.api_key.invalid", "This API key is unknown or has been revoked."
            )
        if key.expires_at is not None and self._wall() >= key.expires_at.timestamp():
            raise invalid_api_key_error(
                "gateway.api_key.expired",
                "This API key expired at {expires_at}.",
                expires_at=key.expires_at.isoformat(),
            )
        return key

    async def _relay_request(self, exchange: HttpExchange, operation: RouteOperation) -> None:
        # Only clients with a key may upload.
        self._authenticate_key(exchange, self._fresh_table())
        request = await self._read_request(exchange, operation)
        # Meanwhile replicas may have stopped and the key may have been revoked: a request whose body
        # is being read is not open at any replica, so that none waits for it.
        table = self._fresh_table()
        key = self._authenticate_key(exchange, table)
        entry = table.entries.get(request.model)
        if entry is None or not key.may_use(entry.route):
            raise model_not_found_error(request.model)
        check_supported(request, entry.route)
        await self._relay.serve(
            exchange, key=key, entry=entry, request=request, gateways=table.snapshot.gateways
        )

    async def _read_request(
        self, exchange: HttpExchange, operation: RouteOperation
    ) -> ModelRequest:
        limit, seconds = self._settings.max_body_bytes, self._settings.body_seconds
        if not FORMATS[operation].is_form:
            body = await exchange.read_body(limit=limit, seconds=seconds)
            return parse_json_request(body, operation=operation)
        body = await exchange.read_body(
            content_type="multipart/form-data", limit=limit, seconds=seconds
        )
        return await parse_form_request(
            body, content_type=exchange.content_type, operation=operation
        )

    async def _list_models(self, exchange: HttpExchange) -> None:
        table = self._fresh_table()
        key = self._authenticate_key(exchange, table)
        routes = [entry.route for entry in table.entries.values() if key.may_use(entry.route)]
        models = [
            _openai_model_object(route) for route in sorted(routes, key=lambda route: route.name)
        ]
        await exchange.respond_json({"object": "list", "data": models})

    async def _show_model(self, exchange: HttpExchange, name: str) -> None:
        table = self._fresh_table()
        key = self._authenticate_key(exchange, table)
        entry = table.entries.get(name)
        if entry is None or not key.may_use(entry.route):
            raise model_not_found_error(name)
        await exchange.respond_json(_openai_model_object(entry.route))


def _require_method(exchange: HttpExchange, method: str) -> None:
    if exchange.method != method:
        raise ApiError(
            Reason(
                "gateway.method.not_allowed",
                "{path} supports {allowed}, not {method}.",
                path=exchange.path,
                allowed=method,
                method=exchange.method,
            ),
            status=405,
            kind=ErrorType.INVALID_REQUEST,
            code="method_not_allowed",
            headers={"allow": method},
        )


def _openai_model_object(route: SnapshotRoute) -> dict[str, object]:
    model: dict[str, object] = {
        "id": route.name,
        "object": "model",
        "created": route.created,
        "owned_by": "ninefold",
    }
    if route.context_length is not None:
        # The name of this field in vLLM, which clients already read.
        model["max_model_len"] = route.context_length
    return model


def create_app() -> GatewayApp:
    """The app and its logging, configured by the environment.

    :raises InvalidSetting: if a ``NINEFOLD_*`` variable is missing or unusable.
    """
    logs.configure_logging(os.environ)
    return GatewayApp(GatewaySettings.from_environment(os.environ))


class CorsPolicy:
    """Cross-origin requests: origins allowed by the settings; without any, CORS headers are off."""

    def __init__(self, allowed: Collection[str]) -> None:
        self._allowed = frozenset(allowed)

    def add_headers(self, exchange: HttpExchange) -> None:
        """Add the CORS headers of the response if the origin is allowed."""
        if not self._allowed:
            return
        exchange.add_headers([("vary", "Origin")])
        if self._allows_origin(exchange):
            exchange.add_headers(
                [
                    ("access-control-allow-origin", exchange.header(b"origin")),
                    ("access-control-expose-headers", "x-request-id, retry-after"),
                ]
            )

    def is_preflight(self, exchange: HttpExchange) -> bool:
        """Whether the request is a preflight request."""
        return bool(self._allowed) and exchange.method == "OPTIONS"

    async def respond_preflight(self, exchange: HttpExchange) -> None:
        """Respond with the allowed methods and headers if the origin is allowed."""
        headers = [
            ("access-control-allow-methods", "GET, POST"),
            (
                "access-control-allow-headers",
                "authorization, content-type, x-api-key, anthropic-version",
            ),
            ("access-control-max-age", "600"),
        ]
        await exchange.respond(
            status=204, body=b"", headers=headers if self._allows_origin(exchange) else ()
        )

    def _allows_origin(self, exchange: HttpExchange) -> bool:
        return exchange.header(b"origin") in self._allowed


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
            "/healthz": self._serve_healthz,
            "/readyz": self._serve_readyz,
            "/metrics": self._serve_metrics,
        }
        metrics.gauge(
            "ninefold_gateway_snapshot_age_seconds",
            "Since the snapshot was issued.",
            read=self._snapshot_age,
        )
        metrics.gauge(
            "ninefold_gateway_snapshot_version",
            "Version of the snapshot.",
            read=self._snapshot_version,
        )

    def _snapshot_version(self) -> int | None:
        table = self._table()
        return None if table is None else table.snapshot.version

    def _snapshot_age(self) -> float | None:
        table = self._table()
        return None if table is None else self._wall() - table.snapshot.issued_at.timestamp()

    async def _serve_healthz(self, exchange: HttpExchange) -> None:
        """200 while all background tasks run, else 503: only a restart helps then."""
        ended = [task.get_name() for task in self._tasks if task.done()]
        content = {
            "status": "failed" if ended else "ok",
            "gateway": self._gateway_id,
            "snapshot_version": self._snapshot_version(),
            "snapshot_age_seconds": self._snapshot_age(),
            "ended_tasks": ended,
        }
        await exchange.respond_json(content, status=503 if ended else 200)

    async def _serve_readyz(self, exchange: HttpExchange) -> None:
        """200 while requests can be served, else 503 with an error."""
        self._fresh_table()
        await exchange.respond_json({"status": "ready"})

    async def _serve_metrics(self, exchange: HttpExchange) -> None:
        """Metrics for clients with the metrics token, and for loopback where no jobs run on this machine.

        :raises ApiError: 403 for all other clients.
        """
        if not self._may_read_metrics(exchange):
            raise ApiError(
                Reason(
                    "gateway.metrics.forbidden",
                    "Send the metrics token as a bearer token: NINEFOLD_METRICS_TOKEN, or "
                    "var/secrets/metrics_token.",
                ),
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
