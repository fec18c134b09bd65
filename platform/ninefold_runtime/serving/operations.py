"""What the operations of every kind of model share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from ninefold_runtime.serving import request_fields
from ninefold_runtime.serving.asgi import AsgiRequest, AsgiResponse
from ninefold_runtime.serving.metrics import EngineMetrics
from ninefold_runtime.serving.work_queue import WorkQueue

#: Answers one POST request, or raises what ``EngineApp`` turns into an error response.
Operation = Callable[[AsgiRequest, AsgiResponse], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationContext:
    """What operations use beside their model."""

    model_name: str
    queue: WorkQueue
    metrics: EngineMetrics

    def check_model(self, name: str) -> None:
        """:raises RequestRejected: if the request names another model."""
        if name != self.model_name:
            raise request_fields.unknown_model_error(name, served=[self.model_name])


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedModel:
    """A loaded model and its operations by path."""

    operations: Mapping[str, Operation]
    #: For the log: class, size and device.
    description: str
    #: Tokens of one input and its answer; None where inputs have no tokens.
    context_length: int | None
