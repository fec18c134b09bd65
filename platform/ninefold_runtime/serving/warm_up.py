"""The warm-up request of a server: each model answers once before the server listens.

A model that loads may still fail on its first request: too little memory for the cache, kernels that are missing
for the device, an adapter of other shapes. A replica with such a model must not become ready.
"""

from __future__ import annotations

import asyncio
import io
import json
import wave
from collections.abc import Mapping
from typing import Any

from ninefold_runtime.serving.asgi import AsgiRequest, AsgiResponse
from ninefold_runtime.serving.operations import Operation
from ninefold_runtime.serving.request_fields import RequestRejected

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
