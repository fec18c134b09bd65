"""Requests to engines: connections, choice of an endpoint, forwarding of responses, and accounting."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from gateway.engine_responses import (
    TokenCount,
    compact_json,
    engine_response_error,
    ranked_documents,
    token_count,
    with_model_name,
)
from gateway.engine_streams import (
    DONE,
    MAX_EVENT_BYTES,
    ServerSentEventSplitter,
    StreamBroken,
    StreamRewriter,
    StreamSummary,
    error_event,
)
from gateway.errors import (
    ApiError,
    internal_error,
    shutting_down_error,
    unavailable_error,
    upstream_failure_error,
)
from gateway.http_exchange import ClientAborted, HttpExchange
from gateway.load_balancing import (
    EJECTION_SECONDS,
    EndpointChoice,
    EngineTarget,
    LoadBalancer,
    RouteWithPools,
)
from gateway.metrics import GatewayMetrics
from gateway.model_requests import ModelRequest, UpstreamBody
from gateway.operations import FORMATS, RouteOperation
from gateway.rate_limits import RateLimiter, RequestCharge
from gateway.snapshots import SnapshotKey
from gateway.token_estimates import estimate_prompt_tokens, estimate_value_tokens
from gateway.usage_reporting import RequestOutcome, RequestUsage, UsageReporter

#: Engines behind uvicorn close an idle connection after 5 s. Closing it earlier means that no request
#: is ever sent on a connection that the engine is closing.
_KEEP_ALIVE_SECONDS = 4.0

#: A response that is not streamed is held in memory, as is an event that repeats a whole one.
MAX_RESPONSE_BYTES = 64 * 1024 * 1024
#: Only the message of an error response is used.
MAX_ERROR_BYTES = 64 * 1024


class EngineConnectionFailed(Exception):
    """No connection to the endpoint was made, so the request was not sent."""


class EngineClient:
    """One client session for all engines; must be created inside a running event loop."""

    def __init__(self, *, connect_seconds: float) -> None:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=0, keepalive_timeout=_KEEP_ALIVE_SECONDS, ttl_dns_cache=30
            ),
            # An engine's cookies must never be sent with another client's request.
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=connect_seconds),
            auto_decompress=False,
            trust_env=False,
        )

    async def close(self) -> None:
        await self._session.close()

    async def post(
        self,
        target: EngineTarget,
        *,
        operation: RouteOperation,
        body: UpstreamBody,
        request_id: str,
    ) -> aiohttp.ClientResponse:
        """The engine's response with its body unread; the caller releases it.

        The client's own headers are not sent.

        :raises EngineConnectionFailed: if the endpoint refuses the connection.
        :raises ApiError: 502 if it accepts the request and closes the connection without a response.
        """
        try:
            return await self._session.post(
                target.urls[operation],
                data=body.content,
                headers={
                    **target.headers,
                    "Content-Type": body.content_type,
                    "X-Request-Id": request_id,
                },
                # A redirect could send the credential to any host.
                allow_redirects=False,
            )
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise EngineConnectionFailed from error
        except aiohttp.ClientError as error:
            raise upstream_failure_error(
                "gateway.engine.connection_closed",
                "The model's engine closed the connection without a response.",
            ) from error


async def read_response(response: aiohttp.ClientResponse, *, limit: int) -> bytes:
    """The whole body.

    :raises ApiError: 502 if it is longer than ``limit`` bytes or breaks off.
    """
    body = b""
    try:
        async for chunk in response.content.iter_any():
            body = body + chunk if body else chunk
            if len(body) > limit:
                raise upstream_failure_error(
                    "gateway.engine.response_too_large",
                    "The engine's response is longer than {limit} bytes.",
                    limit=limit,
                )
    except aiohttp.ClientError as error:
        raise _interrupted_error() from error
    return body


def _interrupted_error() -> ApiError:
    return upstream_failure_error(
        "gateway.engine.response_interrupted", "The response of the model's engine was interrupted."
    )


logger = logging.getLogger(__name__)

#: The recorded status of a request aborted by the client, as in nginx; it is never sent.
STATUS_CLIENT_CLOSED_REQUEST = 499

#: Endpoints that are tried for a request.
_MAX_ENDPOINTS = 2
#: An engine should close its stream after ``[DONE]``; its connection is reused only if it does so in time.
_STREAM_CLOSE_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestDeadlines:
    """In seconds from the admission of a request."""

    first_byte: float
    total: float


@dataclass(slots=True, kw_only=True)
class _RequestProgress:
    """The state of a request. Instants are seconds of the monotonic clock."""

    key: SnapshotKey
    entry: RouteWithPools
    request: ModelRequest
    started_at: float
    #: The estimate that is charged before an engine has reported usage; 0 if the operation uses no tokens.
    prompt_estimate: int
    #: None until the request has been admitted.
    charge: RequestCharge | None = None
    #: None until a backend has been chosen.
    backend: str | None = None
    status: int = 200
    outcome: RequestOutcome = RequestOutcome.OK
    first_token_at: float | None = None
    #: The usage of a response that was not streamed.
    whole: TokenCount | None = None
    tally: StreamSummary = field(default_factory=StreamSummary)

    @property
    def tokens(self) -> TokenCount:
        """The tokens used as far as they are known.

        The usage reported by the engine, if any. Otherwise the estimate of the prompt, and a token
        for each streamed part of the output: so a client that aborts is charged for the work of
        the engine. If the engine failed, only the streamed output is charged, and a request that
        reached no engine costs nothing.
        """
        if self.whole is not None:
            return self.whole
        if (reported := self.tally.reported) is not None:
            if self.tally.complete:
                return reported
            # Messages report their input at the start of a stream.
            return TokenCount(
                prompt=reported.prompt, completion=max(reported.completion, self.tally.chunks)
            )
        free = self.backend is None or self.outcome in (
            RequestOutcome.ERROR,
            RequestOutcome.REJECTED,
        )
        return TokenCount(prompt=0 if free else self.prompt_estimate, completion=self.tally.chunks)

    def fail(self, error: ApiError) -> None:
        self.status = error.status
        # Before a backend was chosen, the gateway itself rejected the request.
        self.outcome = RequestOutcome.REJECTED if self.backend is None else RequestOutcome.ERROR

    def abort(self) -> None:
        """The client left; one that has read an error of the engine does so at once."""
        if self.tally.failed:
            self.fail(_engine_error_in_stream())
        elif self.outcome is RequestOutcome.OK:
            self.status, self.outcome = STATUS_CLIENT_CLOSED_REQUEST, RequestOutcome.ABORTED


class EngineRelay:
    """Serves validated requests."""

    def __init__(
        self,
        *,
        engine_client: EngineClient,
        load_balancer: LoadBalancer,
        rate_limiter: RateLimiter,
        usage: UsageReporter,
        metrics: GatewayMetrics,
        deadlines: RequestDeadlines,
        monotonic: Callable[[], float],
        wall: Callable[[], float],
    ) -> None:
        self._engine_client = engine_client
        self._load_balancer = load_balancer
        self._rate_limiter = rate_limiter
        self._usage = usage
        self._metrics = metrics
        self._deadlines = deadlines
        self._monotonic = monotonic
        self._wall = wall
        #: Requests that are admitted and have not ended.
        self.open_requests = 0

    async def serve(
        self,
        exchange: HttpExchange,
        *,
        key: SnapshotKey,
        entry: RouteWithPools,
        request: ModelRequest,
        gateways: int,
    ) -> None:
        """Serve the request and account for it, however it ends.

        A request that is still open at the end of the server's shutdown time fails; a stream then ends
        with that error as its last event.

        :raises ApiError: if it failed before a response was started.
        :raises ClientAborted: if the client disconnected before the end.
        """
        progress = _RequestProgress(
            key=key,
            entry=entry,
            request=request,
            started_at=self._monotonic(),
            prompt_estimate=estimate_prompt_tokens(
                request.payload, context_length=entry.route.context_length
            )
            if request.format.uses_tokens
            else 0,
        )
        try:
            charge = self._rate_limiter.admit(
                key,
                gateways=gateways,
                tokens=progress.prompt_estimate if request.format.uses_tokens else None,
            )
        except ApiError as error:
            progress.fail(error)
            self._record_usage(progress)
            raise
        self.open_requests += 1
        progress.charge = charge
        try:
            exchange.add_headers(self._rate_limiter.headers(key).items())
            await exchange.while_connected(self._responder(request)(exchange, progress))
        except ApiError as error:
            progress.fail(error)
            raise
        except ClientAborted:
            progress.abort()
            raise
        except asyncio.CancelledError:
            if exchange.finished:
                return
            ended = shutting_down_error()
            progress.fail(ended)
            if not (request.stream and exchange.started):
                raise ended from None
            # A client that does not read its stream must not delay the shutdown.
            with suppress(TimeoutError):
                async with asyncio.timeout(0):
                    await self._abort_stream(exchange, progress, ended)
        except Exception:
            progress.fail(internal_error())
            raise
        finally:
            self.open_requests -= 1
            charge.settle(progress.tokens.total)
            self._record_usage(progress)

    def _responder(
        self, request: ModelRequest
    ) -> Callable[[HttpExchange, _RequestProgress], Coroutine[Any, Any, None]]:
        if request.stream:
            return self._respond_stream
        return self._respond_unstreamed if request.is_answered_with_json else self._respond_file

    def _record_usage(self, progress: _RequestProgress) -> None:
        route = progress.entry.route.name
        operation = progress.request.operation
        tokens = progress.tokens
        seconds = self._monotonic() - progress.started_at
        first = progress.first_token_at
        first_seconds = None if first is None else first - progress.started_at
        self._usage.add(
            RequestUsage(
                at=self._wall(),
                key=progress.key.uid,
                route=route,
                backend=progress.backend,
                operation=operation,
                status=progress.status,
                prompt_tokens=tokens.prompt,
                completion_tokens=tokens.completion,
                duration_ms=seconds * 1000,
                first_token_ms=None if first_seconds is None else first_seconds * 1000,
                outcome=progress.outcome,
            )
        )
        metrics = self._metrics
        metrics.requests.add(route, operation.value, str(progress.status), progress.outcome.value)
        metrics.duration.observe(route, seconds=seconds)
        if first_seconds is not None:
            metrics.first_token.observe(route, seconds=first_seconds)
        if tokens.total:
            metrics.tokens.add(route, "prompt", amount=tokens.prompt)
            metrics.tokens.add(route, "completion", amount=tokens.completion)

    @asynccontextmanager
    async def _open_response(
        self, exchange: HttpExchange, progress: _RequestProgress
    ) -> AsyncIterator[tuple[EndpointChoice, aiohttp.ClientResponse]]:
        """A response with status 200, from a second endpoint if the first refuses the connection.

        :raises ApiError: if there is no such response.
        """
        failed: list[EngineTarget] = []
        while True:
            choice = self._choose_endpoint(progress, failed)
            target = choice.target
            self._load_balancer.begin_request(target)
            try:
                response = await self._engine_client.post(
                    target,
                    operation=progress.request.operation,
                    body=progress.request.upstream_body(model=choice.backend.model),
                    request_id=exchange.request_id,
                )
                try:
                    await _require_success(response, choice, route=progress.entry.route.name)
                    yield choice, response
                finally:
                    # The connection is reused if the body was read to its end, else closed.
                    response.release()
                return
            except EngineConnectionFailed:
                failed.append(target)
                self._load_balancer.eject(target)
                self._metrics.refused_connections.add(progress.entry.route.name)
            finally:
                self._load_balancer.end_request(target)

    def _choose_endpoint(
        self, progress: _RequestProgress, failed: list[EngineTarget]
    ) -> EndpointChoice:
        choice = None
        if len(failed) < _MAX_ENDPOINTS:
            choice = self._load_balancer.choose(progress.entry, exclude=failed)
        if choice is None:
            raise unavailable_error(
                "gateway.endpoint.not_ready",
                "No endpoint of {model} is ready.",
                model=repr(progress.entry.route.name),
                code="no_ready_endpoint",
                retry_after_seconds=EJECTION_SECONDS,
            )
        progress.backend = choice.backend.uid
        return choice

    async def _respond_unstreamed(self, exchange: HttpExchange, progress: _RequestProgress) -> None:
        route = progress.entry.route.name
        try:
            async with asyncio.timeout(self._deadlines.total):
                async with self._open_response(exchange, progress) as (_, response):
                    body = await read_response(response, limit=MAX_RESPONSE_BYTES)
        except TimeoutError:
            raise _timeout_error(self._deadlines.total) from None
        content = _parse_response(body, operation=progress.request.operation)
        progress.whole = _reported_or_estimated_tokens(content, progress)
        answer = compact_json(with_model_name(content, route=route))
        await exchange.respond(status=200, body=answer)

    async def _respond_file(self, exchange: HttpExchange, progress: _RequestProgress) -> None:
        """Forward audio or a text as it arrives, with the engine's type.

        A file that has been started and fails is cut off, so that no client takes it for whole.
        """
        try:
            async with asyncio.timeout(self._deadlines.total):
                async with self._open_response(exchange, progress) as (_, response):
                    await exchange.start_stream(response.content_type.encode("latin-1"))
                    async for chunk in response.content.iter_any():
                        await exchange.send_chunk(chunk)
        except TimeoutError:
            raise _timeout_error(self._deadlines.total) from None
        except aiohttp.ClientError as error:
            raise _interrupted_error() from error
        progress.whole = TokenCount(prompt=progress.prompt_estimate, completion=0)
        await exchange.finish_stream()

    async def _respond_stream(self, exchange: HttpExchange, progress: _RequestProgress) -> None:
        try:
            first_byte = min(self._deadlines.first_byte, self._deadlines.total)
            async with asyncio.timeout(first_byte) as deadline:
                async with self._open_response(exchange, progress) as (choice, response):
                    await self._forward_events(exchange, progress, deadline, choice, response)
        except TimeoutError:
            total = exchange.started or self._deadlines.total <= self._deadlines.first_byte
            limit = self._deadlines.total if total else self._deadlines.first_byte
            await self._abort_stream(exchange, progress, _timeout_error(limit))
        except (StreamBroken, aiohttp.ClientError) as error:
            logger.warning(
                "an engine's stream broke",
                extra={"route": progress.entry.route.name, "reason": str(error)},
            )
            await self._abort_stream(exchange, progress, _interrupted_error())

    async def _forward_events(
        self,
        exchange: HttpExchange,
        progress: _RequestProgress,
        deadline: asyncio.Timeout,
        choice: EndpointChoice,
        response: aiohttp.ClientResponse,
    ) -> None:
        """Forward events one by one, as they arrive.

        :raises StreamBroken: if the bytes are no events, or end before the response is complete.
        """
        if response.content_type != "text/event-stream":
            raise upstream_failure_error(
                "gateway.engine.not_a_stream",
                "The model's engine responded to a streaming request without a stream.",
            )
        form = progress.request.format
        # The last events of typed streams repeat the whole response.
        limit = MAX_RESPONSE_BYTES if form.final_events else MAX_EVENT_BYTES
        splitter = ServerSentEventSplitter(limit=limit)
        rewriter = StreamRewriter(
            route=progress.entry.route.name,
            model=choice.backend.model,
            include_usage=progress.request.include_usage,
            tally=progress.tally,
            form=form,
        )
        event_loop = asyncio.get_running_loop()
        total_at = (
            event_loop.time() + self._deadlines.total - (self._monotonic() - progress.started_at)
        )
        async for chunk in response.content.iter_any():
            if exchange.finished:
                continue
            if not exchange.started:
                deadline.reschedule(total_at)
                await exchange.start_stream()
            await self._send_events(exchange, progress, rewriter, splitter.feed(chunk))
            if progress.charge is not None:
                progress.charge.change(progress.tokens.total)
            if progress.tally.done:
                await self._finish_stream(exchange, progress)
                deadline.reschedule(event_loop.time() + _STREAM_CLOSE_SECONDS)
        if exchange.finished:
            return
        await self._send_events(exchange, progress, rewriter, splitter.close())
        if not progress.tally.complete:
            raise StreamBroken("the stream ended before the answer did")
        await self._finish_stream(exchange, progress)

    async def _send_events(
        self,
        exchange: HttpExchange,
        progress: _RequestProgress,
        rewriter: StreamRewriter,
        events: list[bytes],
    ) -> None:
        for event in events:
            if progress.tally.done:
                return
            rewritten = rewriter.rewrite(event)
            if progress.first_token_at is None and progress.tally.chunks:
                progress.first_token_at = self._monotonic()
            if rewritten is not None:
                await exchange.send_chunk(rewritten)

    async def _finish_stream(self, exchange: HttpExchange, progress: _RequestProgress) -> None:
        if progress.tally.failed:
            progress.fail(_engine_error_in_stream())
        marked = not progress.request.format.final_events or progress.tally.done
        await exchange.finish_stream(DONE if marked else b"")

    async def _abort_stream(
        self, exchange: HttpExchange, progress: _RequestProgress, error: ApiError
    ) -> None:
        """Send an error as an event if the stream has started, else raise it."""
        if exchange.finished:
            # The response was complete; only the engine's connection was not closed in order.
            return
        if not exchange.started:
            raise error
        progress.fail(error)
        form = progress.request.format
        event = error_event(error.as_object(form.errors))
        await exchange.finish_stream(event if form.final_events else event + DONE)


def _engine_error_in_stream() -> ApiError:
    return upstream_failure_error(
        "gateway.stream.engine_error", "The engine reported an error in its stream."
    )


async def _require_success(
    response: aiohttp.ClientResponse, choice: EndpointChoice, *, route: str
) -> None:
    if response.status == 200:
        return
    body = await read_response(response, limit=MAX_ERROR_BYTES)
    logger.warning(
        "an engine answered with an error",
        extra={"route": route, "backend": choice.backend.uid, "status": response.status},
    )
    raise engine_response_error(
        status=response.status, body=body, route=route, model=choice.backend.model
    )


def _parse_response(body: bytes, *, operation: RouteOperation) -> dict[str, Any]:
    """The response of an engine, which must have the field of the operation."""
    field = FORMATS[operation].response_field
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        raise upstream_failure_error(
            "gateway.engine.response_not_json", "The response of the model's engine is not JSON."
        ) from None
    if operation is RouteOperation.RERANK:
        content = ranked_documents(content)
    if not isinstance(content, dict) or field not in content:
        raise upstream_failure_error(
            "gateway.engine.response_lacks_field",
            "The response of the model's engine has no '{field}'.",
            field=field,
        )
    return content


def _reported_or_estimated_tokens(
    content: dict[str, Any], progress: _RequestProgress
) -> TokenCount:
    """The usage reported in a response; an estimate if there is none."""
    if isinstance(content.get("usage"), dict):
        return token_count(content["usage"])
    choices = content.get("choices")
    texts = [
        choice.get("message", choice.get("text"))
        for choice in (choices if isinstance(choices, list) else ())
        if isinstance(choice, dict)
    ]
    return TokenCount(prompt=progress.prompt_estimate, completion=estimate_value_tokens(texts))


def _timeout_error(seconds: float) -> ApiError:
    return upstream_failure_error(
        "gateway.engine.response_timeout",
        "The model's engine did not respond within {seconds} s.",
        seconds=f"{seconds:g}",
        status=504,
        code="upstream_timeout",
    )
