"""``/v1/responses``: its requests as those of chats, and its answers as items, whole or in typed events.

Nothing is stored between requests, and the server runs no tools: fields, items and tools that need either are
refused. Shapes are those of OpenAI's API, ``openai.types.responses``.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from typing import Any

from ninefold_runtime.serving import generation_requests, request_fields
from ninefold_runtime.serving.generation_requests import MOST_ALTERNATIVES, Message, TextRequest
from ninefold_runtime.serving.image_inputs import ImageInput
from ninefold_runtime.serving.request_fields import RequestRejected, parse_integer
from ninefold_runtime.serving.structured_output import parse_format
from ninefold_runtime.serving.text_generation import (
    ChoiceFinished,
    Event,
    GenerationFinished,
    TextDelta,
    ToolCallDelta,
    logprob_document,
)
from ninefold_runtime.serving.tool_calls import ToolCall, parse_tool_use

_STORED = ("previous_response_id", "conversation", "background", "prompt")
_SUPPORTED = frozenset(
    {
        *_STORED,
        *("model", "input", "instructions", "stream", "stream_options", "text", "moderation"),
        *("max_output_tokens", "temperature", "top_p", "include", "top_logprobs"),
        *("tools", "tool_choice", "parallel_tool_calls"),
        # Of the provider's own tools, models and programs.
        *("max_tool_calls", "reasoning", "access_programs"),
    }
)
_NEUTRAL: Mapping[str, tuple[Any, ...]] = {
    "truncation": ("disabled",),
    "context_management": ([],),
    "image": ({"context_compression": "auto"}, {"context_compression": "disabled"}),
}
#: Fields of the request that its answer returns, with their defaults.
_RETURNED: Mapping[str, Any] = {
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "prompt_cache_key": None,
    "reasoning": {"effort": None, "summary": None},
    "safety_identifier": None,
    "temperature": None,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
    "top_p": None,
    "user": None,
}
_ROLES = {"user": "user", "assistant": "assistant", "system": "system", "developer": "system"}
_PARTS = {"input_text": "text", "output_text": "text", "input_image": "image"}
_ITEMS = "message, function_call, function_call_output and reasoning"
_LOGPROBS = "message.output_text.logprobs"


def parse_response_request(body: bytes) -> tuple[TextRequest, dict[str, Any]]:
    """The request as one of a chat, and the fields of it that the answer returns.

    :raises RequestRejected: naming the field that is wrong, missing or not supported.
    """
    fields = request_fields.parse_object(body)
    for name in _STORED:
        if fields.get(name):
            raise RequestRejected(
                f"{name} is not supported by this server, which stores nothing between requests; send "
                "the whole input",
                param=name,
                code="unsupported_parameter",
            )
    request_fields.check_fields(fields, supported=_SUPPORTED, neutral=_NEUTRAL)
    generation_requests.check_moderation(fields)
    _check_returned(fields)
    text = fields.get("text") or {}
    if not isinstance(text, dict) or set(text) - {"format", "verbosity"}:
        raise RequestRejected("text must be an object with format and verbosity only", param="text")
    messages, images = _parse_input(fields)
    wanted = generation_requests.chat_request(
        fields,
        messages=messages,
        images=images,
        logprobs=_parse_logprobs(fields),
        tools=parse_tool_use(fields, is_flat=True),
        grammar=parse_format(text.get("format"), param="text.format"),
        prompt_field="input",
        format_field="text.format",
    )
    given = {name: value for name, value in fields.items() if value is not None}
    returned = {name: given.get(name, default) for name, default in _RETURNED.items()}
    # A tool has both in every answer.
    returned["tools"] = [{"parameters": None, "strict": None} | tool for tool in returned["tools"]]
    returned["text"] = _RETURNED["text"] | {
        name: value for name, value in text.items() if value is not None
    }
    return wanted, returned


def _check_returned(fields: Mapping[str, Any]) -> None:
    """Fields of the answer that nothing else reads."""
    metadata, reasoning = fields.get("metadata"), fields.get("reasoning")
    values = metadata.values() if isinstance(metadata, dict) else ()
    if not isinstance(metadata, dict | None) or not all(isinstance(each, str) for each in values):
        raise RequestRejected("metadata must be an object of strings", param="metadata")
    if not isinstance(reasoning, dict | None):
        raise RequestRejected("reasoning must be an object", param="reasoning")
    for name in ("prompt_cache_key", "safety_identifier", "user"):
        if not isinstance(fields.get(name), str | None):
            raise RequestRejected(f"{name} must be a string", param=name)
    parse_integer(fields, "max_tool_calls", least=0)
    request_fields.parse_boolean(fields, "parallel_tool_calls")


def _parse_logprobs(fields: Mapping[str, Any]) -> int | None:
    include = fields.get("include") or []
    if not isinstance(include, list):
        raise RequestRejected("include must be a list", param="include")
    alternatives = parse_integer(fields, "top_logprobs", least=0, most=MOST_ALTERNATIVES)
    return alternatives or 0 if alternatives or _LOGPROBS in include else None


def _parse_input(fields: Mapping[str, Any]) -> tuple[tuple[Message, ...], tuple[ImageInput, ...]]:
    given, instructions = fields.get("input"), fields.get("instructions")
    if not isinstance(instructions, str | None):
        raise RequestRejected("instructions must be a string", param="instructions")
    if not given or not isinstance(given, str | list):
        raise RequestRejected("input must be a non-empty string or list of items", param="input")
    messages: list[Message] = []
    if instructions:
        messages.append({"role": "system", "content": instructions})
    images: list[ImageInput] = []
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    for index, item in enumerate(items):
        _add_item(messages, item, at=f"input[{index}]", images=images)
    if not messages:
        raise RequestRejected("input must have at least one message", param="input")
    generation_requests.check_image_count(images, param="input")
    return tuple(messages), tuple(images)


def _add_item(messages: list[Message], item: Any, *, at: str, images: list[ImageInput]) -> None:
    kind = item.get("type") or "message" if isinstance(item, dict) else type(item).__name__
    if kind == "message":
        role = item.get("role")
        if not isinstance(role, str) or role not in _ROLES:
            raise RequestRejected(
                f"{at}.role must be one of {', '.join(_ROLES)}, not {role!r}", param=f"{at}.role"
            )
        content = generation_requests.parse_content(
            item.get("content"),
            at=f"{at}.content",
            images=images if role == "user" else None,
            part_types=_PARTS,
        )
        if _ROLES[role] == "system" and messages and messages[-1]["role"] == "system":
            # Many templates refuse a second one, as after the instructions.
            content = f"{messages.pop()['content']}\n\n{content}"
        messages.append({"role": _ROLES[role], "content": content})
    elif kind == "function_call":
        if item.get("status") == "incomplete":
            raise RequestRejected(
                f"{at} is an incomplete call of a function, whose arguments were cut off; leave it out",
                param=at,
            )
        call = generation_requests.parse_past_call(item, call_id=_call_id(item, at=at), at=at)
        # Templates read the text and the calls of one answer as one message.
        if not messages or messages[-1]["role"] != "assistant":
            messages.append({"role": "assistant", "content": ""})
        messages[-1].setdefault("tool_calls", []).append(call)
    elif kind == "function_call_output":
        content = generation_requests.parse_content(
            item.get("output"), at=f"{at}.output", images=None, part_types=_PARTS
        )
        messages.append({"role": "tool", "tool_call_id": _call_id(item, at=at), "content": content})
    elif kind != "reasoning":
        # Templates leave the reasoning of earlier answers out.
        raise RequestRejected(
            f"{at} is of type {kind!r}; this server reads items of the types {_ITEMS}", param=at
        )


def _call_id(item: Mapping[str, Any], *, at: str) -> str:
    value = item.get("call_id")
    if not isinstance(value, str) or not value:
        raise RequestRejected(f"{at}.call_id must be a non-empty string", param=f"{at}.call_id")
    return value


class ResponseFrame:
    """An answer as items: reasoning, messages and calls of functions, in the order in which they come."""

    #: The event with the whole response is the last one.
    end_marker = b""

    def __init__(self, wanted: TextRequest, *, returned: Mapping[str, Any]) -> None:
        self._response: dict[str, Any] = {
            "id": _new_id("resp"),
            "object": "response",
            "created_at": int(time.time()),
            "model": wanted.model,
            **returned,
            "background": False,
            "error": None,
            "incomplete_details": None,
            "previous_response_id": None,
            "store": False,
            "truncation": "disabled",
            "usage": None,
        }
        self._output: list[dict[str, Any]] = []
        #: The item of the newest text, until another one follows.
        self._open: _TextItem | None = None
        self._was_cut = False
        self._events = 0

    def first_chunks(self) -> list[dict[str, Any]]:
        begun = {**self._response, "status": "in_progress", "output": []}
        return [
            self._event("response.created", response=begun),
            self._event("response.in_progress", response=begun),
        ]

    def chunks(self, event: Event) -> list[dict[str, Any]]:
        if isinstance(event, TextDelta):
            return self._add_text(event)
        if isinstance(event, ToolCallDelta):
            return [*self._close_text(), *self._add_call(event.call)]
        if isinstance(event, ChoiceFinished):
            self._was_cut = event.reason == "length"
            events = []
            if self._open is None and not self._output:
                # An answer without text has an empty message, as clients expect.
                events = self._open_text(_TextItem(is_reasoning=False))
            if self._open is not None:
                self._open.logprobs += map(logprob_document, event.logprobs)
            return [*events, *self._close_text()]
        response = self.body(event)
        return [self._event(f"response.{response['status']}", response=response)]

    def failure(self, rejected: RequestRejected) -> dict[str, Any]:
        error = {"code": "server_error", "message": str(rejected)}
        response = {**self._response, "status": "failed", "error": error, "output": self._output}
        return self._event("response.failed", response=response)

    def collect(self, event: Event) -> None:
        self.chunks(event)

    def body(self, finished: GenerationFinished) -> dict[str, Any]:
        details = {"reason": "max_output_tokens"} if self._was_cut else None
        return {
            **self._response,
            "status": "incomplete" if self._was_cut else "completed",
            "incomplete_details": details,
            "output": self._output,
            "usage": {
                "input_tokens": finished.prompt_tokens,
                "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
                "output_tokens": finished.completion_tokens,
                # They are among the tokens of the output, and not counted apart.
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": finished.prompt_tokens + finished.completion_tokens,
            },
        }

    def _event(self, kind: str, **fields: Any) -> dict[str, Any]:
        self._events += 1
        return {"type": kind, "sequence_number": self._events - 1, **fields}

    def _add_text(self, event: TextDelta) -> list[dict[str, Any]]:
        events, item = [], self._open
        if item is None or item.is_reasoning != event.is_reasoning:
            item = _TextItem(is_reasoning=event.is_reasoning)
            events = [*self._close_text(), *self._open_text(item)]
        logprobs = [logprob_document(token) for token in event.logprobs]
        item.pieces.append(event.text)
        item.logprobs += logprobs
        return [*events, self._text_event("delta", item, delta=event.text, logprobs=logprobs)]

    def _open_text(self, item: _TextItem) -> list[dict[str, Any]]:
        self._open = item
        added = {**item.document("in_progress"), "content": []}
        return [
            self._event("response.output_item.added", output_index=self._index, item=added),
            self._part_event("response.content_part.added", item, part=item.part()),
        ]

    def _close_text(self) -> list[dict[str, Any]]:
        if self._open is None:
            return []
        item, self._open = self._open, None
        part = item.part()
        document = item.document("incomplete" if self._was_cut else "completed")
        events = [
            self._text_event("done", item, text=part["text"], logprobs=item.logprobs),
            self._part_event("response.content_part.done", item, part=part),
            self._event("response.output_item.done", output_index=self._index, item=document),
        ]
        self._output.append(document)
        return events

    def _text_event(
        self, kind: str, item: _TextItem, *, logprobs: list[dict[str, Any]], **text: str
    ) -> dict[str, Any]:
        scores = {} if item.is_reasoning else {"logprobs": logprobs}
        return self._part_event(f"response.{item.part_type}.{kind}", item, **text, **scores)

    def _part_event(self, kind: str, item: _TextItem, **fields: Any) -> dict[str, Any]:
        """An event of the only part of the item."""
        place = {"item_id": item.id, "output_index": self._index, "content_index": 0}
        return self._event(kind, **place, **fields)

    def _add_call(self, call: ToolCall) -> list[dict[str, Any]]:
        item = {
            "type": "function_call",
            "id": _new_id("fc"),
            "call_id": _new_id("call"),
            "name": call.name,
            "arguments": call.arguments,
            "status": "completed" if call.is_complete else "incomplete",
        }
        place = {"item_id": item["id"], "output_index": self._index}
        added = {**item, "arguments": "", "status": "in_progress"}
        head = "response.function_call_arguments"
        events = [
            self._event("response.output_item.added", output_index=self._index, item=added),
            self._event(f"{head}.delta", **place, delta=call.arguments),
            self._event(f"{head}.done", **place, name=call.name, arguments=call.arguments),
            self._event("response.output_item.done", output_index=self._index, item=item),
        ]
        self._output.append(item)
        return events

    @property
    def _index(self) -> int:
        """Of the item that is not complete yet."""
        return len(self._output)


class _TextItem:
    """A message or a reasoning, with one part of text."""

    def __init__(self, *, is_reasoning: bool) -> None:
        self.is_reasoning = is_reasoning
        self.part_type = "reasoning_text" if is_reasoning else "output_text"
        self.id = _new_id("rs" if is_reasoning else "msg")
        self.pieces: list[str] = []
        self.logprobs: list[dict[str, Any]] = []

    def part(self) -> dict[str, Any]:
        part: dict[str, Any] = {"type": self.part_type, "text": "".join(self.pieces)}
        return (
            part if self.is_reasoning else part | {"annotations": [], "logprobs": [*self.logprobs]}
        )

    def document(self, status: str) -> dict[str, Any]:
        own: dict[str, Any] = {"type": "message", "role": "assistant"}
        if self.is_reasoning:
            own = {"type": "reasoning", "summary": []}
        return {"id": self.id, **own, "status": status, "content": [self.part()]}


def _new_id(prefix: str) -> str:
    return f"{prefix}_{uuid.uuid4().hex}"
