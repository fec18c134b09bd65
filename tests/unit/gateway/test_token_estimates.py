from __future__ import annotations

from typing import Any

import pytest

from gateway.token_estimates import (
    MESSAGE_TOKENS,
    PART_TOKENS,
    estimate_prompt_tokens,
    estimate_text_tokens,
)

IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 100_000}}


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("a", 1),
        ("The quick brown fox jumps over the lazy dog.", 11),
        ("今天天气很好，我们去公园散步。", 9),
        ("Съешь ещё этих мягких французских булок", 15),
        ("你好 world", 3),
    ],
)
def test_a_text_is_estimated_by_its_script(text: str, tokens: int) -> None:
    assert estimate_text_tokens(text) == tokens


@pytest.mark.parametrize(
    ("payload", "tokens"),
    [
        ({"messages": [{"role": "user", "content": "x" * 400}]}, 100 + 1 + MESSAGE_TOKENS),
        ({"messages": [{"content": [{"type": "text", "text": "x" * 400}]}]}, 101 + MESSAGE_TOKENS),
        # The size of an image does not determine its tokens.
        ({"messages": [{"content": [IMAGE]}]}, PART_TOKENS + 3 + MESSAGE_TOKENS),
        ({"messages": [{}], "tools": [{"description": "x" * 400}]}, 100 + MESSAGE_TOKENS),
        ({"prompt": "x" * 400}, 100),
        ({"prompt": ["x" * 400, "x" * 40]}, 110),
        ({"prompt": [1, 2, 3]}, 3),
        ({"prompt": [[1, 2, 3], [4]]}, 4),
        ({"prompt": "x" * 40_000}, 512),
        ({"prompt": ["x" * 40_000, "x" * 40_000]}, 1024),
        ({"prompt": [1] * 40_000}, 512),
    ],
)
def test_prompt_estimate_is_bounded_by_context_length(payload: dict[str, Any], tokens: int) -> None:
    assert estimate_prompt_tokens(payload, context_length=512) == tokens


def test_without_a_known_context_length_a_prompt_counts_in_full() -> None:
    assert estimate_prompt_tokens({"prompt": "x" * 40_000}, context_length=None) == 10_000
