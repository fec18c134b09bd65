"""The ASGI application: OpenAI's routes for one model, and the warm-up request of each model.

Every request but ``/health`` must bear the key. An answer is generated only as long as its reader is
there: when the client leaves, the generation is cancelled at its next token.

Each model answers once before the server listens. A model that loads may still fail on its first request: too
little memory for the cache, kernels that are missing for the device, an adapter of other shapes. A replica with
such a model must not become ready.
"""

from __future__ import annotations

import asyncio
import hmac
import io
import json
import time
import wave
from collections.abc import Mapping
from typing import Any

from ninefold_runtime.serving import request_fields
from ninefold_runtime.serving.asgi import (
    AsgiRequest,
    AsgiResponse,
    HttpDisconnected,
    Receive,
    Scope,
    Send,
)
from ninefold_runtime.serving.operations import Operation, OperationContext, ServedModel
from ninefold_runtime.serving.request_fields import RequestRejected
from ninefold_runtime.serving.work_queue import QueueFull


class EngineApp:
    """One model behind OpenAI's interface."""

    def __init__(self, *, model: ServedModel, context: OperationContext, key: str) -> None:
        self._model = model
        self._name = context.model_name
        self._served_names = context.served_names
        self._queue = context.queue
        self._metrics = context.metrics
        self._key = key.encode()
        self._created = int(time.time())
        #: Why the model did not answer the warm-up request; the server has ended then.
        self.warm_up_error = ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._run_lifespan(receive, send)
            return
        request, response = AsgiRequest(scope, receive), AsgiResponse(send)
        try:
            await self._route_request(request, response)
        except RequestRejected as rejected:
            await response.json(rejected.status, rejected.body())
        except QueueFull as overloaded:
            busy = RequestRejected(str(overloaded), kind="server_error", code="engine_overloaded")
            await response.json(503, busy.body(), headers=((b"retry-after", b"1"),))
        except HttpDisconnected:
            response.status = 499
        except asyncio.CancelledError:
            # By uvicorn, at the end of the shutdown time. A response that has begun is cut off.
            if response.status is not None:
                raise
            ended = request_fields.shutting_down_error()
            await response.json(ended.status, ended.body())
        finally:
            known = request.path in self._model.operations
            operation = request.path.removeprefix("/v1/") if known else "other"
            self._metrics.request(operation=operation, status=response.status or 500)

    async def _run_lifespan(self, receive: Receive, send: Send) -> None:
        """Let the model and each adapter answer a request before the server listens."""
        await receive()
        for name in self._served_names:
            if error := await warm_up(self._model.operations, model=name):
                self.warm_up_error = f"{name} does not answer a warm-up request: {error}"
                await send({"type": "lifespan.startup.failed", "message": self.warm_up_error})
                return
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await send({"type": "lifespan.shutdown.complete"})

    async def _route_request(self, request: AsgiRequest, response: AsgiResponse) -> None:
        path = request.path
        if path == "/health":
            await response.json(200, {"status": "ok"})
            return
        if not hmac.compare_digest(request.bearer_token(), self._key):
            raise RequestRejected(
                "Incorrect API key provided.", status=401, param=None, code="invalid_api_key"
            )
        if (operation := self._model.operations.get(path)) is not None:
            _require_method(request.method, "POST")
            await operation(request, response)
        elif path == "/v1/models":
            _require_method(request.method, "GET")
            models = [self._openai_model_object(name) for name in self._served_names]
            await response.json(200, {"object": "list", "data": models})
        elif path.startswith("/v1/models/"):
            name = path.removeprefix("/v1/models/")
            if name not in self._served_names:
                raise request_fields.unknown_model_error(name, served=self._served_names)
            _require_method(request.method, "GET")
            await response.json(200, self._openai_model_object(name))
        elif path == "/metrics":
            running, waiting = self._queue.load()
            text = self._metrics.text(running=running, waiting=waiting)
            await response.whole(200, text.encode(), kind=b"text/plain; version=0.0.4")
        else:
            raise RequestRejected(
                f"Unknown request URL: {request.method} {path}; this model has "
                f"{', '.join(self._model.operations)}.",
                status=404,
            )

    def _openai_model_object(self, name: str) -> dict[str, Any]:
        """The model, or an adapter of it with the model as its ``parent``, as vLLM has it."""
        return {
            "id": name,
            "object": "model",
            "created": self._created,
            "owned_by": "ninefold",
            "max_model_len": self._model.context_length,
            "parent": None if name == self._name else self._name,
        }


def _require_method(method: str, wanted: str) -> None:
    if method != wanted:
        raise RequestRejected(f"This address takes {wanted}, not {method}.", status=405)


#: The smallest request of each operation, by path.
_BODIES: Mapping[str, Mapping[str, Any]] = {
    "/v1/completions": {"prompt": "a", "max_tokens": 1},
    "/v1/embeddings": {"input": "a"},
    "/v1/rerank": {"query": "a", "documents": ["a"]},
    "/v1/images/generations": {"prompt": "a", "size": "64x64", "num_inference_steps": 1},
}
_TRANSCRIPTIONS = "/v1/audio/transcriptions"
_BOUNDARY = "warm-up"
_SAMPLE_RATE = 16_000


async def warm_up(operations: Mapping[str, Operation], *, model: str) -> str:
    """Send one request to the model; return why it did not answer, or nothing if it did."""
    for path, operation in operations.items():
        if path in _BODIES:
            kind, body = "application/json", json.dumps({"model": model, **_BODIES[path]}).encode()
        elif path == _TRANSCRIPTIONS:
            kind, body = f"multipart/form-data; boundary={_BOUNDARY}", _silence_form(model)
        else:
            continue
        return await _send(operation, path=path, content_type=kind, body=body)
    return ""


async def _send(operation: Operation, *, path: str, content_type: str, body: bytes) -> str:
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Any:
        if not messages:
            # Whoever waits for the end of the connection waits until it is cancelled.
            await asyncio.Event().wait()
        return messages.pop()

    async def send(_message: Any) -> None:
        """Nobody reads the answer."""

    scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "headers": [
            (b"content-type", content_type.encode()),
            (b"content-length", str(len(body)).encode()),
        ],
    }
    response = AsgiResponse(send)
    try:
        await operation(AsgiRequest(scope, receive), response)
    except RequestRejected as rejected:
        return str(rejected)
    return "" if response.status == 200 else f"the status was {response.status}"


def _silence_form(model: str) -> bytes:
    """A form with a tenth of a second of silence as WAV."""
    sound = io.BytesIO()
    with wave.open(sound, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(_SAMPLE_RATE)
        file.writeframes(bytes(2 * (_SAMPLE_RATE // 10)))
    head = (
        f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="model"\r\n\r\n{model}\r\n'
        f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="silence.wav"\r\n'
        "Content-Type: audio/wav\r\n\r\n"
    )
    return head.encode() + sound.getvalue() + f"\r\n--{_BOUNDARY}--\r\n".encode()
