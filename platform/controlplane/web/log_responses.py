"""REST responses with log text, plain or as JSON."""

from __future__ import annotations

import codecs
from collections.abc import Mapping
from typing import Any

from rest_framework import serializers
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

from controlplane.ports.clusters import LogChunk
from controlplane.web.rest import QuerySerializer


class PlainTextRenderer(BaseRenderer):
    """Text as it is. Errors are JSON in any case: see ``controlplane.web.problem_details``."""

    media_type = "text/plain"
    content_type = "text/plain; charset=utf-8"
    format = "txt"
    charset = "utf-8"

    @classmethod
    def is_accepted(cls, request: Request) -> bool:
        """Return whether the client prefers plain text."""
        return bool(request.accepted_renderer.media_type == cls.media_type)

    def render(
        self,
        data: Any,
        accepted_media_type: str | None = None,
        renderer_context: Mapping[str, Any] | None = None,
    ) -> str:
        # Of empty bytes, REST framework would remove the Content-Type.
        return str(data)


class LogQuery(QuerySerializer):
    """Which piece of a log."""

    offset = serializers.IntegerField(
        default=0,
        min_value=-(2**62),
        max_value=2**62,
        help_text="Offset in bytes from the start; negative: from the end.",
    )
    limit = serializers.IntegerField(
        default=65536,
        min_value=1024,
        max_value=1048576,
        help_text="Maximum size of this response in bytes.",
    )
    format = serializers.ChoiceField(
        choices=["json", "txt"],
        required=False,
        help_text="`txt`: the text alone, as `Accept: text/plain`.",
    )


class LogSerializer(serializers.Serializer[Any]):
    """A piece of a log."""

    text = serializers.CharField()
    next_offset = serializers.IntegerField(help_text="Offset of the next request.")
    complete = serializers.BooleanField(help_text="Whether the log is complete.")


def decode_chunk(chunk: LogChunk, *, tail: bool) -> tuple[str, int]:
    """Return the whole characters of the chunk, and the offset of the next one.

    ``tail`` says that the chunk may begin inside of a character.
    """
    content = chunk.content
    if tail:
        cut = next((at for at, byte in enumerate(content[:4]) if byte & 0xC0 != 0x80), 0)
        content = content[cut:]
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = decoder.decode(content, final=chunk.complete)
    pending = decoder.getstate()[0]
    return text, chunk.next_offset - len(pending)
