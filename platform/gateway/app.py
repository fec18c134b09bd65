"""The ASGI app: who may call what, and where each path leads.

``uvicorn gateway.app:create_app --factory``, or ``python -m gateway``, which also bounds the drain.
One process per folder; more gateways are more processes with an id each.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import time
from collections.abc import Callable, Coroutine
from hashlib import sha256
from random import Random
from typing import Any

import aiohttp

from gateway import logs
from gateway.calls import check_fit, parse_call
from gateway.errors import (
    ApiError,
    ErrorType,
    bad_request,
    internal_error,
    key_refused,
    model_not_found,
    unavailable,
)
from gateway.exchanges import ClientLeft, Exchange, Receive, Scope, Send
from gateway.feeds import SnapshotFeed
from gateway.files import FolderLock
from gateway.journals import Journal
from gateway.limits import Limits
from gateway.metrics import Metrics
from gateway.operations import Operations
from gateway.origins import Origins
from gateway.relays import Deadlines, Relay
from gateway.settings import Settings
from gateway.snapshots import Key, Operation, Route, Snapshot
from gateway.tables import PATHS, Table, Targets
from gateway.upstream import Upstream
from gateway.usage import Usage

logger = logging.getLogger(__name__)

_MODELS = "/v1/models"
_RETRY_SECONDS = 5.0
#: At the end, the time for posting what the journal holds; the rest is posted after the next start.
_LAST_POST_SECONDS = 3.0


class Gateway:
    """One gateway process. Its parts live from the lifespan's startup to its shutdown."""

    def __init__(
        self,
        settings: Settings,
        *,
        wall: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        random: Random | None = None,
    ) -> None:
        self._settings = settings
        self._wall = wall
        self._monotonic = monotonic
        self._metrics = Metrics()
        # The system's own randomness would cost more than choosing a target does.
        chance = random or Random()  # noqa: S311 - spreads load; no secret depends on it
        self._targets = Targets(monotonic=monotonic, random=chance)
        self._limits = Limits(monotonic=monotonic)
        self._table: Table | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._calls = {path: operation for operation, path in PATHS.items()}
        self._origins = Origins(settings.origins)
        self._pages = Operations(
            gateway_id=settings.gateway_id,
            metrics=self._metrics,
            metrics_token=settings.metrics_token,
            metrics_on_loopback=settings.metrics_on_loopback,
            tasks=self._tasks,
            table=lambda: self._table,
            fresh_table=self._fresh_table,
            wall=wall,
        ).pages

    # -- life ---------------------------------------------------------------------------------

    async def start(self) -> None:
        """Load the copy of the snapshot and begin to follow the control plane.

        :raises FolderInUse: if another process has the gateway's folder.
        """
        settings = self._settings
        self._lock = FolderLock(settings.folder)
        headers = {
            "Authorization": f"Bearer {settings.token}",
            "X-Ninefold-Gateway": settings.gateway_id,
        }
        self._usage = Usage(
            journal=Journal(
                settings.folder / "usage",
                gateway_id=settings.gateway_id,
                max_bytes=settings.usage_max_bytes,
                wall=self._wall,
            ),
            metrics=self._metrics,
            url=f"{settings.control_url}/internal/gateway/usage",
            headers=headers,
        )
        self._upstream = Upstream(connect_seconds=settings.connect_seconds)
        self._relay = Relay(
            upstream=self._upstream,
            targets=self._targets,
            limits=self._limits,
            usage=self._usage,
            metrics=self._metrics,
            deadlines=Deadlines(
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
            install=self._install,
            metrics=self._metrics,
            wall=self._wall,
        )
        feed.load_copy()
        self._measure_parts()
        self._control = aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar(), trust_env=False)
        self._writer = self._run("usage writer", self._usage.write_for_ever())
        self._poster = self._run("usage poster", self._usage.post_for_ever(self._control))
        self._poller = self._run("snapshot poller", feed.poll_for_ever(self._control))

    def _measure_parts(self) -> None:
        gauges: tuple[tuple[str, str, Callable[[], float]], ...] = (
            ("open_requests", "Requests being served.", lambda: self._relay.open_requests),
            (
                "usage_records_waiting",
                "Usage records not acknowledged yet.",
                lambda: self._usage.waiting_records,
            ),
            (
                "usage_journal_bytes",
                "Size of the usage journal's unacknowledged batches.",
                lambda: self._usage.waiting_bytes,
            ),
        )
        for name, meaning, read in gauges:
            self._metrics.gauge(f"ninefold_gateway_{name}", meaning, read=read)

    def _run(self, name: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.append(task)
        return task

    async def stop(self) -> None:
        """Flush usage and let go of everything. Requests have ended or been cut off before."""
        self._poller.cancel()
        self._poster.cancel()
        await asyncio.gather(self._poller, self._poster, return_exceptions=True)
        await self._usage.stop(self._control, seconds=_LAST_POST_SECONDS)
        await asyncio.gather(self._writer, return_exceptions=True)
        await self._upstream.close()
        await self._control.close()
        self._lock.release()

    def _install(self, snapshot: Snapshot) -> None:
        self._table = self._targets.compile(snapshot)
        self._limits.keep(snapshot.keys)
        logger.info("snapshot installed", extra={"version": snapshot.version})

    # -- requests -----------------------------------------------------------------------------

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._serve(Exchange(scope, receive, send))
        elif scope["type"] == "lifespan":
            await self._live(receive, send)
        else:
            await send({"type": "websocket.close", "code": 1000})

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            await self.start()
        except Exception as error:
            logger.exception("the gateway cannot start")
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            return
        # What is there now stays: looking through it again and again would hold requests up.
        gc.collect()
        gc.freeze()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.stop()
        await send({"type": "lifespan.shutdown.complete"})

    async def _serve(self, exchange: Exchange) -> None:
        self._origins.mark(exchange)
        try:
            await self._dispatch(exchange)
        except ClientLeft:
            return
        except ApiError as error:
            await self._refuse(exchange, error)
        except Exception:
            logger.exception("a request failed", extra={"request_id": exchange.request_id})
            await self._refuse(exchange, internal_error())

    async def _refuse(self, exchange: Exchange, error: ApiError) -> None:
        self._metrics.errors.add(str(error.status))
        if not exchange.started:
            await exchange.respond_error(error)

    async def _dispatch(self, exchange: Exchange) -> None:
        path = exchange.path
        operation = self._calls.get(path)
        if self._origins.asked(exchange):
            await self._origins.answer(exchange)
        elif operation is not None:
            _require(exchange, "POST")
            await self._complete(exchange, operation)
        elif path == _MODELS:
            _require(exchange, "GET")
            await self._list_models(exchange)
        elif path.startswith(f"{_MODELS}/"):
            _require(exchange, "GET")
            await self._show_model(exchange, path.removeprefix(f"{_MODELS}/"))
        elif (page := self._pages.get(path)) is not None:
            _require(exchange, "GET")
            await page(exchange)
        else:
            raise bad_request(
                f"There is nothing at {path[:200]!r}; the gateway has {_MODELS} and "
                f"{', '.join(self._calls)}.",
                code="unknown_url",
                status=404,
            )

    def _fresh_table(self) -> Table:
        """What may be served now.

        :raises ApiError: 503 if there is no snapshot, or only one that is too old.
        """
        table = self._table
        if table is None:
            raise unavailable(
                "The gateway has not heard from its control plane yet.",
                code="no_snapshot",
                retry_after_seconds=_RETRY_SECONDS,
            )
        if self._wall() >= table.stale_at:
            raise unavailable(
                "The gateway has not heard from its control plane for too long.",
                code="stale_snapshot",
                retry_after_seconds=_RETRY_SECONDS,
            )
        return table

    def _authenticate(self, exchange: Exchange, table: Table) -> Key:
        secret = exchange.bearer
        if not secret:
            raise key_refused("An API key is needed: send 'Authorization: Bearer <key>'.")
        # The digest is looked up, not the key compared: timing tells nothing that helps to guess.
        key = table.keys.get(sha256(secret.encode()).hexdigest())
        if key is None:
            raise key_refused("This API key is unknown or has been revoked.")
        if key.expires_at is not None and self._wall() >= key.expires_at.timestamp():
            raise key_refused(f"This API key expired at {key.expires_at.isoformat()}.")
        return key

    async def _complete(self, exchange: Exchange, operation: Operation) -> None:
        table = self._fresh_table()
        key = self._authenticate(exchange, table)
        body = await exchange.read_json_body(limit=self._settings.max_body_bytes)
        call = parse_call(body, operation=operation)
        line = table.lines.get(call.model)
        if line is None or not key.may_use(line.route):
            raise model_not_found(call.model)
        check_fit(call, line.route)
        await self._relay.serve(
            exchange, key=key, line=line, call=call, gateways=table.snapshot.gateways
        )

    async def _list_models(self, exchange: Exchange) -> None:
        table = self._fresh_table()
        key = self._authenticate(exchange, table)
        routes = [line.route for line in table.lines.values() if key.may_use(line.route)]
        models = [_model(route) for route in sorted(routes, key=lambda route: route.name)]
        await exchange.respond_json({"object": "list", "data": models})

    async def _show_model(self, exchange: Exchange, name: str) -> None:
        table = self._fresh_table()
        key = self._authenticate(exchange, table)
        line = table.lines.get(name)
        if line is None or not key.may_use(line.route):
            raise model_not_found(name)
        await exchange.respond_json(_model(line.route))


def _require(exchange: Exchange, method: str) -> None:
    if exchange.method != method:
        raise ApiError(
            f"{exchange.path} takes {method}, not {exchange.method}.",
            status=405,
            kind=ErrorType.INVALID_REQUEST,
            code="method_not_allowed",
            headers={"allow": method},
        )


def _model(route: Route) -> dict[str, object]:
    model: dict[str, object] = {
        "id": route.name,
        "object": "model",
        "created": route.created,
        "owned_by": "ninefold",
    }
    if route.context_length is not None:
        # The name under which vLLM reports it, which clients already read.
        model["max_model_len"] = route.context_length
    return model


def create_app() -> Gateway:
    """The app as the environment describes it, its log lines too.

    :raises SettingsError: if a ``NINEFOLD_*`` variable is missing or unusable.
    """
    logs.configure(os.environ)
    return Gateway(Settings.from_environment(os.environ))
