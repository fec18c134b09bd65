"""The ASGI application: OpenAI's routes for one model.

Every request but ``/health`` must bear the key. An answer is generated only as long as its reader is
there: when the client leaves, the generation is cancelled at its next token.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import threading
import time
import uuid
from bisect import bisect_left
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from ninefold_runtime.serving import generation_requests
from ninefold_runtime.serving.generation_requests import RequestRejected, TextRequest
from ninefold_runtime.serving.text_generation import (
    Event,
    GenerationFailed,
    GenerationFinished,
    GenerationRequest,
    QueueFull,
    TextDelta,
    TextGenerator,
)

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

LARGEST_BODY = 8 * 1024 * 1024


class HttpDisconnected(Exception):
    """The client has disconnected; no response can be delivered."""


def bearer_token(scope: Scope) -> bytes:
    """The token of the Authorization header; empty if there is none."""
    for name, value in scope["headers"]:
        if name == b"authorization":
            scheme, _, token = bytes(value).partition(b" ")
            return token.strip() if scheme.lower() == b"bearer" else b""
    return b""


async def read_body(receive: Receive) -> bytes:
    """The whole body.

    :raises RequestRejected: if it is larger than ``LARGEST_BODY`` bytes.
    :raises HttpDisconnected: if the client leaves before its end.
    """
    chunks, size = [], 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise HttpDisconnected
        chunk = message.get("body", b"")
        size += len(chunk)
        if size > LARGEST_BODY:
            raise RequestRejected(f"the body is larger than {LARGEST_BODY:,} bytes", status=413)
        chunks.append(chunk)
        if not message.get("more_body", False):
            return b"".join(chunks)


async def wait_for_disconnect(receive: Receive) -> None:
    """Return when the client has left."""
    while (await receive())["type"] != "http.disconnect":
        pass


class AsgiResponse:
    """One answer on its way out, whole or as server-sent events."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status: int | None = None

    async def whole(
        self,
        status: int,
        body: bytes,
        *,
        kind: bytes = b"application/json",
        headers: tuple[tuple[bytes, bytes], ...] = (),
    ) -> None:
        length = (b"content-length", str(len(body)).encode())
        await self._start_response(status, (b"content-type", kind), length, *headers)
        await self._send({"type": "http.response.body", "body": body})

    async def json(
        self, status: int, value: object, *, headers: tuple[tuple[bytes, bytes], ...] = ()
    ) -> None:
        await self.whole(status, json_bytes(value), headers=headers)

    async def event(self, data: bytes) -> None:
        """One server-sent event; the first one begins the stream."""
        if self.status is None:
            await self._start_response(
                200, (b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache")
            )
        await self._send(
            {"type": "http.response.body", "body": b"data: " + data + b"\n\n", "more_body": True}
        )

    async def end(self) -> None:
        """The end of a stream."""
        await self.event(b"[DONE]")
        await self._send({"type": "http.response.body", "body": b""})

    async def _start_response(self, status: int, *headers: tuple[bytes, bytes]) -> None:
        self.status = status
        await self._send(
            {"type": "http.response.start", "status": status, "headers": list(headers)}
        )


def json_bytes(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


_PARSERS: dict[str, Callable[[bytes], TextRequest]] = {
    "/v1/chat/completions": generation_requests.parse_chat_request,
    "/v1/completions": generation_requests.parse_completion_request,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _CompletionResponseFrame:
    """What stays the same in every part of one answer."""

    id: str
    created: int
    model: str
    is_chat: bool

    def body(self, *, text: str, reason: str | None, usage: GenerationFinished) -> dict[str, Any]:
        """The whole answer."""
        content: dict[str, Any] = (
            {"message": {"role": "assistant", "content": text}} if self.is_chat else {"text": text}
        )
        return {
            **self._chunk_frame("chat.completion"),
            "choices": [{"index": 0, **content, "logprobs": None, "finish_reason": reason}],
            "usage": _usage_document(usage),
        }

    def chunk(
        self, *, text: str | None, reason: str | None = None, first: bool = False
    ) -> dict[str, Any]:
        """One part of a streamed answer."""
        if self.is_chat:
            delta: dict[str, Any] = {"role": "assistant"} if first else {}
            if text is not None:
                delta["content"] = text
            content: dict[str, Any] = {"delta": delta}
        else:
            content = {"text": text or ""}
        return {
            **self._chunk_frame("chat.completion.chunk"),
            "choices": [{"index": 0, **content, "logprobs": None, "finish_reason": reason}],
        }

    def usage_chunk(self, usage: GenerationFinished) -> dict[str, Any]:
        return {
            **self._chunk_frame("chat.completion.chunk"),
            "choices": [],
            "usage": _usage_document(usage),
        }

    def _chunk_frame(self, kind: str) -> dict[str, Any]:
        return {
            "id": self.id,
            "object": kind if self.is_chat else "text_completion",
            "created": self.created,
            "model": self.model,
        }


class EngineApp:
    """One model behind OpenAI's interface."""

    def __init__(self, *, generator: TextGenerator, model_name: str, key: str) -> None:
        self._generator = generator
        self._model = model_name
        self._key = key.encode()
        self._created = int(time.time())
        self._metrics = EngineMetrics()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = AsgiResponse(send)
        path = scope["path"]
        try:
            await self._route_request(scope, receive, answer)
        except RequestRejected as rejected:
            await answer.json(rejected.status, rejected.body())
        except QueueFull as overloaded:
            busy = RequestRejected(str(overloaded), kind="server_error", code="engine_overloaded")
            await answer.json(503, busy.body(), headers=((b"retry-after", b"1"),))
        except HttpDisconnected:
            answer.status = 499
        finally:
            operation = path.removeprefix("/v1/") if path in _PARSERS else "other"
            self._metrics.request(operation=operation, status=answer.status or 500)

    async def _route_request(self, scope: Scope, receive: Receive, answer: AsgiResponse) -> None:
        method, path = scope["method"], scope["path"]
        if path == "/health":
            await answer.json(200, {"status": "ok"})
            return
        if not hmac.compare_digest(bearer_token(scope), self._key):
            raise RequestRejected(
                "Incorrect API key provided.", status=401, param=None, code="invalid_api_key"
            )
        if path in _PARSERS:
            _require_method(method, "POST")
            await self._handle_generation(path, receive, answer)
        elif path == "/v1/models":
            _require_method(method, "GET")
            await answer.json(200, {"object": "list", "data": [self._openai_model_object()]})
        elif path == f"/v1/models/{self._model}":
            _require_method(method, "GET")
            await answer.json(200, self._openai_model_object())
        elif path.startswith("/v1/models/"):
            raise generation_requests.unknown_model_error(
                path.removeprefix("/v1/models/"), served=[self._model]
            )
        elif path == "/metrics":
            running, waiting = self._generator.load()
            text = self._metrics.text(running=running, waiting=waiting)
            await answer.whole(200, text.encode(), kind=b"text/plain; version=0.0.4")
        else:
            raise RequestRejected(f"Unknown request URL: {method} {path}", status=404)

    def _openai_model_object(self) -> dict[str, Any]:
        return {
            "id": self._model,
            "object": "model",
            "created": self._created,
            "owned_by": "ninefold",
            "max_model_len": self._generator.context_length,
        }

    async def _handle_generation(self, path: str, receive: Receive, answer: AsgiResponse) -> None:
        wanted = _PARSERS[path](await read_body(receive))
        if wanted.model != self._model:
            raise generation_requests.unknown_model_error(wanted.model, served=[self._model])
        prompt = self._encode_prompt(wanted)
        reply = _CompletionResponseFrame(
            id=("chatcmpl-" if wanted.messages else "cmpl-") + uuid.uuid4().hex,
            created=int(time.time()),
            model=self._model,
            is_chat=wanted.messages is not None,
        )
        async with aclosing(self._generation_events(wanted, prompt, receive)) as events:
            if wanted.stream:
                await _stream_response(events, reply, answer, include_usage=wanted.include_usage)
            else:
                await _collect_response(events, reply, answer)

    def _encode_prompt(self, wanted: TextRequest) -> list[int]:
        if wanted.messages is not None:
            prompt = self._generator.encode_chat(wanted.messages)
        else:
            prompt = self._generator.encode_text(wanted.prompt or "")
        context = self._generator.context_length
        if len(prompt) >= context:
            param = "messages" if wanted.messages is not None else "prompt"
            raise generation_requests.context_length_exceeded_error(
                tokens=len(prompt), context=context, param=param
            )
        return prompt

    async def _generation_events(
        self, wanted: TextRequest, prompt: list[int], receive: Receive
    ) -> AsyncGenerator[TextDelta | GenerationFinished, None]:
        """The parts of the answer as they come.

        :raises Left: when the client has left; the generation is cancelled then, as it is whenever
            the caller stops reading.
        """
        event_loop = asyncio.get_running_loop()
        events: asyncio.Queue[Event | None] = asyncio.Queue()
        ticket = GenerationRequest(
            prompt=prompt,
            sampling=wanted.sampling,
            on_event=lambda event: _put_from_thread(event_loop, events, event),
        )
        began_at, first = time.monotonic(), True
        self._generator.submit(ticket)
        departure = asyncio.ensure_future(wait_for_disconnect(receive))
        departure.add_done_callback(lambda _: events.put_nowait(None))
        try:
            while True:
                event = await events.get()
                if event is None:
                    raise HttpDisconnected
                if isinstance(event, GenerationFailed):
                    raise RequestRejected(event.message, status=500, kind="server_error")
                if first:
                    self._metrics.first_token(seconds=time.monotonic() - began_at)
                    first = False
                if isinstance(event, GenerationFinished):
                    self._metrics.generated(
                        prompt_tokens=event.prompt_tokens,
                        completion_tokens=event.completion_tokens,
                        seconds=time.monotonic() - began_at,
                    )
                yield event
                if isinstance(event, GenerationFinished):
                    return
        finally:
            self._generator.cancel(ticket)
            departure.cancel()


async def _stream_response(
    events: AsyncIterator[TextDelta | GenerationFinished],
    reply: _CompletionResponseFrame,
    answer: AsgiResponse,
    *,
    include_usage: bool,
) -> None:
    if reply.is_chat:
        await answer.event(json_bytes(reply.chunk(text="", first=True)))
    try:
        async for event in events:
            if isinstance(event, TextDelta):
                await answer.event(json_bytes(reply.chunk(text=event.text)))
                continue
            await answer.event(json_bytes(reply.chunk(text=None, reason=event.reason)))
            if include_usage:
                await answer.event(json_bytes(reply.usage_chunk(event)))
    except RequestRejected as rejected:
        # The stream has begun: the error can only be its last event.
        await answer.event(json_bytes(rejected.body()))
    await answer.end()


async def _collect_response(
    events: AsyncIterator[TextDelta | GenerationFinished],
    reply: _CompletionResponseFrame,
    answer: AsgiResponse,
) -> None:
    pieces = []
    async for event in events:
        if isinstance(event, TextDelta):
            pieces.append(event.text)
        else:
            body = reply.body(text="".join(pieces), reason=event.reason, usage=event)
            await answer.json(200, body)


def _require_method(method: str, wanted: str) -> None:
    if method != wanted:
        raise RequestRejected(f"This address takes {wanted}, not {method}.", status=405)


def _usage_document(finished: GenerationFinished) -> dict[str, int]:
    return {
        "prompt_tokens": finished.prompt_tokens,
        "completion_tokens": finished.completion_tokens,
        "total_tokens": finished.prompt_tokens + finished.completion_tokens,
    }


def _put_from_thread(
    event_loop: asyncio.AbstractEventLoop, events: asyncio.Queue[Event | None], event: Event
) -> None:
    # A loop that has closed has no readers left.
    if not event_loop.is_closed():
        event_loop.call_soon_threadsafe(events.put_nowait, event)


_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class RequestDurationHistogram:
    """Counts of durations by upper bound, in seconds."""

    def __init__(self) -> None:
        self._counts = [0] * (len(_SECONDS) + 1)
        self._sum = 0.0

    def observe(self, seconds: float) -> None:
        self._counts[bisect_left(_SECONDS, seconds)] += 1
        self._sum += seconds

    def lines(self, name: str) -> list[str]:
        lines, total = [f"# TYPE {name} histogram"], 0
        for bound, count in zip((*map(str, _SECONDS), "+Inf"), self._counts, strict=True):
            total += count
            lines.append(f'{name}_bucket{{le="{bound}"}} {total}')
        return [*lines, f"{name}_sum {self._sum:.6f}", f"{name}_count {total}"]


class EngineMetrics:
    """What has happened since the process began. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: Counter[tuple[str, int]] = Counter()
        self._tokens: Counter[str] = Counter()
        self._first_token = RequestDurationHistogram()
        self._duration = RequestDurationHistogram()

    def request(self, *, operation: str, status: int) -> None:
        with self._lock:
            self._requests[operation, status] += 1

    def first_token(self, *, seconds: float) -> None:
        with self._lock:
            self._first_token.observe(seconds)

    def generated(self, *, prompt_tokens: int, completion_tokens: int, seconds: float) -> None:
        with self._lock:
            self._tokens["prompt"] += prompt_tokens
            self._tokens["completion"] += completion_tokens
            self._duration.observe(seconds)

    def text(self, *, running: int, waiting: int) -> str:
        """The exposition format, version 0.0.4."""
        with self._lock:
            lines = ["# TYPE ninefold_engine_requests_total counter"]
            for (operation, status), count in sorted(self._requests.items()):
                labels = f'operation="{operation}",status="{status}"'
                lines.append(f"ninefold_engine_requests_total{{{labels}}} {count}")
            for kind in ("prompt", "completion"):
                name = f"ninefold_engine_{kind}_tokens_total"
                lines += [f"# TYPE {name} counter", f"{name} {self._tokens[kind]}"]
            for name, value in (("running", running), ("waiting", waiting)):
                gauge = f"ninefold_engine_requests_{name}"
                lines += [f"# TYPE {gauge} gauge", f"{gauge} {value}"]
            lines += self._first_token.lines("ninefold_engine_time_to_first_token_seconds")
            lines += self._duration.lines("ninefold_engine_request_seconds")
        return "\n".join(lines) + "\n"
