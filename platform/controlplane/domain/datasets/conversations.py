"""Conversations as they come in files: messages with roles, in an order that makes sense."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from controlplane.domain.datasets.formats import kind_in_words, parse_json


class Role(StrEnum):
    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"


_CHAT_ROLES = {role.value: role for role in Role}
_SHAREGPT_ROLES = {
    **_CHAT_ROLES,
    "human": Role.USER,
    "gpt": Role.ASSISTANT,
    "chatgpt": Role.ASSISTANT,
    "model": Role.ASSISTANT,
}


class RowRefused(Exception):
    """The row is no conversation."""

    def __init__(self, message: str, *, column: str = "") -> None:
        super().__init__(message)
        self.column = column


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    role: Role
    content: str


def value_of(record: Mapping[str, Any], column: str) -> Any:
    try:
        return record[column]
    except KeyError:
        raise RowRefused(f"is missing; the row has {listed(record)}", column=column) from None


def text_of(value: object, column: str) -> str:
    if not isinstance(value, str):
        raise RowRefused(f"must be text, not {kind_in_words(value)}", column=column)
    if not value or value.isspace():
        raise RowRefused("must not be empty", column=column)
    if "\0" in value:
        raise RowRefused("must not have a NUL character", column=column)
    return value


def optional_text(record: Mapping[str, Any], column: str) -> str | None:
    """The text; None where there is no such column, or nothing in it."""
    value = record.get(column) if column else None
    return None if value in (None, "") else text_of(value, column)


def conversation(value: object, column: str, *, sharegpt: bool) -> tuple[Message, ...]:
    if isinstance(value, str):
        try:
            value = parse_json(value)
        except ValueError as error:
            raise RowRefused(str(error), column=column) from None
    if not isinstance(value, list):
        raise RowRefused(f"must be a list of messages, not {kind_in_words(value)}", column=column)
    messages: list[Message] = []
    for place, item in enumerate(value):
        message = message_of(item, f"{column}[{place}]", sharegpt=sharegpt)
        _check_turn(message.role, messages, f"{column}[{place}]")
        messages.append(message)
    if not messages or messages[-1].role is not Role.ASSISTANT:
        last = f"the {messages[-1].role}" if messages else "no message at all"
        raise RowRefused(f"must end with the assistant, not with {last}", column=column)
    return tuple(messages)


def message_of(item: object, place: str, *, sharegpt: bool) -> Message:
    role_key, content_key = ("from", "value") if sharegpt else ("role", "content")
    if not isinstance(item, dict):
        raise RowRefused(f"must be an object, not {kind_in_words(item)}", column=place)
    for key in (role_key, content_key):
        if key not in item:
            raise RowRefused(f"{key} is missing; found {listed(item)}", column=place)
    if item.get("tool_calls"):
        raise RowRefused("has tool_calls, which cannot be kept", column=place)
    roles = _SHAREGPT_ROLES if sharegpt else _CHAT_ROLES
    name = item[role_key]
    role = roles.get(name) if isinstance(name, str) else None
    if role is None:
        message = f"must be one of {', '.join(roles)}, not {shown(name)}"
        raise RowRefused(message, column=f"{place}.{role_key}")
    return Message(role=role, content=text_of(item[content_key], f"{place}.{content_key}"))


def _check_turn(role: Role, before: list[Message], place: str) -> None:
    previous = before[-1].role if before else None
    if role is Role.SYSTEM:
        if previous is not None:
            raise RowRefused("a system message must be the first", column=place)
    elif role is Role.USER:
        if previous is Role.USER:
            raise RowRefused("two user messages in a row; expected the assistant", column=place)
    elif previous is not Role.USER:
        raise RowRefused("the assistant speaks without a user message before it", column=place)


def printable(name: str) -> str:
    """The name of a column, shortened and with nothing in it that a terminal or a table refuses."""
    shown = name if len(name) <= 40 else name[:40] + "…"
    return shown if shown.isprintable() else ascii(shown)


def shown(value: object) -> str:
    if not isinstance(value, str):
        return kind_in_words(value)
    return repr(value if len(value) <= 40 else value[:40] + "…")


def listed(found: Collection[str]) -> str:
    """Column names in words, shortened: they come from the file."""
    if not found:
        return "no columns"
    names = [printable(name) for name in list(found)[:12]]
    more = f" and {len(found) - 12} more" if len(found) > 12 else ""
    return f"column{'s' if len(found) > 1 else ''} {', '.join(names)}{more}"
