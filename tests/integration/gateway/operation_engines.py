"""An engine that answers every operation with a fixed response."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

from aiohttp import web

from tests.integration.gateway.conftest import CREDENTIAL
from tests.integration.gateway.engines import MODEL
from tests.integration.gateway.servers import ThreadedServer

INPUT_USAGE = {"prompt_tokens": 9, "total_tokens": 9}
OUTPUT_USAGE = {"input_tokens": 9, "output_tokens": 4, "total_tokens": 13}
SOUND = bytes(range(256)) * 300

RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "model": MODEL,
    "output": [
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "hello", "annotations": []}],
        }
    ],
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "usage": OUTPUT_USAGE,
}
MESSAGE: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": MODEL,
    "content": [],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": OUTPUT_USAGE,
}
ANSWERS: dict[str, dict[str, Any]] = {
    "/v1/embeddings": {
        "object": "list",
        "model": MODEL,
        "data": [{"object": "embedding", "index": 0, "embedding": [0.5, -0.5]}],
        "usage": INPUT_USAGE,
    },
    "/v1/rerank": {
        "id": "rerank-1",
        "model": MODEL,
        "results": [{"index": 1, "relevance_score": 0.9}],
        "usage": {"total_tokens": 9},
    },
    "/v1/images/generations": {"created": 1, "data": [{"b64_json": "aGk="}]},
    "/v1/responses": RESPONSE,
    "/v1/messages": MESSAGE | {"content": [{"type": "text", "text": "hello"}]},
    # As vLLM 0.23.0; SGLang 0.5.14 has input_tokens only.
    "/v1/messages/count_tokens": {
        "input_tokens": 9,
        "context_management": {"original_input_tokens": 9},
    },
}
#: As SGLang 0.5.14 and 0.5.23, ``RerankResponse`` in ``srt/entrypoints/openai/protocol.py``.
SGLANG_RANKING = [
    {"score": 0.9, "document": "b", "index": 1, "meta_info": {"id": "1", "prompt_tokens": 5}},
    {"score": 0.1, "document": "a", "index": 0, "meta_info": {"id": "2", "prompt_tokens": 4}},
]
PART = {"item_id": "msg_1", "output_index": 0, "content_index": 0, "logprobs": []}
STREAMS: dict[str, list[dict[str, Any]]] = {
    "/v1/responses": [
        {"type": "response.created", "response": {**RESPONSE, "usage": None}},
        {"type": "response.output_text.delta", **PART, "delta": "hel"},
        {"type": "response.output_text.delta", **PART, "delta": "lo"},
        {"type": "response.completed", "response": RESPONSE},
    ],
    "/v1/messages": [
        {
            "type": "message_start",
            "message": MESSAGE | {"usage": {"input_tokens": 9, "output_tokens": 1}},
        },
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "text", "text": ""},
        },
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "text_delta", "text": "hello"},
        },
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn", "stop_sequence": None},
            "usage": {"output_tokens": 4},
        },
        {"type": "message_stop"},
    ],
}


class OperationsEngine(ThreadedServer):
    """Answers each operation with a fixed response, and keeps what it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.bodies: list[dict[str, Any]] = []
        self.files: list[tuple[str, str, bytes]] = []
        self.fails = False
        #: Operations are answered as by SGLang, where it has a form of its own.
        self.is_sglang = False
        #: Videos take longer than any limit.
        self.hangs = False
        #: Events by path.
        self.streams = STREAMS

    def routes(self) -> list[web.RouteDef]:
        return [
            *(web.post(path, self._answer) for path in ANSWERS),
            web.post("/v1/audio/transcriptions", self._transcribe),
            web.post("/v1/audio/translations", self._transcribe),
            web.post("/v1/audio/speech", self._speak),
            web.post("/v1/videos/sync", self._film),
        ]

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        assert request.headers["Authorization"] == f"Bearer {CREDENTIAL}"
        body = await request.json()
        self.bodies.append(body)
        if self.fails:
            error = {"error": {"message": f"{MODEL} at {self.url} refuses"}}
            return web.json_response(error, status=400)
        if self.is_sglang and request.path == "/v1/rerank":
            return web.json_response(SGLANG_RANKING)
        if not body.get("stream"):
            return web.json_response(ANSWERS[request.path])
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for event in self.streams[request.path]:
            content = json.dumps(event)
            await response.write(f"event: {event['type']}\ndata: {content}\n\n".encode())
        return response

    async def _transcribe(self, request: web.Request) -> web.Response:
        form = await request.post()
        fields = {name: value for name, value in form.items() if isinstance(value, str)}
        self.bodies.append(fields)
        for value in form.values():
            if isinstance(value, web.FileField):
                self.files.append((value.filename, value.content_type, value.file.read()))
        if fields.get("response_format") == "srt":
            return web.Response(text="1\n00:00:00,000 --> 00:00:01,000\nhello\n")
        return web.json_response({"text": "hello", "usage": {"type": "duration", "seconds": 1}})

    async def _film(self, request: web.Request) -> web.Response:
        form = await request.post()
        self.bodies.append({name: value for name, value in form.items() if isinstance(value, str)})
        for value in form.values():
            if isinstance(value, web.FileField):
                self.files.append((value.filename, value.content_type, value.file.read()))
        if self.hangs:
            await asyncio.Event().wait()
        return web.Response(body=SOUND, content_type="video/mp4", headers={"X-Model": MODEL})

    async def _speak(self, request: web.Request) -> web.StreamResponse:
        """As vLLM-Omni 0.28.0 and 0.30.0, ``serving_speech.py``: ``stream`` selects events, as ``sse`` does."""
        body = await request.json()
        self.bodies.append(body)
        stream_format = body.get("stream_format")
        if stream_format != "audio" and (body.get("stream") or stream_format == "sse"):
            return await self._speak_in_events(request)
        response = web.StreamResponse(headers={"Content-Type": "audio/wav"})
        await response.prepare(request)
        await response.write(SOUND)
        if self.fails and request.transport is not None:
            request.transport.abort()
        return response

    async def _speak_in_events(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        half = len(SOUND) // 2
        events: list[dict[str, Any]] = [
            {
                "type": "speech.audio.delta",
                "audio": base64.b64encode(part).decode(),
                "response_format": "wav",
            }
            for part in (SOUND[:half], SOUND[half:])
        ]
        if self.fails:
            error = {"message": f"{MODEL} at {self.url} fails", "type": "server_error", "code": 500}
            events[1:] = [{"type": "speech.audio.error", "error": error}]
        else:
            events.append({"type": "speech.audio.done", "usage": OUTPUT_USAGE})
        for event in events:
            content = json.dumps(event)
            await response.write(f"event: {event['type']}\ndata: {content}\n\n".encode())
        return response
