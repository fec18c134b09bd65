"""Tool calls and reasoning, told from the text of an answer while it is generated.

The form is that of the tokenizer's ``response_template``, or of the template that transformers has for the
model's type; without either it is Hermes' ``<tool_call>{"name": …, "arguments": …}</tool_call>``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from transformers.cli.serving.utils import get_response_template
from transformers.utils.chat_parsing import ResponseParser

from ninefold_runtime.serving.text_generation import TextDelta, ToolCallDelta
from ninefold_runtime.serving.tool_calls import ToolCall, ToolChoice, ToolUse

_TOOL_CALLS, _REASONING = "tool_calls", "thinking"
_HERMES_MARK = "<tool_call>"
_HERMES: Mapping[str, Any] = {
    "defaults": {"role": "assistant"},
    "fields": {
        _TOOL_CALLS: {
            "open_pattern": rf"\s*{_HERMES_MARK}",
            "close": "</tool_call>",
            "repeats": True,
            "content": "json",
            "transform": {"type": "function", "function": "{content}"},
        },
        "content": {"content": "text"},
    },
}

AnswerPart = TextDelta | ToolCallDelta


class AnswerParser:
    """The parts of one answer. This one takes everything for text."""

    #: Whether the text must contain special tokens.
    needs_special_tokens = False
    called_tools = False

    def __init__(self, *, index: int) -> None:
        self._index = index

    def push(self, text: str) -> list[AnswerPart]:
        return [self._text(text)] if text else []

    def finish(self) -> list[AnswerPart]:
        return []

    def _text(self, text: str, *, is_reasoning: bool = False) -> TextDelta:
        return TextDelta(index=self._index, text=text, is_reasoning=is_reasoning)


class ForcedCallParser(AnswerParser):
    """An answer that is constrained to calls of tools."""

    def __init__(self, *, index: int, tools: ToolUse) -> None:
        super().__init__(index=index)
        self._tools = tools
        self._pieces: list[str] = []

    def push(self, text: str) -> list[AnswerPart]:
        self._pieces.append(text)
        return []

    def finish(self) -> list[AnswerPart]:
        text = "".join(self._pieces)
        calls = self._tools.parse_forced(text)
        self.called_tools = bool(calls) and self._tools.choice is ToolChoice.REQUIRED
        if calls:
            return [ToolCallDelta(index=self._index, call=call) for call in calls]
        return [self._text(text)] if text else []


class TemplateParser(AnswerParser):
    """An answer in the form of a response template."""

    def __init__(
        self,
        *,
        index: int,
        template: Mapping[str, Any],
        prompt: str,
        tools: ToolUse | None,
        needs_special_tokens: bool,
    ) -> None:
        super().__init__(index=index)
        self.needs_special_tokens = needs_special_tokens
        self._parallel = tools is None or tools.parallel
        definitions = list(tools.definitions) if tools is not None else None
        self._parser = ResponseParser(dict(template), prefix=prompt, tools=definitions)
        self._held: list[str] = []
        self._strips = False
        self._failed = False

    def push(self, text: str) -> list[AnswerPart]:
        if self._failed:
            return super().push(text)
        try:
            return self._parts(self._parser.feed(text))
        except (ValueError, KeyError, TypeError):
            return self._fail()

    def finish(self) -> list[AnswerPart]:
        if self._failed:
            return []
        try:
            _, events = self._parser.finalize()
            return self._parts(events)
        except (ValueError, KeyError, TypeError):
            return self._fail()

    def _parts(self, events: list[dict[str, Any]]) -> list[AnswerPart]:
        parts: list[AnswerPart] = []
        for event in events:
            name, kind = event["field"], event["type"]
            if name == _TOOL_CALLS and kind == "region_chunk":
                self._held.append(event["text"])
            elif name == _TOOL_CALLS and kind == "region_close":
                call = _tool_call(event["value"])
                self._held.clear()
                if self._parallel or not self.called_tools:
                    parts.append(ToolCallDelta(index=self._index, call=call))
                self.called_tools = True
            elif kind == "region_chunk":
                text = event["text"].lstrip() if self._strips else event["text"]
                self._strips = self._strips and not text
                if text:
                    parts.append(self._text(text, is_reasoning=name == _REASONING))
            if kind == "region_close":
                # What separates reasoning and calls from the answer belongs to the form.
                self._strips = True
        return parts

    def _fail(self) -> list[AnswerPart]:
        """Return as text what is not in the form, as everything after it."""
        self._failed = True
        text = "".join(self._held)
        return [self._text(text)] if text else []


def answer_parser(
    tokenizer: Any, model: Any, *, index: int, prompt: str, tools: ToolUse | None
) -> AnswerParser:
    """The parser of an answer to the prompt of a chat."""
    if tools is not None and tools.choice is not ToolChoice.AUTO:
        return ForcedCallParser(index=index, tools=tools)
    template = get_response_template(tokenizer, model)
    needs_special_tokens = template is not None
    if template is None:
        if tools is None:
            return AnswerParser(index=index)
        template = _HERMES
        needs_special_tokens = _HERMES_MARK in tokenizer.all_special_tokens
    if tools is None:
        fields = {name: each for name, each in template["fields"].items() if name != _TOOL_CALLS}
        template = {**template, "fields": fields}
    return TemplateParser(
        index=index,
        template=template,
        prompt=prompt,
        tools=tools,
        needs_special_tokens=needs_special_tokens,
    )


def _tool_call(value: Mapping[str, Any]) -> ToolCall:
    """:raises KeyError, TypeError: if the value is not a call."""
    function = value["function"]
    arguments = function["arguments"]
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False)
    return ToolCall(name=str(function["name"]), arguments=arguments)
