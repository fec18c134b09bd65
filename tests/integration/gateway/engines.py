"""A fake engine with the OpenAI API, controlled by the text of the prompt."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

from aiohttp import web

from tests.integration.gateway.servers import ThreadedServer

MODEL = "/models/engine-internal@main"


class FakeEngine(ThreadedServer):
    """Answers with numbered words.

    Commands in the last message or the prompt: ``words N`` (how many, 3 otherwise), ``status
    N``, ``break`` (drops the connection after the first word), ``endless``, ``silent`` (never
    answers), ``unfinished`` (no ``[DONE]``), ``truncated`` (ends in order, but in the middle),
    ``fail`` (an error event in the stream), ``html`` (not JSON at all).
    """

    def __init__(self, *, credential: str, model: str = MODEL) -> None:
        super().__init__()
        self.credential = credential
        self.model = model
        self.headers: list[dict[str, str]] = []
        self.bodies: list[dict[str, Any]] = []
        self.open_streams = 0
        self.most_open_streams = 0
        self.cancelled = 0
        #: Streams go no further than their first word until this is set.
        self.gate: asyncio.Event | None = None

    def routes(self) -> list[web.RouteDef]:
        return [
            web.post("/v1/chat/completions", self._chat),
            web.post("/v1/completions", self._completions),
        ]

    def close_gate(self) -> None:
        async def close() -> None:
            self.gate = asyncio.Event()

        self.run(close())

    def open_gate(self) -> None:
        async def open_() -> None:
            if self.gate is not None:
                self.gate.set()

        self.run(open_())

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        return await self._answer(request, chat=True)

    async def _completions(self, request: web.Request) -> web.StreamResponse:
        return await self._answer(request, chat=False)

    async def _answer(self, request: web.Request, *, chat: bool) -> web.StreamResponse:
        body = await request.json()
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        self.bodies.append(body)
        if request.headers.get("Authorization") != f"Bearer {self.credential}":
            return web.json_response({"error": {"message": "wrong credential"}}, status=401)
        if body["model"] != self.model:
            return web.json_response({"error": {"message": "unknown model"}}, status=404)
        prompt: str = body["messages"][-1]["content"] if chat else body["prompt"]
        if (status := re.search(r"status (\d+)", prompt)) is not None:
            message = f"{self.model} at {self.url}/v1 says: max_tokens is too large"
            error = {"message": message, "param": "max_tokens", "code": "too_large"}
            return web.json_response({"error": error}, status=int(status[1]))
        if "silent" in prompt:
            await self._until_cancelled()
        count = re.search(r"words (\d+)", prompt)
        number = int(count[1]) if count else 3
        if body.get("stream"):
            return await self._stream(request, prompt, number=number, chat=chat)
        if "html" in prompt:
            return web.Response(text="<html>", content_type="text/html")
        text = "".join(f"w{index} " for index in range(number))
        choice: dict[str, Any] = {"index": 0, "finish_reason": "stop"}
        choice |= {"message": {"role": "assistant", "content": text}} if chat else {"text": text}
        return web.json_response(
            self._chunk(chat=chat) | {"choices": [choice], "usage": _usage(number)}
        )

    async def _until_cancelled(self) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise

    def _chunk(self, *, chat: bool) -> dict[str, Any]:
        kind = "chat.completion" if chat else "text_completion"
        return {"id": "x-1", "object": kind, "created": 1, "model": self.model}

    async def _stream(
        self, request: web.Request, prompt: str, *, number: int, chat: bool
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        self.open_streams += 1
        self.most_open_streams = max(self.most_open_streams, self.open_streams)
        try:
            await self._events(response, request, prompt, number=number, chat=chat)
        except (asyncio.CancelledError, ConnectionResetError):
            self.cancelled += 1
            raise
        finally:
            self.open_streams -= 1
        return response

    async def _events(
        self,
        response: web.StreamResponse,
        request: web.Request,
        prompt: str,
        *,
        number: int,
        chat: bool,
    ) -> None:
        index = 0
        while index < number or "endless" in prompt:
            text = f"w{index} "
            choice: dict[str, Any] = {"index": 0, "finish_reason": None}
            choice |= {"delta": {"content": text}} if chat else {"text": text}
            await _send(response, self._chunk(chat=chat) | {"choices": [choice], "usage": None})
            if "break" in prompt and request.transport is not None:
                request.transport.abort()
                return
            if "truncated" in prompt:
                return
            if "fail" in prompt:
                await _send(response, {"error": {"message": f"CUDA error at {self.url}"}})
                return
            if self.gate is not None:
                await self.gate.wait()
            if "endless" in prompt:
                await asyncio.sleep(0.02)
            index += 1
        last: dict[str, Any] = {"index": 0, "finish_reason": "stop"}
        last["delta" if chat else "text"] = {} if chat else ""
        await _send(response, self._chunk(chat=chat) | {"choices": [last], "usage": None})
        if "unfinished" in prompt:
            return
        await _send(response, self._chunk(chat=chat) | {"choices": [], "usage": _usage(number)})
        await response.write(b"data: [DONE]\n\n")


def _usage(tokens: int) -> dict[str, int]:
    return {"prompt_tokens": 7, "completion_tokens": tokens, "total_tokens": 7 + tokens}


async def _send(response: web.StreamResponse, content: dict[str, Any]) -> None:
    await response.write(b"data: " + json.dumps(content).encode() + b"\n\n")
