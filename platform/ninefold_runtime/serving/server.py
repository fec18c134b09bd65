"""The serving process: load the model, generate in one thread, listen, drain."""

from __future__ import annotations

import copy
import os
import signal
import sys
import threading
import traceback
from collections import deque
from collections.abc import Sequence
from typing import Any

import torch
import uvicorn
from transformers import StoppingCriteriaList

from ninefold_runtime import model_loading
from ninefold_runtime.exit_codes import InvalidTaskInput
from ninefold_runtime.serving.app import EngineApp
from ninefold_runtime.serving.generation_requests import (
    Message,
    RequestRejected,
    SamplingParameters,
)
from ninefold_runtime.serving.text_generation import (
    Detokenizer,
    GenerationFailed,
    GenerationFinished,
    GenerationRequest,
    QueueFull,
    StopScanner,
    TextDelta,
)
from ninefold_runtime.specs import ServeSpec
from ninefold_runtime.task_folders import TaskFolders


class TransformersGenerator:
    """Implements ``TextGenerator`` over transformers' ``generate``, in one thread."""

    def __init__(self, *, model: Any, tokenizer: Any, context_length: int, queue_size: int) -> None:
        self._model = model
        self._tokenizer = tokenizer
        # A fast tokenizer must not be used by two threads at once; this one belongs to the worker.
        self._decoding_tokenizer = copy.deepcopy(tokenizer)
        self._context_length = context_length
        self._queue_size = queue_size
        self._waiting: deque[GenerationRequest] = deque()
        self._running: GenerationRequest | None = None
        self._changed = threading.Condition()
        threading.Thread(target=self._generate_until_stopped, name="generator", daemon=True).start()

    @property
    def context_length(self) -> int:
        return self._context_length

    def encode_chat(self, messages: Sequence[Message]) -> list[int]:
        try:
            return model_loading.prompt_ids(self._tokenizer, messages)
        except InvalidTaskInput as refusal:
            raise RequestRejected(str(refusal), param="messages") from refusal

    def encode_text(self, text: str) -> list[int]:
        return [int(token) for token in self._tokenizer.encode(text)]

    def submit(self, ticket: GenerationRequest) -> None:
        with self._changed:
            if len(self._waiting) >= self._queue_size and self._running is not None:
                raise QueueFull(f"{len(self._waiting)} requests wait already")
            self._waiting.append(ticket)
            self._changed.notify()

    def cancel(self, ticket: GenerationRequest) -> None:
        ticket.cancelled.set()
        with self._changed:
            if ticket in self._waiting:
                self._waiting.remove(ticket)

    def load(self) -> tuple[int, int]:
        with self._changed:
            return int(self._running is not None), len(self._waiting)

    def _generate_until_stopped(self) -> None:
        while True:
            with self._changed:
                self._running = None
                self._changed.wait_for(lambda: bool(self._waiting))
                ticket = self._running = self._waiting.popleft()
            try:
                self._generate_for_request(ticket)
            except Exception as error:  # noqa: BLE001 - one request must not end the process
                traceback.print_exc(file=sys.stderr)
                ticket.on_event(
                    GenerationFailed(message=f"generation failed: {type(error).__name__}")
                )

    def _generate_for_request(self, ticket: GenerationRequest) -> None:
        remaining = self._context_length - len(ticket.prompt)
        wanted = ticket.sampling.max_tokens
        limit = remaining if wanted is None else min(wanted, remaining)
        ends = self._model.generation_config.eos_token_id
        stream = _TokenStream(
            ticket,
            self._decoding_tokenizer,
            ends=frozenset(ends if isinstance(ends, list) else [ends]),
        )
        if ticket.sampling.seed is not None:
            torch.manual_seed(ticket.sampling.seed)
        prompt = torch.tensor([list(ticket.prompt)], device=self._model.device)
        with torch.inference_mode():
            self._model.generate(
                input_ids=prompt,
                attention_mask=torch.ones_like(prompt),
                max_new_tokens=limit,
                streamer=stream,
                stopping_criteria=StoppingCriteriaList([stream.must_stop]),
                pad_token_id=self._tokenizer.pad_token_id,
                **_sampling_arguments(ticket.sampling, self._model.generation_config),
            )
        ticket.on_event(stream.finished(limit=limit))


class _TokenStream:
    """Hears each token as it is chosen (the interface of transformers' streamers)."""

    def __init__(self, ticket: GenerationRequest, tokenizer: Any, *, ends: frozenset[int]) -> None:
        self._ticket = ticket
        self._text = Detokenizer(
            lambda tokens: str(tokenizer.decode(list(tokens), skip_special_tokens=True))
        )
        self._stops = StopScanner(ticket.sampling.stops)
        self._ends = ends
        self._prompt_seen = False
        self._count = 0
        self._ended = False

    def put(self, value: Any) -> None:
        if not self._prompt_seen:
            self._prompt_seen = True
            return
        for token in value.flatten().tolist():
            self._count += 1
            self._ended = token in self._ends
            self._emit_text(self._stops.push(self._text.push(token)))

    def end(self) -> None:
        self._emit_text(self._stops.push(self._text.finish()) + self._stops.finish())

    def must_stop(self, input_ids: Any, _scores: Any, **_: Any) -> Any:
        over = self._stops.stopped or self._ticket.cancelled.is_set()
        return torch.full((input_ids.shape[0],), over, device=input_ids.device)

    def finished(self, *, limit: int) -> GenerationFinished:
        cut = self._count >= limit and not self._ended and not self._stops.stopped
        return GenerationFinished(
            reason="length" if cut else "stop",
            prompt_tokens=len(self._ticket.prompt),
            completion_tokens=self._count,
        )

    def _emit_text(self, text: str) -> None:
        if text and not self._ticket.cancelled.is_set():
            self._ticket.on_event(TextDelta(text=text))


def _sampling_arguments(sampling: SamplingParameters, defaults: Any) -> dict[str, Any]:
    """Arguments of ``generate``; the model's generation config fills what the request omits."""
    temperature = sampling.temperature
    if temperature is None:
        temperature = float(defaults.temperature or 1.0) if defaults.do_sample else 0.0
    if temperature == 0.0:
        return {"do_sample": False, "temperature": None, "top_p": None, "top_k": None}
    top_p = sampling.top_p if sampling.top_p is not None else defaults.top_p or 1.0
    # transformers refuses 0; the smallest share keeps the likeliest token alone.
    top_p = max(float(top_p), 1e-6)
    top_k = defaults.top_k if defaults.do_sample else 0
    return {"do_sample": True, "temperature": temperature, "top_p": top_p, "top_k": top_k}


#: How long requests in progress may take to end after a stop request.
_DRAIN_SECONDS = 25


def serve_model(*, spec: ServeSpec, folders: TaskFolders, host: str, port: int) -> None:
    """Serve until SIGTERM, then let the requests in progress end.

    :raises InvalidTaskInput: if there is no key, or the model cannot be loaded.
    """
    key = os.environ.pop("NINEFOLD_ENGINE_KEY", "")
    if not key:
        raise InvalidTaskInput(
            "the variable NINEFOLD_ENGINE_KEY is not set; nothing is served without a key"
        )
    source = folders.model()
    print(f"loading {spec.model_name}", flush=True)
    tokenizer = model_loading.load_tokenizer(source)
    model = model_loading.load_model(source, precision=spec.precision).eval()
    context_length = model_loading.context_length(source)
    generator = TransformersGenerator(
        model=model,
        tokenizer=tokenizer,
        context_length=context_length,
        queue_size=spec.queue_size,
    )
    app = EngineApp(generator=generator, model_name=spec.model_name, key=key)
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        lifespan="off",
        access_log=False,
        log_level="warning",
        server_header=False,
        timeout_graceful_shutdown=_DRAIN_SECONDS,
    )
    print(
        f"{model.config.architectures[0]} with {model.num_parameters():,} parameters on "
        f"{model_loading.current_device()}, {context_length} positions, listening on {host}:{port}",
        flush=True,
    )
    # uvicorn raises the signal again once it has drained; the process then ends by itself.
    signal.signal(signal.SIGTERM, lambda *_: None)
    uvicorn.Server(config).run()
    print("drained", flush=True)
