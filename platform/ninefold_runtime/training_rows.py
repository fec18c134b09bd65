"""Rows in the form in which TRL's trainers read them, one function for each objective.

Where the loss falls in ``sft``: on what the assistant says, and on nothing else. A chat template that marks the
assistant's turns (``{% generation %}``) says where each of them is; for a known family TRL has a marked twin
of the template; with any other only the last answer of a conversation is trained, whose place follows from
rendering the prompt with and without it.
"""

from __future__ import annotations

from typing import Any

from trl.chat_template_utils import get_training_chat_template, has_generation_markers

from ninefold_runtime.inputs import Message, Preference

Row = dict[str, Any]


def marks_assistant(tokenizer: Any) -> bool:
    """Whether every assistant turn can be told from the rest."""
    if has_generation_markers(tokenizer.chat_template):
        return True
    try:
        return get_training_chat_template(tokenizer) is not None
    except ValueError:
        return False


def answer_row(messages: list[Message], *, every_turn: bool) -> Row:
    """The row in the form in which TRL puts the loss on every assistant turn, or on the last one."""
    if every_turn:
        return {"messages": messages}
    return {"prompt": messages[:-1], "completion": messages[-1:]}


def text_row(messages: list[Message]) -> Row:
    """What was said, as running text: a text is a row in which only the assistant speaks."""
    return {"text": "\n\n".join(message["content"] for message in messages)}


def preference_row(preference: Preference) -> Row:
    """Two answers to the same prompt."""
    return {
        "prompt": preference.messages[:-1],
        "chosen": preference.messages[-1:],
        "rejected": [{"role": "assistant", "content": preference.rejected}],
    }


def prompt_row(messages: list[Message]) -> Row:
    """A prompt, and the answer that others are compared with."""
    return {"prompt": messages[:-1], "reference": messages[-1]["content"]}
