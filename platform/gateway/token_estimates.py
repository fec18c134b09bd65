"""Estimates of the tokens of requests and responses.

Tokens are estimated where no engine has counted them: at admission, and for requests that were cut off. The
gateway has no tokenizer. An estimate is on the low side of what tokenizers of current models make of ordinary
text, so that no valid request is refused:

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

#: Tokens that OpenAI charges for an image in low detail.
PART_TOKENS = 85
#: The role and its separators in the chat templates of current models.
MESSAGE_TOKENS = 3

_ASCII_BYTES_PER_TOKEN = 4
_OTHER_BYTES_PER_TOKEN = 5
#: Parts of a message that are not text.
_MEDIA = frozenset({"image_url", "input_audio", "audio_url", "video_url", "file"})


def estimate_text_tokens(text: str) -> int:
    """The estimate for a text; 0 only for an empty one."""
    if text.isascii():
        return ceil(len(text) / _ASCII_BYTES_PER_TOKEN)
    ascii_bytes = len(text.encode("ascii", "ignore"))
    others = len(text.encode("utf-8", "surrogatepass")) - ascii_bytes
    return ceil(ascii_bytes / _ASCII_BYTES_PER_TOKEN + others / _OTHER_BYTES_PER_TOKEN)


def estimate_value_tokens(value: object) -> int:
    """The estimate for all texts inside a JSON value, its media included."""
    tokens = 0
    pending = [value]
    while pending:
        each = pending.pop()
        if isinstance(each, str):
            tokens += estimate_text_tokens(each)
        elif isinstance(each, list):
            pending.extend(each)
        elif isinstance(each, dict):
            media = _MEDIA & each.keys()
            tokens += PART_TOKENS * len(media)
            pending.extend(inner for key, inner in each.items() if key not in media)
    return tokens


def estimate_prompt_tokens(payload: dict[str, Any], *, context_length: int | None) -> int:
    """The estimate for the input of a validated request; 0 for a file.

    :param context_length: the upper bound of each input, because the engine refuses a longer one.
    """
    if (messages := payload.get("messages")) is not None:
        others = [payload.get(name) for name in ("system", "tools", "functions")]
        tokens = MESSAGE_TOKENS * len(messages) + estimate_value_tokens([messages, others])
        return _limit_token_count(tokens, context_length)
    return sum(_limit_token_count(tokens, context_length) for tokens in _input_estimates(payload))


def _input_estimates(payload: dict[str, Any]) -> Iterator[int]:
    """The estimate for each separate input of a request."""
    documents = payload.get("documents")
    if isinstance(documents, list):
        query = estimate_value_tokens(payload.get("query"))
        yield from (query + estimate_value_tokens(document) for document in documents)
        return
    given = payload.get("prompt", payload.get("input"))
    if not isinstance(given, list):
        yield estimate_value_tokens([given, payload.get("instructions")])
    elif any(isinstance(each, dict) for each in given):
        # Items of one response.
        yield estimate_value_tokens([given, payload.get("instructions"), payload.get("tools")])
    elif any(isinstance(each, str | list) for each in given):
        for each in given:
            yield len(each) if isinstance(each, list) else estimate_value_tokens(each)
    else:
        yield len(given)


def _limit_token_count(tokens: int, limit: int | None) -> int:
    return tokens if limit is None else min(tokens, limit)
