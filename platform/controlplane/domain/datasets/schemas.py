"""From a record to a conversation.

Five schemas are told apart by the columns of the first row, and the whole file must keep to it:

- *instruction*: a question and an answer in two columns (``instruction``/``output``,
  ``prompt``/``response``, ``prompt``/``completion``, ``question``/``answer``), with an optional
  ``input``, which follows the question on a line of its own, and an optional ``system``;
- *chat*: ``messages``, a list of ``{"role", "content"}``;
- *ShareGPT*: ``conversations``, a list of ``{"from", "value"}``;
- *preference*: two answers to one prompt, ``chosen`` and ``rejected``, each text or the one message of an
  assistant, beside a ``prompt`` (text or messages), ``messages`` or ``conversations``; without any of these
  both are whole conversations that differ in their last message;
- *text*: ``text``, to be read on from any word.

A conversation is an optional system message, then user and assistant in turn, the assistant last. The answer
that was chosen ends the conversation of a preference, the rejected one stands beside it; a text is a
conversation in which only the assistant speaks. Contents are text with something in it. In a CSV file lists
are written as JSON.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any

from controlplane.domain.datasets.conversations import (
    Message,
    Role,
    RowRefused,
    conversation,
    listed,
    optional_text,
    shown,
    text_of,
    value_of,
)
from controlplane.domain.datasets.preferences import PreferenceColumns, read_preference
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
    """Which column plays which part, for files that use other names. Empty means "none".

    Either ``instruction`` and ``output`` are named, or ``messages``, or ``text``; ``rejected`` beside
    ``output`` makes it a preference.
    """

    instruction: str = ""
    input: str = ""
    output: str = ""
    system: str = ""
    messages: str = ""
    split: str = ""
    #: The answer that was liked less than ``output``.
    rejected: str = ""
    text: str = ""

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
    if (preference := _preference(found, split)) is not None:
        return preference
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
    if "text" in found:
        return Layout(schema=Schema.TEXT, columns=ColumnMapping(text="text", split=split))
    raise RowRefused(f"found {listed(found)}; expected {EXPECTED}")


def read(record: Mapping[str, Any], layout: Layout) -> tuple[Message, ...]:
    """The conversation of one row.

    :raises RowRefused: if it is none.
    """
    columns = layout.columns
    if layout.schema is Schema.TEXT:
        text = text_of(value_of(record, columns.text), columns.text)
        return (Message(role=Role.ASSISTANT, content=text),)
    if layout.schema is Schema.PREFERENCE:
        return read_preference(record, _preference_columns(columns))[0]
    if columns.messages:
        sharegpt = layout.schema is Schema.SHAREGPT
        return conversation(value_of(record, columns.messages), columns.messages, sharegpt=sharegpt)
    question = text_of(value_of(record, columns.instruction), columns.instruction)
    reply = text_of(value_of(record, columns.output), columns.output)
    messages = [
        Message(role=Role.USER, content=question),
        Message(role=Role.ASSISTANT, content=reply),
    ]
    if (addition := optional_text(record, columns.input)) is not None:
        messages[0] = Message(role=Role.USER, content=f"{question}\n{addition}")
    if (system := optional_text(record, columns.system)) is not None:
        messages.insert(0, Message(role=Role.SYSTEM, content=system))
    return tuple(messages)


def read_rejected(record: Mapping[str, Any], layout: Layout) -> str:
    """The answer that was liked less; empty where rows are no preferences.

    :raises RowRefused: if there is none, or it is the one that was chosen.
    """
    if layout.schema is not Schema.PREFERENCE:
        return ""
    return read_preference(record, _preference_columns(layout.columns))[1]


def read_split(record: Mapping[str, Any], layout: Layout) -> Split | None:
    """The split that the row names; None where the file names none.

    :raises RowRefused: if it names no known split.
    """
    column = layout.columns.split
    if not column:
        if not layout.mapped and "split" in record:
            raise RowRefused("names a split, and the first row does not", column="split")
        return None
    value = value_of(record, column)
    split = _SPLITS.get(value.strip().lower()) if isinstance(value, str) else None
    if split is None:
        message = f"must be train, validation or test, not {shown(value)}"
        raise RowRefused(message, column=column)
    return split


def _preference(found: Collection[str], split: str) -> Layout | None:
    """The layout of rows with two answers; None where there are not two."""
    talk = next((name for name in ("messages", "conversations") if name in found), "")
    if "rejected" not in found or not ("chosen" in found or talk):
        return None
    columns = ColumnMapping(
        instruction="" if talk or "prompt" not in found else "prompt",
        messages=talk,
        system="system",
        output="chosen" if "chosen" in found else "",
        rejected="rejected",
        split=split,
    )
    return Layout(schema=Schema.PREFERENCE, columns=columns)


def _preference_columns(columns: ColumnMapping) -> PreferenceColumns:
    return PreferenceColumns(
        prompt=columns.instruction,
        messages=columns.messages,
        system=columns.system,
        chosen=columns.output,
        rejected=columns.rejected,
    )


def _mapped(found: Collection[str], mapping: ColumnMapping) -> Layout:
    parts = (mapping.instruction, mapping.output, mapping.input, mapping.system, mapping.rejected)
    if mapping.text:
        wrong = any((*parts, mapping.messages))
    else:
        wrong = any(parts[:-1]) if mapping.messages else not all(parts[:2])
    if wrong:
        raise RowRefused("map either instruction and output, or messages alone, or text alone")
    missing = [name for name in mapping.names() if name not in found]
    if missing:
        raise RowRefused(f"found {listed(found)}; expected also {', '.join(missing)}")
    return Layout(schema=_schema(mapping), columns=mapping, mapped=True)


def _schema(mapping: ColumnMapping) -> Schema:
    if mapping.text:
        return Schema.TEXT
    if mapping.rejected:
        return Schema.PREFERENCE
    if not mapping.messages:
        return Schema.INSTRUCTION
    return Schema.SHAREGPT if mapping.messages == "conversations" else Schema.CHAT
