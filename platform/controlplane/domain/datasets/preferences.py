"""Two answers to one prompt, in the forms in which people publish them.

::

    prompt      text, or messages that end with the user          chosen, rejected   text, or one message
    messages    messages that end with the user                   chosen, rejected   text, or one message
    messages    a conversation, whose last answer was chosen      rejected           text, or one message
    (nothing)                                                     chosen, rejected   conversations that differ
                                                                                     in their last message
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from controlplane.domain.datasets.conversations import (
    Message,
    Role,
    RowRefused,
    conversation,
    message_of,
    optional_text,
    text_of,
    value_of,
)
from controlplane.domain.datasets.formats import kind_in_words


@dataclass(frozen=True, slots=True, kw_only=True)
class PreferenceColumns:
    """Which column plays which part; empty means that there is none."""

    prompt: str
    messages: str
    system: str
    chosen: str
    rejected: str


def read_preference(
    record: Mapping[str, Any], columns: PreferenceColumns
) -> tuple[tuple[Message, ...], str]:
    """The conversation that ends with the chosen answer, and the rejected answer.

    :raises RowRefused: if the row has no two answers to one prompt, or both are the same.
    """
    if columns.prompt or columns.messages:
        chosen, rejected = _beside_prompt(record, columns)
    else:
        chosen, rejected = _whole(record, columns)
    if chosen[-1].content == rejected:
        raise RowRefused("is the chosen answer; nothing is preferred", column=columns.rejected)
    return chosen, rejected


def _beside_prompt(
    record: Mapping[str, Any], columns: PreferenceColumns
) -> tuple[tuple[Message, ...], str]:
    rejected = _answer(value_of(record, columns.rejected), columns.rejected)
    place = columns.messages or columns.prompt
    before = value_of(record, place)
    if columns.prompt and isinstance(before, str):
        before = [{"role": Role.USER.value, "content": text_of(before, place)}]
        if (system := optional_text(record, columns.system)) is not None:
            before.insert(0, {"role": Role.SYSTEM.value, "content": system})
    if columns.chosen:
        if not isinstance(before, list):
            message = f"must be text or a list of messages, not {kind_in_words(before)}"
            raise RowRefused(message, column=place)
        answer = _answer(value_of(record, columns.chosen), columns.chosen)
        names = ("from", "value") if _is_sharegpt(before) else ("role", "content")
        before = [*before, dict(zip(names, (Role.ASSISTANT.value, answer), strict=True))]
    return conversation(before, place, sharegpt=_is_sharegpt(before)), rejected


def _whole(
    record: Mapping[str, Any], columns: PreferenceColumns
) -> tuple[tuple[Message, ...], str]:
    talks = []
    for column in (columns.chosen, columns.rejected):
        value = value_of(record, column)
        if isinstance(value, str):
            raise RowRefused("has no prompt; add a column prompt", column=column)
        talks.append(conversation(value, column, sharegpt=_is_sharegpt(value)))
    chosen, rejected = talks
    if chosen[:-1] != rejected[:-1]:
        raise RowRefused("answers another prompt than the chosen one", column=columns.rejected)
    return chosen, rejected[-1].content


def _answer(value: object, column: str) -> str:
    """Text as it is; of one message, or a list of one, its content."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if not isinstance(value, dict):
        return text_of(value, column)
    message = message_of(value, column, sharegpt="from" in value)
    if message.role is not Role.ASSISTANT:
        raise RowRefused(f"must be the assistant's, not the {message.role}'s", column=column)
    return message.content


def _is_sharegpt(value: object) -> bool:
    first = value[0] if isinstance(value, list) and value else None
    return isinstance(first, dict) and "from" in first
