"""The server listens only after each of its models has answered a request."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from ninefold_runtime.serving.app import EngineApp
from ninefold_runtime.serving.asgi import AsgiRequest, AsgiResponse
from ninefold_runtime.serving.metrics import EngineMetrics
from ninefold_runtime.serving.operations import OperationContext, ServedModel
from ninefold_runtime.serving.request_fields import RequestRejected
from ninefold_runtime.serving.work_queue import WorkQueue


@pytest.mark.parametrize(
    ("path", "failing", "answered"),
    [
        ("/v1/completions", "", ["base", "formal"]),
        ("/v1/completions", "formal", ["base"]),
        ("/v1/completions", "base", []),
        ("/v1/embeddings", "base", []),
    ],
)
def test_a_model_that_does_not_answer_ends_the_server_before_it_listens(
    path: str, failing: str, answered: list[str]
) -> None:
    found: list[str] = []

    async def operation(request: AsgiRequest, response: AsgiResponse) -> None:
        name = json.loads(await request.body())["model"]
        if name == failing:
            raise RequestRejected("inference failed: OutOfMemoryError", status=500)
        found.append(name)
        await response.json(200, {})

    app = EngineApp(
        model=ServedModel(operations={path: operation}, description="", context_length=None),
        context=OperationContext(
            model_name="base",
            queue=WorkQueue(size=1),
            metrics=EngineMetrics(),
            adapter_names=("formal",),
        ),
        key="k",
    )
    sent: list[Any] = []

    async def start() -> None:
        messages = iter([{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}])

        async def receive() -> Any:
            return next(messages)

        async def send(message: Any) -> None:
            sent.append(message)

        await app({"type": "lifespan"}, receive, send)

    asyncio.run(start())
    assert found == answered
    if failing:
        reason = f"{failing} does not answer a warm-up request: inference failed: OutOfMemoryError"
        assert app.warm_up_error == reason
        assert sent == [{"type": "lifespan.startup.failed", "message": reason}]
    else:
        assert [each["type"] for each in sent] == [
            "lifespan.startup.complete",
            "lifespan.shutdown.complete",
        ]
