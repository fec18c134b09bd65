"""``/v1/images/generations`` over a text-to-image pipeline of diffusers."""

from __future__ import annotations

import base64
import io
import re
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ninefold_runtime.exit_codes import InvalidTaskInput
from ninefold_runtime.serving import request_fields
from ninefold_runtime.serving.asgi import AsgiRequest, AsgiResponse
from ninefold_runtime.serving.operations import Operation, OperationContext, ServedModel
from ninefold_runtime.serving.request_fields import (
    LARGEST_INTEGER,
    RequestRejected,
    parse_choice,
    parse_integer,
    parse_text,
)

_FIELDS = frozenset(
    {"model", "prompt", "n", "size", "response_format", "seed", "num_inference_steps"}
)
_NEUTRAL: Mapping[str, tuple[Any, ...]] = {
    "background": ("auto", "opaque"),
    "moderation": ("auto", "low"),
    "output_compression": (100,),
    "output_format": ("png",),
    "partial_images": (0,),
    # A model has one quality, which num_inference_steps changes; more than the usual one is refused.
    "quality": ("auto", "standard", "low", "medium"),
    "stream": (False,),
    # The default of OpenAI's interface; another style is a matter of the prompt.
    "style": ("vivid",),
}
_MOST_IMAGES = 10
#: As in vLLM-Omni, whose name of the field this is.
_MOST_STEPS = 200
_SIZE = re.compile(r"(\d{2,4})x(\d{2,4})")
_SIDE_STEP = 16
_LONGEST_SIDE = 2048


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageRequest:
    """A prompt and the images wanted of it."""

    model: str
    prompt: str
    count: int
    #: Width and height in pixels; None leaves both to the model.
    size: tuple[int, int] | None
    #: Of the first image; each further one adds 1. None for a random one.
    seed: int | None
    #: Steps from noise to an image; None leaves them to the model.
    steps: int | None = None


class ImageGenerator(Protocol):
    """What the operation needs of a model. One thread uses it at a time."""

    def generate(self, request: ImageRequest, cancelled: threading.Event) -> list[bytes]:
        """The images as PNG."""


def parse_image_request(body: bytes) -> ImageRequest:
    """:raises RequestRejected: naming the field that is wrong, missing or not supported."""
    fields = request_fields.parse_object(body)
    request_fields.check_fields(fields, supported=_FIELDS, neutral=_NEUTRAL)
    # There is no place from which a client could download an image.
    parse_choice(fields, "response_format", ("b64_json",))
    return ImageRequest(
        model=parse_text(fields, "model"),
        prompt=parse_text(fields, "prompt"),
        count=parse_integer(fields, "n", least=1, most=_MOST_IMAGES) or 1,
        size=_parse_size(fields.get("size")),
        seed=parse_integer(fields, "seed", least=0, most=LARGEST_INTEGER - _MOST_IMAGES),
        steps=parse_integer(fields, "num_inference_steps", least=1, most=_MOST_STEPS),
    )


def _parse_size(value: Any) -> tuple[int, int] | None:
    if value is None or value == "auto":
        return None
    matched = _SIZE.fullmatch(value) if isinstance(value, str) else None
    sides = (int(matched[1]), int(matched[2])) if matched is not None else None
    if sides is None or any(
        side % _SIDE_STEP or not _SIDE_STEP <= side <= _LONGEST_SIDE for side in sides
    ):
        raise RequestRejected(
            f"size must be auto or WIDTHxHEIGHT in multiples of {_SIDE_STEP} up to "
            f"{_LONGEST_SIDE}, not {value!r}",
            param="size",
        )
    return sides


class ImageOperation:
    """Images by one model."""

    def __init__(self, generator: ImageGenerator, *, context: OperationContext) -> None:
        self._generator = generator
        self._context = context

    def routes(self) -> Mapping[str, Operation]:
        return {"/v1/images/generations": self.generate}

    async def generate(self, request: AsgiRequest, response: AsgiResponse) -> None:
        wanted = parse_image_request(await request.body())
        self._context.check_model(wanted.model)
        began_at = time.monotonic()
        images = await self._context.queue.run(
            lambda cancelled: self._generator.generate(wanted, cancelled), request=request
        )
        self._context.metrics.generated(
            prompt_tokens=0, completion_tokens=0, seconds=time.monotonic() - began_at
        )
        data = [{"b64_json": base64.b64encode(image).decode()} for image in images]
        await response.json(
            200, {"created": int(time.time()), "data": data, "output_format": "png"}
        )


class DiffusersGenerator:
    """Implements ``ImageGenerator`` over a pipeline of diffusers."""

    def __init__(self, pipeline: Any) -> None:
        self._pipeline = pipeline

    def generate(self, request: ImageRequest, cancelled: threading.Event) -> list[bytes]:
        import torch

        def stop_if_cancelled(pipeline: Any, _step: int, _time: Any, tensors: Any) -> Any:
            pipeline._interrupt = cancelled.is_set()
            return tensors

        arguments: dict[str, Any] = {}
        if request.size is not None:
            arguments["width"], arguments["height"] = request.size
        if request.steps is not None:
            arguments["num_inference_steps"] = request.steps
        # On the processor, so that a seed gives the same image on every device.
        generator = torch.Generator("cpu")
        seed = request.seed if request.seed is not None else generator.seed()
        images = []
        # One after the other: together they would need several times the memory.
        for number in range(request.count):
            if cancelled.is_set():
                break
            output = self._pipeline(
                request.prompt,
                generator=generator.manual_seed((seed + number) % LARGEST_INTEGER),
                callback_on_step_end=stop_if_cancelled,
                **arguments,
            )
            file = io.BytesIO()
            output.images[0].save(file, format="PNG")
            images.append(file.getvalue())
        return images


def load_image_generation(
    folder: Path, *, precision: str, context: OperationContext
) -> ServedModel:
    """:raises InvalidTaskInput: if diffusers has no text-to-image pipeline for it, or cannot load it."""
    from diffusers import AutoPipelineForText2Image

    from ninefold_runtime import model_loading

    try:
        pipeline = AutoPipelineForText2Image.from_pretrained(
            folder,
            torch_dtype=model_loading.torch_dtype(precision),
            local_files_only=True,
            use_safetensors=True,
            trust_remote_code=False,
        )
    except (OSError, ValueError, KeyError, ImportError, AttributeError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise InvalidTaskInput(f"the model cannot be loaded: {error}"[:400]) from error
    pipeline.set_progress_bar_config(disable=True)
    return ServedModel(
        operations=ImageOperation(
            DiffusersGenerator(pipeline.to(model_loading.current_device())), context=context
        ).routes(),
        description=type(pipeline).__name__,
        context_length=None,
    )
