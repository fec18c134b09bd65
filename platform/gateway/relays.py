"""The exchange with an engine: choose an endpoint, send, pass the answer on, account for it."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from gateway.calls import Call
from gateway.encodings import compact_json
from gateway.errors import ApiError, internal_error, unavailable, upstream_failed
from gateway.estimates import prompt_tokens, value_tokens
from gateway.exchanges import ClientLeft, Exchange
from gateway.limits import Charge, Limits
from gateway.metrics import Metrics
from gateway.replies import TokenCount, renamed, token_count, upstream_error
from gateway.snapshots import Key
from gateway.streams import (
    DONE,
    EventSplitter,
    StreamBroken,
    StreamRewriter,
    StreamTally,
    error_event,
)
from gateway.tables import SET_ASIDE_SECONDS, Choice, Line, Target, Targets
from gateway.upstream import (
    LARGEST_ANSWER_BYTES,
    LARGEST_ERROR_BYTES,
    ConnectFailed,
    Upstream,
    read_answer,
)
from gateway.usage import Outcome, Usage, UsageRecord

logger = logging.getLogger(__name__)

#: The status in the books for a client that left; no client ever sees it.
STATUS_CLIENT_LEFT = 499

#: Endpoints that a request is offered to.
_MOST_ENDPOINTS = 2
#: An engine should close its stream after ``[DONE]``; its connection is kept only if it does soon.
_TAIL_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadlines:
    """In seconds from the moment a request was let in."""

    first_byte: float
    total: float


@dataclass(slots=True, kw_only=True)
class _Progress:
    """What is known of a request so far. Instants are seconds of the monotonic clock."""

    key: Key
    line: Line
    call: Call
    started_at: float
    #: The estimate that the call is charged before an engine has counted.
    prompt_estimate: int
    #: None until the call has been let in.
    charge: Charge | None = None
    #: None until a backend has been chosen.
    backend: str | None = None
    status: int = 200
    outcome: Outcome = Outcome.OK
    first_token_at: float | None = None
    #: The count of an answer that was not streamed.
    whole: TokenCount | None = None
    tally: StreamTally = field(default_factory=StreamTally)

    @property
    def tokens(self) -> TokenCount:
        """What the call costs as far as it is known.

        The engine's own count, where it has counted. Otherwise the estimate of the prompt, and a token
        for each part of an answer that was passed on: so a client that leaves early pays for what
        the engine did for it. An engine that failed is paid only for what was passed on, and a call that
        reached no engine costs nothing.
        """
        counted = self.whole or self.tally.reported
        if counted is not None:
            return counted
        free = self.backend is None or self.outcome in (Outcome.ERROR, Outcome.REJECTED)
        return TokenCount(prompt=0 if free else self.prompt_estimate, completion=self.tally.pieces)

    def fail(self, error: ApiError) -> None:
        self.status = error.status
        # Before a backend was reached it was the gateway that said no.
        self.outcome = Outcome.REJECTED if self.backend is None else Outcome.ERROR


class Relay:
    """Serves calls that have been checked."""

    def __init__(
        self,
        *,
        upstream: Upstream,
        targets: Targets,
        limits: Limits,
        usage: Usage,
        metrics: Metrics,
        deadlines: Deadlines,
        monotonic: Callable[[], float],
        wall: Callable[[], float],
    ) -> None:
        self._upstream = upstream
        self._targets = targets
        self._limits = limits
        self._usage = usage
        self._metrics = metrics
        self._deadlines = deadlines
        self._monotonic = monotonic
        self._wall = wall
        #: Requests between admission and their end.
        self.open_requests = 0

    async def serve(
        self, exchange: Exchange, *, key: Key, line: Line, call: Call, gateways: int
    ) -> None:
        """Answer the call and account for it, however it ends.

        :raises ApiError: if nothing of an answer has been sent.
        :raises ClientLeft: if the client left before the end.
        """
        progress = _Progress(
            key=key,
            line=line,
            call=call,
            started_at=self._monotonic(),
            prompt_estimate=prompt_tokens(call.payload, context_length=line.route.context_length),
        )
        try:
            charge = self._limits.admit(key, gateways=gateways, tokens=progress.prompt_estimate)
        except ApiError as error:
            progress.fail(error)
            self._account(progress)
            raise
        self.open_requests += 1
        progress.charge = charge
        try:
            exchange.add_headers(self._limits.headers(key).items())
            work = self._stream if call.stream else self._whole
            await exchange.while_connected(work(exchange, progress))
        except ApiError as error:
            progress.fail(error)
            raise
        except (ClientLeft, asyncio.CancelledError):
            progress.status, progress.outcome = STATUS_CLIENT_LEFT, Outcome.ABORTED
            raise
        except Exception:
            progress.fail(internal_error())
            raise
        finally:
            self.open_requests -= 1
            charge.settle(progress.tokens.total)
            self._account(progress)

    def _account(self, progress: _Progress) -> None:
        route = progress.line.route.name
        operation = progress.call.operation
        tokens = progress.tokens
        seconds = self._monotonic() - progress.started_at
        first = progress.first_token_at
        first_seconds = None if first is None else first - progress.started_at
        self._usage.add(
            UsageRecord(
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
    async def _opened(
        self, exchange: Exchange, progress: _Progress
    ) -> AsyncIterator[tuple[Choice, aiohttp.ClientResponse]]:
        """An answer of status 200, from a second endpoint if the first takes no connection.

        :raises ApiError: if there is no such answer.
        """
        refusing: list[Target] = []
        while True:
            choice = self._choose(progress, refusing)
            target = choice.target
            target.outstanding += 1
            try:
                response = await self._upstream.post(
                    target,
                    operation=progress.call.operation,
                    body=progress.call.body_for(model=choice.backend.model),
                    request_id=exchange.request_id,
                )
                try:
                    await _require_success(response, choice, route=progress.line.route.name)
                    yield choice, response
                finally:
                    # Keeps the connection if the body was read to its end, else closes it.
                    response.release()
                return
            except ConnectFailed:
                refusing.append(target)
                self._targets.set_aside(target)
                self._metrics.refused_connections.add(progress.line.route.name)
            finally:
                target.outstanding -= 1

    def _choose(self, progress: _Progress, refusing: list[Target]) -> Choice:
        choice = None
        if len(refusing) < _MOST_ENDPOINTS:
            choice = self._targets.choose(progress.line, avoid=refusing)
        if choice is None:
            raise unavailable(
                f"No endpoint of {progress.line.route.name!r} is ready.",
                code="no_ready_endpoint",
                retry_after_seconds=SET_ASIDE_SECONDS,
            )
        progress.backend = choice.backend.uid
        return choice

    async def _whole(self, exchange: Exchange, progress: _Progress) -> None:
        route = progress.line.route.name
        try:
            async with asyncio.timeout(self._deadlines.total):
                async with self._opened(exchange, progress) as (_, response):
                    body = await read_answer(response, limit=LARGEST_ANSWER_BYTES)
        except TimeoutError:
            raise _too_late(self._deadlines.total) from None
        content = _answer(body)
        progress.whole = _count_of(content, progress)
        answer = compact_json(renamed(content, route=route))
        await exchange.respond(status=200, body=answer)

    async def _stream(self, exchange: Exchange, progress: _Progress) -> None:
        try:
            first_byte = min(self._deadlines.first_byte, self._deadlines.total)
            async with asyncio.timeout(first_byte) as deadline:
                async with self._opened(exchange, progress) as (choice, response):
                    await self._pass_on(exchange, progress, deadline, choice, response)
        except TimeoutError:
            total = exchange.started or self._deadlines.total <= self._deadlines.first_byte
            limit = self._deadlines.total if total else self._deadlines.first_byte
            await self._break_off(exchange, progress, _too_late(limit))
        except (StreamBroken, aiohttp.ClientError) as error:
            logger.warning(
                "an engine's stream broke",
                extra={"route": progress.line.route.name, "reason": str(error)},
            )
            failure = upstream_failed("The model's engine broke off its answer.")
            await self._break_off(exchange, progress, failure)

    async def _pass_on(
        self,
        exchange: Exchange,
        progress: _Progress,
        deadline: asyncio.Timeout,
        choice: Choice,
        response: aiohttp.ClientResponse,
    ) -> None:
        """Pass events on one by one, as they come.

        :raises StreamBroken: if the bytes are no events, or end before the answer does.
        """
        if response.content_type != "text/event-stream":
            raise upstream_failed(
                "The model's engine answered a streamed request without a stream."
            )
        splitter = EventSplitter()
        rewriter = StreamRewriter(
            route=progress.line.route.name,
            model=choice.backend.model,
            wants_usage=progress.call.wants_usage,
            tally=progress.tally,
        )
        loop = asyncio.get_running_loop()
        total_at = loop.time() + self._deadlines.total - (self._monotonic() - progress.started_at)
        async for piece in response.content.iter_any():
            if exchange.finished:
                continue
            if not exchange.started:
                deadline.reschedule(total_at)
                await exchange.start_events()
            await self._send(exchange, progress, rewriter, splitter.feed(piece))
            if progress.charge is not None:
                progress.charge.change(progress.tokens.total)
            if progress.tally.done:
                await self._finish(exchange, progress)
                deadline.reschedule(loop.time() + _TAIL_SECONDS)
        if exchange.finished:
            return
        await self._send(exchange, progress, rewriter, splitter.close())
        if not progress.tally.complete:
            raise StreamBroken("the stream ended before the answer did")
        await self._finish(exchange, progress)

    async def _send(
        self,
        exchange: Exchange,
        progress: _Progress,
        rewriter: StreamRewriter,
        events: list[bytes],
    ) -> None:
        for event in events:
            if progress.tally.done:
                return
            rewritten = rewriter.rewrite(event)
            if progress.first_token_at is None and progress.tally.pieces:
                progress.first_token_at = self._monotonic()
            if rewritten is not None:
                await exchange.send_event(rewritten)

    async def _finish(self, exchange: Exchange, progress: _Progress) -> None:
        if progress.tally.failed:
            progress.fail(upstream_failed("The engine reported an error in its stream."))
        await exchange.finish_events(DONE)

    async def _break_off(self, exchange: Exchange, progress: _Progress, error: ApiError) -> None:
        """Tell the client of an error by whatever can still be sent."""
        if exchange.finished:
            # The answer was complete; only the engine's connection was not closed in order.
            return
        if not exchange.started:
            raise error
        progress.fail(error)
        await exchange.finish_events(error_event(error.as_object()) + DONE)


async def _require_success(response: aiohttp.ClientResponse, choice: Choice, *, route: str) -> None:
    if response.status == 200:
        return
    body = await read_answer(response, limit=LARGEST_ERROR_BYTES)
    logger.warning(
        "an engine answered with an error",
        extra={"route": route, "backend": choice.backend.uid, "status": response.status},
    )
    raise upstream_error(status=response.status, body=body, route=route, model=choice.backend.model)


def _answer(body: bytes) -> dict[str, Any]:
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        raise upstream_failed(
            "The model's engine answered with something that is not JSON."
        ) from None
    if not isinstance(content, dict) or "choices" not in content:
        raise upstream_failed(
            "The model's engine answered with something that is not a completion."
        )
    return content


def _count_of(content: dict[str, Any], progress: _Progress) -> TokenCount:
    """The engine's count of a whole answer; an estimate where it did not count."""
    if isinstance(content.get("usage"), dict):
        return token_count(content["usage"])
    texts = [
        choice.get("message", choice.get("text"))
        for choice in content["choices"]
        if isinstance(choice, dict)
    ]
    return TokenCount(prompt=progress.prompt_estimate, completion=value_tokens(texts))


def _too_late(seconds: float) -> ApiError:
    return upstream_failed(
        f"The model's engine did not answer within {seconds:g} s.",
        status=504,
        code="upstream_timeout",
    )
