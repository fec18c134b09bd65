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
    #: Names of LoRA adapters of the model.
    adapter_names: tuple[str, ...] = ()

    @property
    def served_names(self) -> list[str]:
        """Names that requests may have: that of the model, and those of its adapters."""
        return [self.model_name, *self.adapter_names]

    def check_model(self, name: str) -> None:
        """:raises RequestRejected: if the request names another model."""
        if name not in self.served_names:
            raise request_fields.unknown_model_error(name, served=self.served_names)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedModel:
    """A loaded model and its operations by path."""

    operations: Mapping[str, Operation]
    #: For the log: class, size and device.
    description: str
    #: Tokens of one input and its answer; None where inputs have no tokens.
    context_length: int | None
