"""Chats, completions and responses: from a request to the events of its generation, and back."""

from __future__ import annotations

import asyncio
import codecs
import time
import uuid
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from ninefold_runtime.serving import generation_requests, request_fields, responses
from ninefold_runtime.serving.asgi import AsgiRequest, AsgiResponse
from ninefold_runtime.serving.generation_requests import TextRequest
from ninefold_runtime.serving.metrics import EngineMetrics
from ninefold_runtime.serving.operations import Operation, OperationContext
from ninefold_runtime.serving.request_fields import RequestRejected
from ninefold_runtime.serving.text_generation import (
    ChoiceFinished,
    Event,
    GenerationFinished,
    GenerationRequest,
    TextDelta,
    TextGenerator,
    TokenLogprob,
    ToolCallDelta,
    logprob_document,
    token_text,
)


class AnswerFrame(Protocol):
    """The form of one answer, whole or in parts."""

    #: Data of the event that ends a stream; empty if the last chunk ends it.
    end_marker: bytes

    def first_chunks(self) -> list[dict[str, Any]]: ...

    def chunks(self, event: Event) -> list[dict[str, Any]]:
        """The parts of a streamed answer that one event makes."""

    def failure(self, rejected: RequestRejected) -> dict[str, Any]:
        """The last part of a stream that has begun and cannot go on."""

    def collect(self, event: Event) -> None:
        """Add the event to the whole answer."""

    def body(self, finished: GenerationFinished) -> dict[str, Any]:
        """The whole answer."""


class TextOperations:
    """Chat, completions and responses of one model."""

    def __init__(self, generator: TextGenerator, *, context: OperationContext) -> None:
        self._generator = generator
        self._context = context
        #: Pixels of one request at a time are in memory before it is queued.
        self._decoding_images = asyncio.Lock()

    def routes(self) -> Mapping[str, Operation]:
        return {
            "/v1/chat/completions": self.chat,
            "/v1/completions": self.complete,
            "/v1/responses": self.respond,
        }

    async def chat(self, request: AsgiRequest, response: AsgiResponse) -> None:
        wanted = generation_requests.parse_chat_request(await request.body())
        await self._answer(wanted, request, response, frame=_ChatFrame)

    async def complete(self, request: AsgiRequest, response: AsgiResponse) -> None:
        wanted = generation_requests.parse_completion_request(await request.body())
        await self._answer(wanted, request, response, frame=_CompletionFrame)

    async def respond(self, request: AsgiRequest, response: AsgiResponse) -> None:
        wanted, returned = responses.parse_response_request(await request.body())
        frame = partial(responses.ResponseFrame, returned=returned)
        await self._answer(wanted, request, response, frame=frame)

    async def _answer(
        self,
        wanted: TextRequest,
        request: AsgiRequest,
        response: AsgiResponse,
        *,
        frame: Callable[[TextRequest], AnswerFrame],
    ) -> None:
        self._context.check_model(wanted.model)
        generation = await self._generation_request(wanted)
        began_at = time.monotonic()
        # Raises before the response begins if the queue is full.
        events = self._context.queue.submit(
            partial(self._generator.generate, generation), request=request
        )
        async with aclosing(events):
            measured = _measure(events, metrics=self._context.metrics, began_at=began_at)
            answer = frame(wanted)
            if wanted.stream:
                await _stream_response(measured, answer, response)
            else:
                await _collect_response(measured, answer, response)

    async def _generation_request(self, wanted: TextRequest) -> GenerationRequest:
        """:raises RequestRejected: if a prompt is too long, or its template or the grammar is refused."""
        if wanted.grammar is not None:
            param = "tools" if wanted.tools is not None else wanted.format_field
            self._generator.check_grammar(wanted.grammar, param=param)
        image_tensors: Mapping[str, Any] = {}
        try:
            if wanted.images:
                prompt, image_tensors = await self._encode_images(wanted)
                prompts = [prompt]
            else:
                prompts = self._encode_prompts(wanted)
        except RequestRejected as rejected:
            # The generator does not know in which field the messages were.
            if rejected.param == "messages":
                rejected.param = wanted.prompt_field
            raise
        context = self._generator.context_length
        for prompt in prompts:
            if len(prompt) >= context:
                raise generation_requests.context_length_exceeded_error(
                    tokens=len(prompt), context=context, param=wanted.prompt_field
                )
        return GenerationRequest(
            prompts=prompts,
            sampling=wanted.sampling,
            choices=wanted.choices,
            logprobs=wanted.logprobs,
            echo=wanted.echo,
            grammar=wanted.grammar,
            adapter=wanted.model if wanted.model != self._context.model_name else None,
            is_chat=wanted.messages is not None,
            tools=wanted.tools,
            image_tensors=image_tensors,
        )

    async def _encode_images(self, wanted: TextRequest) -> tuple[list[int], Mapping[str, Any]]:
        encode = partial(
            self._generator.encode_images,
            wanted.messages or (),
            tools=wanted.tools.definitions if wanted.tools is not None else (),
            images=wanted.images,
        )
        async with self._decoding_images:
            return await asyncio.to_thread(encode)

    def _encode_prompts(self, wanted: TextRequest) -> list[list[int]]:
        if wanted.messages is not None:
            tools = wanted.tools.definitions if wanted.tools is not None else ()
            return [self._generator.encode_chat(wanted.messages, tools=tools)]
        prompts = []
        for prompt in wanted.prompts or ():
            if isinstance(prompt, str):
                prompts.append(self._generator.encode_text(prompt))
            else:
                self._generator.check_tokens(prompt)
                prompts.append(list(prompt))
        return prompts


async def _measure(
    events: AsyncIterator[Event], *, metrics: EngineMetrics, began_at: float
) -> AsyncIterator[Event]:
    first = True
    async for event in events:
        if first:
            metrics.first_token(seconds=time.monotonic() - began_at)
            first = False
        if isinstance(event, GenerationFinished):
            metrics.generated(
                prompt_tokens=event.prompt_tokens,
                completion_tokens=event.completion_tokens,
                seconds=time.monotonic() - began_at,
            )
        yield event


async def _stream_response(
    events: AsyncIterator[Event], answer: AnswerFrame, response: AsgiResponse
) -> None:
    async def send(chunks: Iterable[dict[str, Any]]) -> None:
        for chunk in chunks:
            await response.event(chunk, name=chunk.get("type", ""))

    await send(answer.first_chunks())
    try:
        async for event in events:
            await send(answer.chunks(event))
    except RequestRejected as rejected:
        # The stream has begun: the error can only be its last event.
        await send([answer.failure(rejected)])
    except asyncio.CancelledError:
        # By uvicorn, at the end of the shutdown time. A client that does not read must not delay it.
        with suppress(TimeoutError):
            async with asyncio.timeout(0):
                await send([answer.failure(request_fields.shutting_down_error())])
                await response.end(marker=answer.end_marker)
        return
    await response.end(marker=answer.end_marker)


async def _collect_response(
    events: AsyncIterator[Event], answer: AnswerFrame, response: AsgiResponse
) -> None:
    async for event in events:
        answer.collect(event)
        if isinstance(event, GenerationFinished):
            await response.json(200, answer.body(event))


@dataclass(slots=True, kw_only=True)
class _CollectedChoice:
    """One answer so far."""

    text: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    calls: list[dict[str, Any]] = field(default_factory=list)
    logprobs: list[TokenLogprob] = field(default_factory=list)
    reason: str | None = None


class _ChoicesFrame:
    """An answer with choices."""

    end_marker = b"[DONE]"
    prefix: str
    kind: str
    chunk_kind: str

    def __init__(self, wanted: TextRequest) -> None:
        self._frame = {
            "id": self.prefix + uuid.uuid4().hex,
            "created": int(time.time()),
            "model": wanted.model,
        }
        self._wanted = wanted
        self._choices: defaultdict[int, _CollectedChoice] = defaultdict(_CollectedChoice)

    def collect(self, event: Event) -> None:
        if isinstance(event, GenerationFinished):
            return
        choice = self._choices[event.index]
        if isinstance(event, ToolCallDelta):
            choice.calls.append(_tool_call_document(event))
            return
        choice.logprobs += event.logprobs
        if isinstance(event, ChoiceFinished):
            choice.reason = event.reason
        else:
            (choice.reasoning if event.is_reasoning else choice.text).append(event.text)

    def body(self, finished: GenerationFinished) -> dict[str, Any]:
        choices = [
            {
                "index": index,
                **self.content(choice),
                "logprobs": self.logprobs(index, choice.logprobs),
                "finish_reason": choice.reason,
            }
            for index, choice in sorted(self._choices.items())
        ]
        return {
            **self._frame,
            "object": self.kind,
            "choices": choices,
            "usage": _usage_document(finished),
        }

    def chunks(self, event: Event) -> list[dict[str, Any]]:
        if isinstance(event, GenerationFinished):
            if not self._wanted.include_usage:
                return []
            return [
                {
                    **self._frame,
                    "object": self.chunk_kind,
                    "choices": [],
                    "usage": _usage_document(event),
                }
            ]
        logprobs = () if isinstance(event, ToolCallDelta) else event.logprobs
        choice = {
            "index": event.index,
            **self.delta(event),
            "logprobs": self.logprobs(event.index, logprobs) if logprobs else None,
            "finish_reason": event.reason if isinstance(event, ChoiceFinished) else None,
        }
        return [{**self._frame, "object": self.chunk_kind, "choices": [choice]}]

    def first_chunks(self) -> list[dict[str, Any]]:
        return []

    def failure(self, rejected: RequestRejected) -> dict[str, Any]:
        return rejected.body()

    def content(self, choice: _CollectedChoice) -> dict[str, Any]:
        raise NotImplementedError

    def delta(self, event: TextDelta | ToolCallDelta | ChoiceFinished) -> dict[str, Any]:
        raise NotImplementedError

    def logprobs(self, index: int, tokens: Sequence[TokenLogprob]) -> dict[str, Any] | None:
        raise NotImplementedError


class _ChatFrame(_ChoicesFrame):
    prefix = "chatcmpl-"
    kind = "chat.completion"
    chunk_kind = "chat.completion.chunk"

    def __init__(self, wanted: TextRequest) -> None:
        super().__init__(wanted)
        self._calls: defaultdict[int, int] = defaultdict(int)

    def first_chunks(self) -> list[dict[str, Any]]:
        return [
            {
                **self._frame,
                "object": self.chunk_kind,
                "choices": [
                    {
                        "index": index,
                        "delta": {"role": "assistant", "content": ""},
                        "logprobs": None,
                        "finish_reason": None,
                    }
                ],
            }
            for index in range(self._wanted.choices)
        ]

    def content(self, choice: _CollectedChoice) -> dict[str, Any]:
        text = "".join(choice.text)
        message: dict[str, Any] = {"role": "assistant", "content": text}
        if choice.reasoning:
            message["reasoning_content"] = "".join(choice.reasoning)
        if choice.calls:
            message |= {"content": text or None, "tool_calls": choice.calls}
        return {"message": message}

    def delta(self, event: TextDelta | ToolCallDelta | ChoiceFinished) -> dict[str, Any]:
        if isinstance(event, ChoiceFinished):
            return {"delta": {}}
        if isinstance(event, TextDelta):
            name = "reasoning_content" if event.is_reasoning else "content"
            return {"delta": {name: event.text}}
        number = self._calls[event.index]
        self._calls[event.index] += 1
        return {"delta": {"tool_calls": [{"index": number, **_tool_call_document(event)}]}}

    def logprobs(self, _index: int, tokens: Sequence[TokenLogprob]) -> dict[str, Any] | None:
        if self._wanted.logprobs is None:
            return None
        return {"content": [logprob_document(token) for token in tokens], "refusal": None}


class _CompletionFrame(_ChoicesFrame):
    prefix = "cmpl-"
    kind = chunk_kind = "text_completion"

    def __init__(self, wanted: TextRequest) -> None:
        super().__init__(wanted)
        self._offsets: defaultdict[int, _TextOffset] = defaultdict(_TextOffset)

    def content(self, choice: _CollectedChoice) -> dict[str, Any]:
        return {"text": "".join(choice.text)}

    def delta(self, event: TextDelta | ToolCallDelta | ChoiceFinished) -> dict[str, Any]:
        return {"text": event.text if isinstance(event, TextDelta) else ""}

    def logprobs(self, index: int, tokens: Sequence[TokenLogprob]) -> dict[str, Any] | None:
        if self._wanted.logprobs is None:
            return None
        offset = self._offsets[index]
        return {
            "tokens": [token_text(token.token) for token in tokens],
            "token_logprobs": [token.logprob for token in tokens],
            "top_logprobs": [
                None
                if token.logprob is None
                else {token_text(other): logprob for other, logprob in token.alternatives}
                for token in tokens
            ],
            "text_offset": [offset.push(token.token) for token in tokens],
        }


class _TextOffset:
    """Where in the text each token begins, in characters."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._length = 0

    def push(self, token: bytes) -> int:
        begin = self._length
        self._length += len(self._decoder.decode(token))
        return begin


def _tool_call_document(event: ToolCallDelta) -> dict[str, Any]:
    return {
        "id": "call_" + uuid.uuid4().hex[:24],
        "type": "function",
        "function": {"name": event.call.name, "arguments": event.call.arguments},
    }


def _usage_document(finished: GenerationFinished) -> dict[str, int]:
    return {
        "prompt_tokens": finished.prompt_tokens,
        "completion_tokens": finished.completion_tokens,
        "total_tokens": finished.prompt_tokens + finished.completion_tokens,
    }
