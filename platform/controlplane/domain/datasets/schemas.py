"""From a record to a conversation.

Three schemas are told apart by the columns of the first row, and the whole file must keep to it:

- *instruction*: a question and an answer in two columns (``instruction``/``output``,
  ``prompt``/``response``, ``prompt``/``completion``, ``question``/``answer``), with an optional
  ``input``, which follows the question on a line of its own, and an optional ``system``;
- *chat*: ``messages``, a list of ``{"role", "content"}``;
- *ShareGPT*: ``conversations``, a list of ``{"from", "value"}``.

A conversation is an optional system message, then user and assistant in turn, the assistant last.
Contents are text with something in it. In a CSV file the two lists are written as JSON.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any

from controlplane.domain.datasets.formats import kind_in_words, parse_json
from controlplane.domain.datasets.splits import Split

INSTRUCTION_COLUMNS = (
    ("instruction", "output"),
    ("prompt", "response"),
    ("prompt", "completion"),
    ("question", "answer"),
)
EXPECTED = (
    "; ".join(f"{question} and {answer}" for question, answer in INSTRUCTION_COLUMNS)
    + "; messages; or conversations"
)

_SPLITS = {
    **{split.value: split for split in Split},
    "val": Split.VALIDATION,
    "valid": Split.VALIDATION,
    "dev": Split.VALIDATION,
    "eval": Split.VALIDATION,
}


class Schema(StrEnum):
    INSTRUCTION = "instruction"
    CHAT = "chat"
    SHAREGPT = "sharegpt"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnMapping:
    """Which column plays which part, for files that use other names. Empty means "none".

    Either ``instruction`` and ``output`` are named, or ``messages``.
    """

    instruction: str = ""
    input: str = ""
    output: str = ""
    system: str = ""
    messages: str = ""
    split: str = ""

    def names(self) -> tuple[str, ...]:
        """The columns that are named, each once."""
        found = (getattr(self, part.name) for part in fields(self))
        return tuple(dict.fromkeys(name for name in found if name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How every row of a file is read."""

    schema: Schema
    columns: ColumnMapping
    #: Whether the columns were chosen by hand.
    mapped: bool = False


def recognise(found: Collection[str], mapping: ColumnMapping | None) -> Layout:
    """The layout of a file whose first row has these columns.

    :raises RowRefused: if a column of the mapping is missing, or no schema fits without one.
    """
    if mapping is not None:
        return _mapped(found, mapping)
    split = "split" if "split" in found else ""
    if "messages" in found:
        return Layout(schema=Schema.CHAT, columns=ColumnMapping(messages="messages", split=split))
    if "conversations" in found:
        columns = ColumnMapping(messages="conversations", split=split)
        return Layout(schema=Schema.SHAREGPT, columns=columns)
    for question, reply in INSTRUCTION_COLUMNS:
        if question in found and reply in found:
            columns = ColumnMapping(
                instruction=question, output=reply, input="input", system="system", split=split
            )
            return Layout(schema=Schema.INSTRUCTION, columns=columns)
    raise RowRefused(f"found {_listed(found)}; expected {EXPECTED}")


def read(record: Mapping[str, Any], layout: Layout) -> tuple[Message, ...]:
    """The conversation of one row.

    :raises RowRefused: if it is none.
    """
    columns = layout.columns
    if columns.messages:
        sharegpt = layout.schema is Schema.SHAREGPT
        return _conversation(_value(record, columns.messages), columns.messages, sharegpt=sharegpt)
    question = _text(_value(record, columns.instruction), columns.instruction)
    reply = _text(_value(record, columns.output), columns.output)
    messages = [
        Message(role=Role.USER, content=question),
        Message(role=Role.ASSISTANT, content=reply),
    ]
    if (addition := _optional_text(record, columns.input)) is not None:
        messages[0] = Message(role=Role.USER, content=f"{question}\n{addition}")
    if (system := _optional_text(record, columns.system)) is not None:
        messages.insert(0, Message(role=Role.SYSTEM, content=system))
    return tuple(messages)


def read_split(record: Mapping[str, Any], layout: Layout) -> Split | None:
    """The split that the row names; None where the file names none.

    :raises RowRefused: if it names no known split.
    """
    column = layout.columns.split
    if not column:
        if not layout.mapped and "split" in record:
            raise RowRefused("names a split, and the first row does not", column="split")
        return None
    value = _value(record, column)
    split = _SPLITS.get(value.strip().lower()) if isinstance(value, str) else None
    if split is None:
        message = f"must be train, validation or test, not {_shown(value)}"
        raise RowRefused(message, column=column)
    return split


def _mapped(found: Collection[str], mapping: ColumnMapping) -> Layout:
    parts = (mapping.instruction, mapping.output, mapping.input, mapping.system)
    if any(parts) if mapping.messages else not all(parts[:2]):
        raise RowRefused("map either instruction and output, or messages alone")
    missing = [name for name in mapping.names() if name not in found]
    if missing:
        raise RowRefused(f"found {_listed(found)}; expected also {', '.join(missing)}")
    if not mapping.messages:
        return Layout(schema=Schema.INSTRUCTION, columns=mapping, mapped=True)
    sharegpt = mapping.messages == "conversations"
    schema = Schema.SHAREGPT if sharegpt else Schema.CHAT
    return Layout(schema=schema, columns=mapping, mapped=True)


def _value(record: Mapping[str, Any], column: str) -> Any:
    try:
        return record[column]
    except KeyError:
        raise RowRefused(f"is missing; the row has {_listed(record)}", column=column) from None


def _text(value: object, column: str) -> str:
    if not isinstance(value, str):
        raise RowRefused(f"must be text, not {kind_in_words(value)}", column=column)
    if not value or value.isspace():
        raise RowRefused("must not be empty", column=column)
    if "\0" in value:
        raise RowRefused("must not have a NUL character", column=column)
    return value


def _optional_text(record: Mapping[str, Any], column: str) -> str | None:
    """The text; None where there is no such column, or nothing in it."""
    value = record.get(column) if column else None
    return None if value in (None, "") else _text(value, column)


def _conversation(value: object, column: str, *, sharegpt: bool) -> tuple[Message, ...]:
    if isinstance(value, str):
        try:
            value = parse_json(value)
        except ValueError as error:
            raise RowRefused(str(error), column=column) from None
    if not isinstance(value, list):
        raise RowRefused(f"must be a list of messages, not {kind_in_words(value)}", column=column)
    messages: list[Message] = []
    for place, item in enumerate(value):
        message = _message(item, f"{column}[{place}]", sharegpt=sharegpt)
        _check_turn(message.role, messages, f"{column}[{place}]")
        messages.append(message)
    if not messages or messages[-1].role is not Role.ASSISTANT:
        last = f"the {messages[-1].role}" if messages else "no message at all"
        raise RowRefused(f"must end with the assistant, not with {last}", column=column)
    return tuple(messages)


def _message(item: object, place: str, *, sharegpt: bool) -> Message:
    role_key, content_key = ("from", "value") if sharegpt else ("role", "content")
    if not isinstance(item, dict):
        raise RowRefused(f"must be an object, not {kind_in_words(item)}", column=place)
    for key in (role_key, content_key):
        if key not in item:
            raise RowRefused(f"{key} is missing; found {_listed(item)}", column=place)
    if item.get("tool_calls"):
        raise RowRefused("has tool_calls, which cannot be kept", column=place)
    roles = _SHAREGPT_ROLES if sharegpt else _CHAT_ROLES
    name = item[role_key]
    role = roles.get(name) if isinstance(name, str) else None
    if role is None:
        message = f"must be one of {', '.join(roles)}, not {_shown(name)}"
        raise RowRefused(message, column=f"{place}.{role_key}")
    return Message(role=role, content=_text(item[content_key], f"{place}.{content_key}"))


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


def _shown(value: object) -> str:
    if not isinstance(value, str):
        return kind_in_words(value)
    return repr(value if len(value) <= 40 else value[:40] + "…")


def _listed(found: Collection[str]) -> str:
    """Column names in words, shortened: they come from the file."""
    if not found:
        return "no columns"
    names = [printable(name) for name in list(found)[:12]]
    more = f" and {len(found) - 12} more" if len(found) > 12 else ""
    return f"column{'s' if len(found) > 1 else ''} {', '.join(names)}{more}"
