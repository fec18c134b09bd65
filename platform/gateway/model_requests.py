"""Requests to models: parsing and validation. What only the engine can judge is left to it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from controlplane.domain.common.reasons import Reason, ReasonedValueError
from gateway.engine_responses import compact_json
from gateway.errors import ApiError, bad_request
from gateway.multipart_forms import FormPart, encode_form, parse_form
from gateway.operations import FORMATS, OperationFormat, RouteOperation
from gateway.snapshots import SnapshotRoute

#: Values that an engine honours even if it ignores the parameter.
_DEFAULT_VALUES: Mapping[str, object] = {"text.format": {"type": "text"}}
#: Formats of a transcription that are JSON; the others are texts.
_JSON_TRANSCRIPTS = frozenset({"json", "verbose_json", "diarized_json"})


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamBody:
    """The body of a request to an engine."""

    content: bytes
    content_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    operation: RouteOperation
    #: The public model name in the request.
    model: str
    stream: bool
    #: The client gets the usage in a stream.
    include_usage: bool
    #: The JSON body, or the fields of a form without its files.
    payload: dict[str, Any]
    #: Fields and files of a form, in their order.
    form: tuple[FormPart, ...] = ()

    @property
    def format(self) -> OperationFormat:
        return FORMATS[self.operation]

    @property
    def is_answered_with_json(self) -> bool:
        """Whether a response that is no stream is a JSON object."""
        if self.form and self.format.response_field:
            return self.payload.get("response_format", "json") in _JSON_TRANSCRIPTS
        return bool(self.format.response_field)

    def upstream_body(self, *, model: str) -> UpstreamBody:
        """The body for the engine, with the engine's name of the model.

        A stream always reports its usage to the gateway, whether or not the client requests it.

        :raises ApiError: 400 if the body is nested too deeply.
        """
        if self.form:
            content, content_type = encode_form(self.form, model=model)
            return UpstreamBody(content=content, content_type=content_type)
        payload = {**self.payload, "model": model}
        if self.stream and self.operation in _STREAM_OPTIONS:
            payload["stream_options"] = {
                **(payload.get("stream_options") or {}),
                "include_usage": True,
            }
        try:
            content = compact_json(payload)
        except RecursionError:
            # A parser's limit is a little higher than an encoder's.
            raise _nested_too_deeply_error() from None
        return UpstreamBody(content=content, content_type="application/json")


#: Operations that report usage in a stream only if ``stream_options`` requests it.
_STREAM_OPTIONS = frozenset({RouteOperation.CHAT, RouteOperation.COMPLETIONS})

#: Lists and objects of a request; an empty one of three bytes takes 64 bytes in memory.
MAX_CONTAINERS = 200_000
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)

#: An escape that may be half of a surrogate pair; bodies without one need no further check.
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def _reject_nan_and_infinity(name: str) -> NoReturn:
    raise ReasonedValueError(
        "gateway.json.constant_not_allowed", "{constant} is not a JSON value", constant=name
    )


# json.loads builds a decoder at each call that passes an option; this one is reused.
_DECODER = json.JSONDecoder(parse_constant=_reject_nan_and_infinity)


def parse_json_request(body: bytes, *, operation: RouteOperation) -> ModelRequest:
    """The request in a JSON body.

    :raises ApiError: 400 if it is not a JSON object or lacks what the operation needs; the error
        names the position or the parameter.
    """
    payload = _parse_object(body)
    if _SURROGATE.search(body):
        _check_encodable_strings(payload)
    model = _model_name(payload)
    stream = payload.get("stream")
    if not isinstance(stream, bool | None):
        raise bad_request(
            "gateway.stream.not_boolean",
            "'stream' must be true or false; it is {type}.",
            type=_type_name(stream),
            param="stream",
            code="invalid_type",
        )
    _check_stream(operation, stream=bool(stream))
    _CHECKS[operation](payload)
    if operation is RouteOperation.SPEECH:
        stream = _is_stream_of_events(payload)
    return ModelRequest(
        operation=operation,
        model=model,
        stream=bool(stream),
        include_usage=(
            operation not in _STREAM_OPTIONS or _includes_stream_usage(payload, stream=bool(stream))
        ),
        payload=payload,
    )


async def parse_form_request(
    body: bytes, *, content_type: str, operation: RouteOperation
) -> ModelRequest:
    """The request in a ``multipart/form-data`` body.

    :raises ApiError: 400 if it is no such form or lacks the model, or the file or prompt of the operation.
    """
    form = await parse_form(body, content_type=content_type)
    payload: dict[str, Any] = {part.name: part.text() for part in form if not part.filename}
    model = _model_name(payload)
    stream = payload.get("stream", "false").lower()
    if stream not in ("true", "false"):
        raise bad_request(
            "gateway.stream.not_boolean",
            "'stream' must be true or false; it is {type}.",
            type=repr(stream[:100]),
            param="stream",
            code="invalid_type",
        )
    _check_stream(operation, stream=stream == "true")
    if operation in _CHECKS:
        _CHECKS[operation](payload)
    required = FORMATS[operation].file_field
    if required and not any(part.name == required and part.filename for part in form):
        raise bad_request(
            "gateway.file.missing",
            "The form must have the audio in a file named 'file'.",
            param=required,
            code="missing_required_parameter",
        )
    return ModelRequest(
        operation=operation,
        model=model,
        stream=stream == "true",
        include_usage=True,
        payload=payload,
        form=form,
    )


def _model_name(payload: Mapping[str, Any]) -> str:
    model = payload.get("model")
    if not isinstance(model, str) or not model:
        raise bad_request(
            "gateway.model.missing",
            "The body must name a model that GET /v1/models lists: {'model': '…'}.",
            param="model",
            code="missing_required_parameter" if model is None else "invalid_type",
        )
    return model


def _check_stream(operation: RouteOperation, *, stream: bool) -> None:
    if stream and not FORMATS[operation].has_stream:
        raise bad_request(
            "gateway.stream.not_supported",
            "'stream' must be false: {operation} has no streams.",
            operation=operation.value,
            param="stream",
            code="unsupported_value",
        )


def _nested_too_deeply_error() -> ApiError:
    return bad_request(
        "gateway.body.nested_too_deeply", "The body is nested too deeply.", code="invalid_json"
    )


def _check_containers(body: bytes) -> None:
    """Refuse a body whose lists and objects would take many times its size in memory."""
    if body.count(b"[") + body.count(b"{") <= MAX_CONTAINERS:
        return
    bare = _STRING.sub(b"", body)
    found = bare.count(b"[") + bare.count(b"{")
    if found > MAX_CONTAINERS:
        raise bad_request(
            "gateway.body.too_many_containers",
            "The body has {count} lists and objects; the limit is {limit}.",
            count=found,
            limit=MAX_CONTAINERS,
            code="request_too_large",
            status=413,
        )


def _parse_object(body: bytes) -> dict[str, Any]:
    _check_containers(body)
    try:
        payload = _DECODER.decode(body.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise bad_request(
            "gateway.body.not_utf8",
            "The body is not UTF-8: byte {position} is 0x{byte}.",
            position=error.start,
            byte=f"{body[error.start]:02x}",
            code="invalid_json",
        ) from None
    except json.JSONDecodeError as error:
        raise bad_request(
            "gateway.body.json_syntax_error",
            "The body is not JSON: {error} at line {line}, column {column} (character {position}).",
            error=error.msg,
            line=error.lineno,
            column=error.colno,
            position=error.pos,
            code="invalid_json",
        ) from None
    except RecursionError:
        raise _nested_too_deeply_error() from None
    except ValueError as error:
        raise bad_request(
            "gateway.body.not_json",
            "The body is not JSON: {error}.",
            error=str(error),
            code="invalid_json",
        ) from None
    if not isinstance(payload, dict):
        raise bad_request(
            "gateway.body.not_an_object",
            "The body must be a JSON object; it is {type}.",
            type=_type_name(payload),
            code="invalid_json",
        )
    return payload


@dataclass(frozen=True, slots=True)
class _JsonPath:
    """The place of a value. As a text it would be copied for each value: gigabytes, below a long key."""

    parent: _JsonPath | None = None
    key: str | int = ""

    def __str__(self) -> str:
        """Return the path such as ``messages[0].content``."""
        keys: list[str | int] = []
        place: _JsonPath | None = self
        while place is not None and place.parent is not None:
            keys.append(place.key)
            place = place.parent
        text = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in reversed(keys))
        return text.removeprefix(".")


def _check_encodable_strings(payload: dict[str, Any]) -> None:
    """Refuse strings that cannot be encoded: JSON can escape half of a surrogate pair."""
    try:
        # Many times faster than the walk that finds the place.
        json.dumps(payload, ensure_ascii=False, check_circular=False).encode()
        return
    except RecursionError:
        raise _nested_too_deeply_error() from None
    except UnicodeEncodeError:
        pass
    for place, text in _strings_with_paths(payload):
        try:
            text.encode()
        except UnicodeEncodeError as error:
            path = str(place).encode(errors="replace").decode()[:200] or "the body"
            raise bad_request(
                Reason(
                    "gateway.text.lone_surrogate",
                    "{path} has the lone surrogate \\u{code} at character {position}; a "
                    "surrogate must be one of a pair, as in \\ud83d\\ude00.",
                    path=repr(path),
                    code=f"{ord(text[error.start]):04x}",
                    position=error.start,
                ),
                param=path,
                code="invalid_unicode",
            ) from None


def _strings_with_paths(payload: dict[str, Any]) -> Iterator[tuple[_JsonPath, str]]:
    """Every string with its path. A key has the path of its object."""
    pending: list[tuple[_JsonPath, object]] = [(_JsonPath(), payload)]
    while pending:
        path, value = pending.pop()
        if isinstance(value, str):
            yield path, value
        elif isinstance(value, list):
            pending.extend((_JsonPath(path, index), each) for index, each in enumerate(value))
        elif isinstance(value, dict):
            for key, each in value.items():
                yield path, key
                pending.append((_JsonPath(path, key), each))


def _check_messages(payload: Mapping[str, Any]) -> None:
    messages = payload.get("messages")
    if not isinstance(messages, list) or not messages:
        raise bad_request(
            "gateway.messages.missing",
            "'messages' must be a list of at least one message: [{'role': 'user', "
            "'content': '…'}].",
            param="messages",
            code="missing_required_parameter" if messages is None else "invalid_type",
        )
    for index, message in enumerate(messages):
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise bad_request(
                "gateway.messages.role_missing",
                "'messages[{index}]' must be an object with a 'role'.",
                index=index,
                param=f"messages[{index}]",
                code="invalid_type",
            )


def _check_prompt(payload: Mapping[str, Any]) -> None:
    prompt = payload.get("prompt")
    if not isinstance(prompt, str | list) or prompt == []:
        raise bad_request(
            "gateway.prompt.invalid",
            "'prompt' must be a string, or a list of strings or tokens.",
            param="prompt",
            code="missing_required_parameter" if prompt is None else "invalid_type",
        )


def _check_response_input(payload: Mapping[str, Any]) -> None:
    """Nothing is stored: a request has all of its input, and is answered at once."""
    for name in ("previous_response_id", "conversation", "background", "prompt"):
        if payload.get(name):
            raise bad_request(
                "gateway.responses.not_stored",
                "'{field}' is not supported, because nothing is stored between requests; "
                "send the whole input.",
                field=name,
                param=name,
                code="unsupported_parameter",
            )
    given = payload.get("input")
    if not isinstance(given, str | list) or not given:
        raise _missing_or_invalid(
            "gateway.input.invalid",
            "'input' must be a string or a list of items.",
            param="input",
            value=given,
        )
    _check_moderation(payload)


def _check_chat(payload: Mapping[str, Any]) -> None:
    _check_messages(payload)
    _check_moderation(payload)


def _check_moderation(payload: Mapping[str, Any]) -> None:
    """Refuse moderation that blocks: engines ignore it, and a client would believe that it has it.

    Moderation that only scores is passed on; the response has no scores.
    """
    moderation = payload.get("moderation")
    policy = moderation.get("policy") if isinstance(moderation, dict) else moderation
    for side in policy.values() if isinstance(policy, dict) else (policy,):
        if side is not None and not (isinstance(side, dict) and side.get("mode") == "score"):
            raise bad_request(
                "gateway.moderation.not_supported",
                "'moderation' that blocks is not supported, because nothing is moderated; leave "
                "it out, or set the modes of its policy to 'score'.",
                param="moderation",
                code="unsupported_parameter",
            )


def _check_embedding_input(payload: Mapping[str, Any]) -> None:
    given = payload.get("input")
    if not isinstance(given, str | list) or not given:
        raise _missing_or_invalid(
            "gateway.input.not_texts",
            "'input' must be a string, or a list of strings or tokens; none may be empty.",
            param="input",
            value=given,
        )


def _check_documents(payload: Mapping[str, Any]) -> None:
    query, documents = payload.get("query"), payload.get("documents")
    if not isinstance(query, str) or not query:
        raise _missing_or_invalid(
            "gateway.query.invalid", "'query' must be a string.", param="query", value=query
        )
    if not isinstance(documents, list) or not documents:
        raise _missing_or_invalid(
            "gateway.documents.invalid",
            "'documents' must be a list of at least one text.",
            param="documents",
            value=documents,
        )


def _check_text_prompt(payload: Mapping[str, Any]) -> None:
    prompt = payload.get("prompt")
    if not isinstance(prompt, str) or not prompt:
        raise _missing_or_invalid(
            "gateway.prompt.not_a_string",
            "'prompt' must be a string.",
            param="prompt",
            value=prompt,
        )


def _check_speech_input(payload: Mapping[str, Any]) -> None:
    given = payload.get("input")
    if not isinstance(given, str) or not given:
        raise _missing_or_invalid(
            "gateway.input.not_a_string", "'input' must be a string.", param="input", value=given
        )


def _is_stream_of_events(payload: Mapping[str, Any]) -> bool:
    """Whether speech is answered with events; otherwise it is a file, which engines may send in parts.

    The official clients send ``stream_format`` alone, and vLLM-Omni reads both.
    """
    stream_format = payload.get("stream_format")
    return stream_format != "audio" and (stream_format == "sse" or payload.get("stream") is True)


def _missing_or_invalid(message: str, template: str, /, *, param: str, value: object) -> ApiError:
    code = "missing_required_parameter" if value is None else "invalid_type"
    return bad_request(message, template, param=param, code=code)


_CHECKS: Mapping[RouteOperation, Callable[[Mapping[str, Any]], None]] = {
    RouteOperation.CHAT: _check_chat,
    RouteOperation.COMPLETIONS: _check_prompt,
    RouteOperation.RESPONSES: _check_response_input,
    RouteOperation.MESSAGES: _check_messages,
    RouteOperation.COUNT_TOKENS: _check_messages,
    RouteOperation.EMBEDDINGS: _check_embedding_input,
    RouteOperation.RERANK: _check_documents,
    RouteOperation.IMAGES: _check_text_prompt,
    RouteOperation.SPEECH: _check_speech_input,
    RouteOperation.VIDEOS: _check_text_prompt,
}


def _includes_stream_usage(payload: dict[str, Any], *, stream: bool) -> bool:
    options = payload.get("stream_options")
    if options is None:
        return False
    if not isinstance(options, dict) or not stream:
        raise bad_request(
            "gateway.stream_options.invalid",
            "'stream_options' must be an object, and requires 'stream': true.",
            param="stream_options",
            code="invalid_type",
        )
    return options.get("include_usage") is True


def _is_set(payload: Mapping[str, Any], name: str) -> bool:
    """Whether the parameter (``text.format``) has a value that is not its default."""
    value: Any = payload
    for part in name.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value is not None and value != _DEFAULT_VALUES.get(name)


def check_supported(request: ModelRequest, route: SnapshotRoute) -> None:
    """Refuse a request that the route does not support.

    The length of the prompt is left to the engine, which has the tokenizer.

    :raises ApiError: 400 if the route lacks the operation, if its engine ignores a parameter of the request, or
        if its context is shorter than the requested output.
    """
    if request.operation not in route.operations:
        offered = ", ".join(sorted(route.operations)) or "nothing"
        raise bad_request(
            "gateway.operation.not_supported",
            "The model {model} does not support {operation}; it supports {operations}.",
            model=repr(route.name),
            operation=request.operation.value,
            operations=offered,
            param="model",
            code="unsupported_operation",
        )
    for name, version in route.ignored_parameters.get(request.operation, {}).items():
        if _is_set(request.payload, name):
            raise bad_request(
                "gateway.parameter.ignored_by_engine",
                "'{field}' is not supported by {model}: its engine reads it from version "
                "{version} on, and an earlier one serves the model. Omit '{field}'.",
                field=name,
                model=repr(route.name),
                version=version,
                param=name,
                code="unsupported_parameter",
            )
    for name in request.format.output_limits:
        length = request.payload.get(name)
        if length is None:
            continue
        # Evaluation harnesses ask for the probabilities of the prompt alone.
        least = (
            0
            if request.operation is RouteOperation.COMPLETIONS and request.payload.get("echo")
            else 1
        )
        if not isinstance(length, int) or isinstance(length, bool) or length < least:
            raise bad_request(
                "gateway.max_tokens.invalid",
                "'{field}' must be a whole number of at least {least}.",
                field=name,
                least=least,
                param=name,
                code="invalid_value",
            )
        if route.context_length is not None and length > route.context_length:
            raise bad_request(
                "gateway.max_tokens.context_exceeded",
                "'{field}' is {value}; the context length of {model}, for input and "
                "output together, is {limit} tokens.",
                field=name,
                value=length,
                model=repr(route.name),
                limit=route.context_length,
                param=name,
                code="context_length_exceeded",
            )


def _type_name(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "a truth value"}
    return "null" if value is None else names.get(type(value), "a number")
