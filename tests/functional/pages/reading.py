"""Pages as whoever opens them reads them."""

from __future__ import annotations

from django.test import Client

#: Headers of a browser whose owner reads Chinese.
CHINESE = {"accept-language": "zh-hans"}


def single_line(text: str) -> str:
    """The text in one line, with one space between two words."""
    return " ".join(text.split())


def text_of(client: Client, path: str) -> str:
    """What a page that is there says, in one line."""
    answer = client.get(path)
    assert answer.status_code == 200, path
    return single_line(answer.text)
