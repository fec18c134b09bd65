"""Conversations and preference pairs: parsing of messages with roles in a valid order."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from controlplane.domain.common.reasons import Parameter, Reason, ReasonedError
from controlplane.domain.datasets.file_formats import describe_json_type, parse_json


class MessageRole(StrEnum):
    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"


_CHAT_ROLES = {role.value: role for role in MessageRole}
_SHAREGPT_ROLES = {
    **_CHAT_ROLES,
    "human": MessageRole.USER,
    "gpt": MessageRole.ASSISTANT,
    "chatgpt": MessageRole.ASSISTANT,
    "model": MessageRole.ASSISTANT,
}


class RowRefused(ReasonedError):
    """The row is not a valid conversation; ``column`` is empty if the whole row is at fault."""

    def __init__(
        self, column: str, message: str, template: str = "", /, **params: Parameter
    ) -> None:
        super().__init__(message, template, **params)
        self.column = column


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatMessage:
    role: MessageRole
    content: str


def require_column(record: Mapping[str, Any], column: str) -> Any:
    try:
        return record[column]
    except KeyError:
        raise RowRefused(
            column,
            "dataset.row.column_missing",
            "the column is missing; the row has {columns}",
            columns=format_column_names(record),
        ) from None


def require_text(value: object, column: str) -> str:
    if not isinstance(value, str):
        raise RowRefused(
            column,
            "dataset.row.not_text",
            "the value must be text, not {type}",
            type=describe_json_type(value),
        )
    if not value or value.isspace():
        raise RowRefused(column, "dataset.row.empty", "the value must not be empty")
    if "\0" in value:
        raise RowRefused(
            column, "dataset.row.nul_character", "the value must not contain a NUL character"
        )
    return value


def optional_text(record: Mapping[str, Any], column: str) -> str | None:
    """The text; None if the column is missing or empty."""
    value = record.get(column) if column else None
    return None if value in (None, "") else require_text(value, column)


def parse_conversation(value: object, column: str, *, sharegpt: bool) -> tuple[ChatMessage, ...]:
    if isinstance(value, str):
        try:
            value = parse_json(value)
        except ValueError as error:
            raise RowRefused(column, str(error)) from None
    if not isinstance(value, list):
        raise RowRefused(
            column,
            "dataset.row.not_a_message_list",
            "the value must be a list of messages, not {type}",
            type=describe_json_type(value),
        )
    messages: list[ChatMessage] = []
    for place, item in enumerate(value):
        message = parse_message(item, f"{column}[{place}]", sharegpt=sharegpt)
        _check_role_order(message.role, messages, f"{column}[{place}]")
        messages.append(message)
    if not messages or messages[-1].role is not MessageRole.ASSISTANT:
        last = str(messages[-1].role) if messages else Reason("value.none", "none")
        raise RowRefused(
            column,
            "dataset.row.last_message_not_assistant",
            "the last message must have the role assistant; its role is {last}",
            last=last,
        )
    return tuple(messages)


def parse_message(item: object, place: str, *, sharegpt: bool) -> ChatMessage:
    role_key, content_key = ("from", "value") if sharegpt else ("role", "content")
    if not isinstance(item, dict):
        raise RowRefused(
            place,
            "dataset.row.not_an_object",
            "the message must be an object, not {type}",
            type=describe_json_type(item),
        )
    for key in (role_key, content_key):
        if key not in item:
            raise RowRefused(
                place,
                "dataset.row.message_key_missing",
                "the message has no {key}; it has {columns}",
                key=key,
                columns=format_column_names(item),
            )
    if item.get("tool_calls"):
        raise RowRefused(
            place,
            "dataset.row.tool_calls_unsupported",
            "the message has tool_calls, which are not supported",
        )
    roles = _SHAREGPT_ROLES if sharegpt else _CHAT_ROLES
    name = item[role_key]
    role = roles.get(name) if isinstance(name, str) else None
    if role is None:
        raise RowRefused(
            f"{place}.{role_key}",
            "dataset.row.unknown_role",
            "the role must be one of {roles}, not {role}",
            roles=", ".join(roles),
            role=shorten_value(name),
        )
    return ChatMessage(role=role, content=require_text(item[content_key], f"{place}.{content_key}"))


def _check_role_order(role: MessageRole, before: list[ChatMessage], place: str) -> None:
    previous = before[-1].role if before else None
    if role is MessageRole.SYSTEM:
        if previous is not None:
            raise RowRefused(
                place,
                "dataset.row.system_message_not_first",
                "a system message must be the first message",
            )
    elif role is MessageRole.USER:
        if previous is MessageRole.USER:
            raise RowRefused(
                place,
                "dataset.row.consecutive_user_messages",
                "two user messages in a row; expected an assistant message",
            )
    elif previous is not MessageRole.USER:
        raise RowRefused(
            place,
            "dataset.row.assistant_without_user",
            "an assistant message must follow a user message",
        )


def printable_column_name(name: str) -> str:
    """A column name, shortened and escaped for terminals and tables."""
    shown = name if len(name) <= 40 else name[:40] + "…"
    return shown if shown.isprintable() else ascii(shown)


def shorten_value(value: object) -> str:
    if not isinstance(value, str):
        return describe_json_type(value)
    return repr(value if len(value) <= 40 else value[:40] + "…")


def format_column_names(found: Collection[str]) -> str:
    """Column names as text, shortened because they come from the file."""
    if not found:
        return Reason("dataset.columns.none", "no columns")
    names = ", ".join(printable_column_name(name) for name in list(found)[:12])
    if len(found) <= 12:
        return Reason("dataset.columns.listed", "columns: {columns}", columns=names)
    return Reason(
        "dataset.columns.truncated",
        "columns: {columns} and {more} more",
        columns=names,
        more=len(found) - 12,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PreferenceColumns:
    """The column of each role; empty means none."""

    prompt: str
    messages: str
    system: str
    chosen: str
    rejected: str


def read_preference(
    record: Mapping[str, Any], columns: PreferenceColumns
) -> tuple[tuple[ChatMessage, ...], str]:
    """The conversation that ends with the chosen answer, and the rejected answer.

    Published forms of preference data::

        prompt      text, or messages that end with the user          chosen, rejected   text, or one message
        messages    messages that end with the user                   chosen, rejected   text, or one message
        messages    a conversation, whose last answer was chosen      rejected           text, or one message
        (nothing)                                                     chosen, rejected   conversations that differ
                                                                                         in their last message

    :raises RowRefused: if the row has no two answers to one prompt, or both are the same.
    """
    if columns.prompt or columns.messages:
        chosen, rejected = _read_prompted(record, columns)
    else:
        chosen, rejected = _read_conversations(record, columns)
    if chosen[-1].content == rejected:
        raise RowRefused(
            columns.rejected,
            "dataset.row.rejected_equals_chosen",
            "the rejected answer equals the chosen answer; a preference requires two "
            "different answers",
        )
    return chosen, rejected


def _read_prompted(
    record: Mapping[str, Any], columns: PreferenceColumns
) -> tuple[tuple[ChatMessage, ...], str]:
    rejected = _single_answer(require_column(record, columns.rejected), columns.rejected)
    place = columns.messages or columns.prompt
    before = require_column(record, place)
    if columns.prompt and isinstance(before, str):
        before = [{"role": MessageRole.USER.value, "content": require_text(before, place)}]
        if (system := optional_text(record, columns.system)) is not None:
            before.insert(0, {"role": MessageRole.SYSTEM.value, "content": system})
    if columns.chosen:
        if not isinstance(before, list):
            raise RowRefused(
                place,
                "dataset.row.invalid_prompt_type",
                "the prompt must be text or a list of messages, not {type}",
                type=describe_json_type(before),
            )
        answer = _single_answer(require_column(record, columns.chosen), columns.chosen)
        names = ("from", "value") if _is_sharegpt(before) else ("role", "content")
        before = [*before, dict(zip(names, (MessageRole.ASSISTANT.value, answer), strict=True))]
    return parse_conversation(before, place, sharegpt=_is_sharegpt(before)), rejected


def _read_conversations(
    record: Mapping[str, Any], columns: PreferenceColumns
) -> tuple[tuple[ChatMessage, ...], str]:
    parsed = []
    for column in (columns.chosen, columns.rejected):
        value = require_column(record, column)
        if isinstance(value, str):
            raise RowRefused(
                column,
                "dataset.row.prompt_missing",
                "the row has no prompt; add a column named prompt",
            )
        parsed.append(parse_conversation(value, column, sharegpt=_is_sharegpt(value)))
    chosen, rejected = parsed
    if chosen[:-1] != rejected[:-1]:
        raise RowRefused(
            columns.rejected,
            "dataset.row.prompt_mismatch",
            "the rejected answer belongs to a different prompt than the chosen answer",
        )
    return chosen, rejected[-1].content


def _single_answer(value: object, column: str) -> str:
    """Text as it is; the content of a message or of a list with one message."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if not isinstance(value, dict):
        return require_text(value, column)
    message = parse_message(value, column, sharegpt="from" in value)
    if message.role is not MessageRole.ASSISTANT:
        raise RowRefused(
            column,
            "dataset.row.answer_not_assistant",
            "the answer must be a message of the assistant, not of the {role}",
            role=message.role,
        )
    return message.content


def _is_sharegpt(value: object) -> bool:
    first = value[0] if isinstance(value, list) and value else None
    return isinstance(first, dict) and "from" in first
