"""Estimates of tokens where no engine has counted them: at admission, and for calls that were cut off.

The gateway has no tokenizer. An estimate is on the low side of what tokenizers of current models make
of ordinary text, so that it refuses no honest call:

* ASCII: a token for 4 characters;
* other scripts: a token for 5 bytes of UTF-8, which is 1.7 Chinese or 2.5 Cyrillic characters;
* a part that is not text (an image, a sound): :data:`PART_TOKENS`, whatever its size;
* a message: :data:`MESSAGE_TOKENS` for its role;
* tokens that the client sends as numbers: their number.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from typing import Any

#: OpenAI's charge for an image in low detail.
PART_TOKENS = 85
#: The role and its separators in the chat templates of current models.
MESSAGE_TOKENS = 3

_ASCII_BYTES_PER_TOKEN = 4
_OTHER_BYTES_PER_TOKEN = 5
#: Parts of a message that hold something else than text.
_MEDIA = frozenset({"image_url", "input_audio", "audio_url", "video_url", "file"})


def text_tokens(text: str) -> int:
    """The estimate for a text; 0 only for the empty one."""
    if text.isascii():
        return ceil(len(text) / _ASCII_BYTES_PER_TOKEN)
    ascii_bytes = len(text.encode("ascii", "ignore"))
    others = len(text.encode("utf-8", "surrogatepass")) - ascii_bytes
    return ceil(ascii_bytes / _ASCII_BYTES_PER_TOKEN + others / _OTHER_BYTES_PER_TOKEN)


def value_tokens(value: object) -> int:
    """The estimate for all texts inside a JSON value, its media included."""
    tokens = 0
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            tokens += text_tokens(each)
        elif isinstance(each, list):
            waiting.extend(each)
        elif isinstance(each, dict):
            media = _MEDIA & each.keys()
            tokens += PART_TOKENS * len(media)
            waiting.extend(inner for key, inner in each.items() if key not in media)
    return tokens


def prompt_tokens(payload: dict[str, Any], *, context_length: int | None) -> int:
    """The estimate for the prompt of a checked call.

    :param context_length: no prompt counts more, because the engine refuses one that is longer.
    """
    if (messages := payload.get("messages")) is not None:
        tokens = MESSAGE_TOKENS * len(messages)
        tokens += value_tokens([messages, payload.get("tools"), payload.get("functions")])
        return _at_most(tokens, context_length)
    return sum(_at_most(tokens, context_length) for tokens in _prompts(payload.get("prompt")))


def _prompts(prompt: object) -> Iterator[int]:
    """The estimate for each prompt of a completion: a text, tokens, or a list of either."""
    if isinstance(prompt, list) and any(isinstance(each, str | list) for each in prompt):
        for each in prompt:
            yield len(each) if isinstance(each, list) else value_tokens(each)
    else:
        yield len(prompt) if isinstance(prompt, list) else value_tokens(prompt)


def _at_most(tokens: int, limit: int | None) -> int:
    return tokens if limit is None else min(tokens, limit)
