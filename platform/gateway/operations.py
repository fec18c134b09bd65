"""Operations of the gateway: their paths and what their requests and responses look like.

The formats are those of OpenAI's API, except ``rerank`` (Jina's and Cohere's, as vLLM serves it),
``messages`` and ``count_tokens`` (Anthropic's), and ``videos`` (vLLM-Omni's request that is answered with the
video).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from gateway.errors import ErrorFormat


class RouteOperation(StrEnum):
    """An operation of a route."""

    CHAT = "chat"
    COMPLETIONS = "completions"
    RESPONSES = "responses"
    MESSAGES = "messages"
    COUNT_TOKENS = "count_tokens"
    EMBEDDINGS = "embeddings"
    RERANK = "rerank"
    IMAGES = "images"
    TRANSCRIPTIONS = "transcriptions"
    TRANSLATIONS = "translations"
    SPEECH = "speech"
    VIDEOS = "videos"


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationFormat:
    """How requests and responses of an operation look."""

    #: The path at the gateway and at engines.
    path: str
    #: Other paths at the gateway.
    aliases: tuple[str, ...] = ()
    #: Field that every JSON response has; empty if a response is a file.
    response_field: str = ""
    #: The request is ``multipart/form-data``.
    is_form: bool = False
    #: The file that a form must have; empty if files are optional.
    file_field: str = ""
    #: The response can be a stream of events.
    has_stream: bool = False
    #: ``type`` of the events that end a stream; a stream without one ends with ``[DONE]``.
    final_events: frozenset[str] = frozenset()
    errors: ErrorFormat = ErrorFormat.OPENAI
    #: Fields of a request that limit the tokens of its output.
    output_limits: tuple[str, ...] = ()
    #: The model computes, so the tokens of a request are usage and count for the token rate of its key.
    uses_tokens: bool = True


FORMATS: Mapping[RouteOperation, OperationFormat] = {
    RouteOperation.CHAT: OperationFormat(
        path="/v1/chat/completions",
        response_field="choices",
        has_stream=True,
        output_limits=("max_tokens", "max_completion_tokens"),
    ),
    RouteOperation.COMPLETIONS: OperationFormat(
        path="/v1/completions",
        response_field="choices",
        has_stream=True,
        output_limits=("max_tokens",),
    ),
    RouteOperation.RESPONSES: OperationFormat(
        path="/v1/responses",
        response_field="output",
        has_stream=True,
        final_events=frozenset({"response.completed", "response.incomplete", "response.failed"}),
        output_limits=("max_output_tokens",),
    ),
    RouteOperation.MESSAGES: OperationFormat(
        path="/v1/messages",
        response_field="content",
        has_stream=True,
        final_events=frozenset({"message_stop"}),
        errors=ErrorFormat.ANTHROPIC,
        output_limits=("max_tokens",),
    ),
    RouteOperation.COUNT_TOKENS: OperationFormat(
        path="/v1/messages/count_tokens",
        response_field="input_tokens",
        errors=ErrorFormat.ANTHROPIC,
        uses_tokens=False,
    ),
    RouteOperation.EMBEDDINGS: OperationFormat(path="/v1/embeddings", response_field="data"),
    RouteOperation.RERANK: OperationFormat(
        path="/v1/rerank", aliases=("/v2/rerank", "/rerank"), response_field="results"
    ),
    RouteOperation.IMAGES: OperationFormat(path="/v1/images/generations", response_field="data"),
    RouteOperation.TRANSCRIPTIONS: OperationFormat(
        path="/v1/audio/transcriptions",
        response_field="text",
        is_form=True,
        file_field="file",
        has_stream=True,
        final_events=frozenset({"transcript.text.done"}),
    ),
    RouteOperation.TRANSLATIONS: OperationFormat(
        path="/v1/audio/translations", response_field="text", is_form=True, file_field="file"
    ),
    RouteOperation.SPEECH: OperationFormat(
        path="/v1/audio/speech", has_stream=True, final_events=frozenset({"speech.audio.done"})
    ),
    RouteOperation.VIDEOS: OperationFormat(path="/v1/videos/sync", is_form=True),
}

#: Path at the gateway → operation.
OPERATIONS_BY_PATH: Mapping[str, RouteOperation] = {
    path: operation for operation, form in FORMATS.items() for path in (form.path, *form.aliases)
}
