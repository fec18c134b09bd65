"""Schemas of dataset rows, and conversion of a record to a conversation.

Five schemas are distinguished by the columns of the first row; the whole file must use the same one:

- *instruction*: a question and an answer in two columns (``instruction``/``output``,
  ``prompt``/``response``, ``prompt``/``completion``, ``question``/``answer``), with an optional
  ``input``, which follows the question on a line of its own, and an optional ``system``;
- *chat*: ``messages``, a list of ``{"role", "content"}``;
- *ShareGPT*: ``conversations``, a list of ``{"from", "value"}``;
- *preference*: two answers to one prompt, ``chosen`` and ``rejected``, each text or the one message of an
  assistant, beside a ``prompt`` (text or messages), ``messages`` or ``conversations``; without any of these
  both are whole conversations that differ in their last message;
- *text*: ``text``, for continued pre-training.

A conversation is an optional system message, then user and assistant alternating, the assistant last. The answer
that was chosen ends the conversation of a preference, the rejected one stands beside it; a text is a
conversation with one assistant message. Contents are non-empty text. In a CSV file lists
are written as JSON.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any

from controlplane.domain.datasets.conversations import (
    ChatMessage,
    MessageRole,
    PreferenceColumns,
    RowRefused,
    format_column_names,
    optional_text,
    parse_conversation,
    read_preference,
    require_column,
    require_text,
    shorten_value,
)
from controlplane.domain.datasets.splits import Split

INSTRUCTION_COLUMNS = (
    ("instruction", "output"),
    ("prompt", "response"),
    ("prompt", "completion"),
    ("question", "answer"),
)
EXPECTED = (
    "; ".join(f"{question} and {answer}" for question, answer in INSTRUCTION_COLUMNS)
    + "; prompt, chosen and rejected; messages; conversations; or text"
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
    PREFERENCE = "preference"
    TEXT = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnMapping:
    """The column of each role, for files with non-standard column names. Empty means none.

    Either ``instruction`` and ``output`` are named, or ``messages``, or ``text``; ``rejected`` with
    ``output`` makes it a preference.
    """

    instruction: str = ""
    input: str = ""
    output: str = ""
    system: str = ""
    messages: str = ""
    split: str = ""
    #: The rejected answer; ``output`` is the chosen one.
    rejected: str = ""
    text: str = ""

    def column_names(self) -> tuple[str, ...]:
        """The named columns, each once."""
        found = (getattr(self, part.name) for part in fields(self))
        return tuple(dict.fromkeys(name for name in found if name))


@dataclass(frozen=True, slots=True, kw_only=True)
class RowLayout:
    """How each row of a file is read."""

    schema: Schema
    columns: ColumnMapping
    #: Whether the user mapped the columns.
    mapped: bool = False


def detect_layout(found: Collection[str], mapping: ColumnMapping | None) -> RowLayout:
    """The layout of a file whose first row has these columns.

    :raises RowRefused: if a column of the mapping is missing, or no schema matches.
    """
    if mapping is not None:
        return _layout_of_mapping(found, mapping)
    split = "split" if "split" in found else ""
    if (preference := _preference_layout(found, split)) is not None:
        return preference
    if "messages" in found:
        return RowLayout(
            schema=Schema.CHAT, columns=ColumnMapping(messages="messages", split=split)
        )
    if "conversations" in found:
        columns = ColumnMapping(messages="conversations", split=split)
        return RowLayout(schema=Schema.SHAREGPT, columns=columns)
    for question, reply in INSTRUCTION_COLUMNS:
        if question in found and reply in found:
            columns = ColumnMapping(
                instruction=question, output=reply, input="input", system="system", split=split
            )
            return RowLayout(schema=Schema.INSTRUCTION, columns=columns)
    if "text" in found:
        return RowLayout(schema=Schema.TEXT, columns=ColumnMapping(text="text", split=split))
    raise RowRefused(
        "",
        "dataset.row.unknown_columns",
        "the file has {columns}; expected {expected}",
        columns=format_column_names(found),
        expected=EXPECTED,
    )


def read_messages(record: Mapping[str, Any], layout: RowLayout) -> tuple[ChatMessage, ...]:
    """The conversation of one row.

    :raises RowRefused: if it is not valid.
    """
    columns = layout.columns
    if layout.schema is Schema.TEXT:
        text = require_text(require_column(record, columns.text), columns.text)
        return (ChatMessage(role=MessageRole.ASSISTANT, content=text),)
    if layout.schema is Schema.PREFERENCE:
        return read_preference(record, _preference_columns(columns))[0]
    if columns.messages:
        sharegpt = layout.schema is Schema.SHAREGPT
        return parse_conversation(
            require_column(record, columns.messages), columns.messages, sharegpt=sharegpt
        )
    question = require_text(require_column(record, columns.instruction), columns.instruction)
    reply = require_text(require_column(record, columns.output), columns.output)
    messages = [
        ChatMessage(role=MessageRole.USER, content=question),
        ChatMessage(role=MessageRole.ASSISTANT, content=reply),
    ]
    if (addition := optional_text(record, columns.input)) is not None:
        messages[0] = ChatMessage(role=MessageRole.USER, content=f"{question}\n{addition}")
    if (system := optional_text(record, columns.system)) is not None:
        messages.insert(0, ChatMessage(role=MessageRole.SYSTEM, content=system))
    return tuple(messages)


def read_rejected_answer(record: Mapping[str, Any], layout: RowLayout) -> str:
    """The rejected answer; empty if the schema is not preference.

    :raises RowRefused: if there is none, or it equals the chosen one.
    """
    if layout.schema is not Schema.PREFERENCE:
        return ""
    return read_preference(record, _preference_columns(layout.columns))[1]


def read_row_split(record: Mapping[str, Any], layout: RowLayout) -> Split | None:
    """The split that the row names; None if the file names none.

    :raises RowRefused: if it is not a known split.
    """
    column = layout.columns.split
    if not column:
        if not layout.mapped and "split" in record:
            raise RowRefused(
                "split",
                "dataset.row.unexpected_split",
                "the row has a split, but the first row has none",
            )
        return None
    value = require_column(record, column)
    split = _SPLITS.get(value.strip().lower()) if isinstance(value, str) else None
    if split is None:
        raise RowRefused(
            column,
            "dataset.row.unknown_split",
            "the split must be train, validation or test, not {value}",
            value=shorten_value(value),
        )
    return split


def _preference_layout(found: Collection[str], split: str) -> RowLayout | None:
    """The layout of preference rows; None if the columns do not have two answers."""
    messages = next((name for name in ("messages", "conversations") if name in found), "")
    if "rejected" not in found or not ("chosen" in found or messages):
        return None
    columns = ColumnMapping(
        instruction="" if messages or "prompt" not in found else "prompt",
        messages=messages,
        system="system",
        output="chosen" if "chosen" in found else "",
        rejected="rejected",
        split=split,
    )
    return RowLayout(schema=Schema.PREFERENCE, columns=columns)


def _preference_columns(columns: ColumnMapping) -> PreferenceColumns:
    return PreferenceColumns(
        prompt=columns.instruction,
        messages=columns.messages,
        system=columns.system,
        chosen=columns.output,
        rejected=columns.rejected,
    )


def _layout_of_mapping(found: Collection[str], mapping: ColumnMapping) -> RowLayout:
    parts = (mapping.instruction, mapping.output, mapping.input, mapping.system, mapping.rejected)
    if mapping.text:
        wrong = any((*parts, mapping.messages))
    else:
        wrong = any(parts[:-1]) if mapping.messages else not all(parts[:2])
    if wrong:
        raise RowRefused(
            "",
            "dataset.mapping.conflicting_columns",
            "map either instruction and output, or only messages, or only text",
        )
    missing = [name for name in mapping.column_names() if name not in found]
    if missing:
        raise RowRefused(
            "",
            "dataset.mapping.columns_missing",
            "the file has {columns}; not found: {missing}",
            columns=format_column_names(found),
            missing=", ".join(missing),
        )
    return RowLayout(schema=_schema_of_mapping(mapping), columns=mapping, mapped=True)


def _schema_of_mapping(mapping: ColumnMapping) -> Schema:
    if mapping.text:
        return Schema.TEXT
    if mapping.rejected:
        return Schema.PREFERENCE
    if not mapping.messages:
        return Schema.INSTRUCTION
    return Schema.SHAREGPT if mapping.messages == "conversations" else Schema.CHAT
