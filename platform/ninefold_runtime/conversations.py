"""Conversations as token ids: where the loss falls, and what the model is shown to answer.

The loss must fall on the assistant's tokens alone. A chat template that marks them (``{% generation %}``)
says where every turn is; for a known family TRL has a marked twin; for any other template only the
last turn is trained, whose place follows from rendering the prompt with and without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ninefold_runtime.exits import BadInput
from ninefold_runtime.inputs import Message


def marks_assistant(tokenizer: Any) -> bool:
    """Whether every assistant turn can be told from the rest."""
    from trl.chat_template_utils import get_training_chat_template, has_generation_markers

    if has_generation_markers(tokenizer.chat_template):
        return True
    try:
        return get_training_chat_template(tokenizer) is not None
    except ValueError:
        return False


def training_row(messages: list[Message], *, every_turn: bool) -> dict[str, list[Message]]:
    """The row in the form in which TRL puts the loss on every assistant turn, or on the last one."""
    if every_turn:
        return {"messages": messages}
    return {"prompt": messages[:-1], "completion": messages[-1:]}


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
    from jinja2 import TemplateError

    try:
        ids = tokenizer.apply_chat_template(
            list(messages), add_generation_prompt=add_generation_prompt, return_dict=False
        )
    except TemplateError as error:
        raise BadInput(f"the model's chat template refuses the messages: {error}") from error
    return [int(token) for token in ids]
