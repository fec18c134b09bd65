"""Conversations as token ids: what a model is shown, and where its answer begins.

Where an answer begins follows from rendering the conversation with and without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from transformers.utils.chat_template_utils import jinja2

from ninefold_runtime.exits import BadInput
from ninefold_runtime.inputs import Message


def prompt_ids(tokenizer: Any, messages: Sequence[Message]) -> list[int]:
    """Token ids up to where the assistant begins to answer.

    :raises BadInput: if the chat template refuses the messages.
    """
    return _rendered(tokenizer, messages, add_generation_prompt=True)


def answered_ids(tokenizer: Any, messages: Sequence[Message]) -> tuple[list[int], int]:
    """Token ids of the whole conversation, and the index at which the last answer begins."""
    whole = _rendered(tokenizer, messages, add_generation_prompt=False)
    prompt = prompt_ids(tokenizer, messages[:-1])
    begin = 0
    while begin < min(len(prompt), len(whole)) and prompt[begin] == whole[begin]:
        begin += 1
    return whole, begin


def _rendered(
    tokenizer: Any, messages: Sequence[Message], *, add_generation_prompt: bool
) -> list[int]:
    try:
        ids = tokenizer.apply_chat_template(
            list(messages), add_generation_prompt=add_generation_prompt, return_dict=False
        )
    except jinja2.exceptions.TemplateError as error:
        raise BadInput(f"the model's chat template refuses the messages: {error}") from error
    return [int(token) for token in ids]
