"""Tools of a chat: which the model may call, what a forced call must look like, and its way back.

With ``tool_choice`` ``auto`` the model decides, in the form of its chat template. ``required`` and a named
function force a call: the whole answer is then constrained to JSON, a list of ``{"name", "arguments"}``, or
the arguments alone where the function is named.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from ninefold_runtime.serving.request_fields import RequestRejected, parse_boolean
from ninefold_runtime.serving.structured_output import json_rule

_MOST_TOOLS = 128
_FUNCTION_FIELDS = ("name", "description", "parameters")


class ToolChoice(StrEnum):
    """Whether the model has to call a tool."""

    AUTO = "auto"
    REQUIRED = "required"
    NAMED = "named"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One call of a function; ``arguments`` is JSON."""

    name: str
    arguments: str
    #: Whether the answer went on to the end of the arguments.
    is_complete: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUse:
    """The tools of a request."""

    #: As the client sent them, which is what chat templates read.
    definitions: tuple[Mapping[str, Any], ...]
    choice: ToolChoice
    #: Whether one answer may contain several calls.
    parallel: bool

    def grammar(self) -> str | None:
        """What a forced call must match, in Lark's notation; None if the model decides."""
        if self.choice is ToolChoice.AUTO:
            return None
        functions = [definition["function"] for definition in self.definitions]
        if self.choice is ToolChoice.NAMED:
            return "start: arguments_0\n" + _arguments_rule(0, functions[0])
        calls = " | ".join(f"call_{index}" for index in range(len(functions)))
        more = '("," call)*' if self.parallel else ""
        rules = [f'start: "[" call {more} "]"\n', f"call: {calls}\n"]
        for index, function in enumerate(functions):
            head = f'{{"name":{json.dumps(function["name"])},"arguments":'
            rules.append(f'call_{index}: {json.dumps(head)} arguments_{index} "}}"\n')
            rules.append(_arguments_rule(index, function))
        return "".join(rules)

    def parse_forced(self, text: str) -> tuple[ToolCall, ...]:
        """The calls of a constrained answer that may be cut off: a named call in part, others not at all."""
        calls, is_complete = [], True
        try:
            calls = json.loads(text)
        except ValueError:
            is_complete = False
        if self.choice is ToolChoice.NAMED:
            name = self.definitions[0]["function"]["name"]
            return (ToolCall(name=name, arguments=text, is_complete=is_complete),)
        return tuple(
            ToolCall(name=call["name"], arguments=json.dumps(call["arguments"], ensure_ascii=False))
            for call in calls
        )


def parse_tool_use(fields: Mapping[str, Any], *, is_flat: bool = False) -> ToolUse | None:
    """The tools of a request; None without any, or if ``tool_choice`` is ``none``.

    :param is_flat: a function's fields are those of its tool, as responses have it, rather than in ``function``.
    :raises RequestRejected: naming the field that is wrong.
    """
    value = fields.get("tools")
    value = [] if value is None else value
    if not isinstance(value, list) or len(value) > _MOST_TOOLS:
        raise RequestRejected(f"tools must be a list of at most {_MOST_TOOLS} tools", param="tools")
    tools = tuple(
        _parse_tool(tool, at=f"tools[{index}]", is_flat=is_flat) for index, tool in enumerate(value)
    )
    choice = fields.get("tool_choice")
    if choice is None:
        choice = "auto"
    if choice == "none" or (not tools and choice == "auto"):
        return None
    if not tools:
        raise RequestRejected("tool_choice needs tools to choose from", param="tool_choice")
    parallel = parse_boolean(fields, "parallel_tool_calls", default=True)
    if choice in (ToolChoice.AUTO, ToolChoice.REQUIRED):
        return ToolUse(definitions=tools, choice=ToolChoice(choice), parallel=parallel)
    named = _find_named(choice, tools, is_flat=is_flat)
    return ToolUse(definitions=(named,), choice=ToolChoice.NAMED, parallel=False)


def _find_named(
    choice: Any, tools: Sequence[Mapping[str, Any]], *, is_flat: bool
) -> Mapping[str, Any]:
    function = None
    if isinstance(choice, dict) and choice.get("type", "function") == "function":
        function = choice if is_flat else choice.get("function")
    name = function.get("name") if isinstance(function, dict) else None
    for tool in tools:
        if name is not None and tool["function"]["name"] == name:
            return tool
    form = '"name": one of the tools' if is_flat else '"function": {"name": one of the tools}'
    raise RequestRejected(
        f'tool_choice must be "none", "auto", "required" or {{"type": "function", {form}}}',
        param="tool_choice",
    )


def _parse_tool(value: Any, *, at: str, is_flat: bool) -> Mapping[str, Any]:
    kind = value.get("type") if isinstance(value, dict) else None
    if is_flat and kind not in (None, "function"):
        raise RequestRejected(
            f"{at} is a tool of the type {kind!r}; this server runs no tools, and accepts functions only",
            param=at,
            code="unsupported_parameter",
        )
    function = None
    if isinstance(value, dict):
        # Chat templates get what the same function has in a chat.
        own = {name: value[name] for name in _FUNCTION_FIELDS if value.get(name) is not None}
        function = own if is_flat else value.get("function")
    if not isinstance(function, dict) or kind != "function":
        form = '"name": …, "parameters": {…}' if is_flat else '"function": {…}'
        raise RequestRejected(f'{at} must be {{"type": "function", {form}}}', param=at)
    at = at if is_flat else f"{at}.function"
    name = function.get("name")
    if not isinstance(name, str) or not name:
        raise RequestRejected(f"{at}.name must be a non-empty string", param=f"{at}.name")
    if not isinstance(function.get("parameters") or {}, dict):
        raise RequestRejected(f"{at}.parameters must be a JSON schema", param=f"{at}.parameters")
    return {"type": "function", "function": function}


def _arguments_rule(index: int, function: Mapping[str, Any]) -> str:
    # The API defines a function without parameters as one with an empty list of them.
    schema = function.get("parameters") or {"type": "object", "additionalProperties": False}
    return json_rule(f"arguments_{index}", schema)
