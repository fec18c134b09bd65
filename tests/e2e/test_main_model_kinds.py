"""A model of each kind: imported from a folder, deployed with defaults, and used through the gateway."""

from __future__ import annotations

import json
import subprocess
from base64 import b64decode
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from openai import OpenAI

from controlplane.adapters.engines.transformers.engine import TransformersEngine
from tests.e2e.main_job import talking_client
from tests.e2e.product import ROOT, Product
from tests.e2e.rest_client import RestClient
from tests.e2e.waiting import wait_until

pytestmark = [pytest.mark.product, pytest.mark.engine]

#: A guard against hanging, in seconds.
WITHIN = 900.0
KINDS = {
    "text": ["chat", "completions", "responses"],
    "embedding": ["embeddings"],
    "reranking": ["rerank"],
    "transcription": ["transcriptions"],
    "images": ["images"],
}


@pytest.fixture(scope="module")
def expected(model_root: Path) -> Any:
    """What the libraries themselves compute for the models below the product's model root."""
    name = TransformersEngine().environment().name
    python = ROOT / "var" / "engines" / name / "bin" / "python"
    if not python.exists():
        pytest.skip(f"no engine environment {name}: make engine creates it")
    subprocess.run(
        [python, ROOT / "tests" / "engine" / "build_served_models.py", model_root, *KINDS],
        env={"PYTHONPATH": str(ROOT / "platform"), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"},
        check=True,
        capture_output=True,
        timeout=WITHIN,
    )
    return json.loads((model_root / "expected.json").read_text(encoding="utf-8"))


def test_each_kind_is_deployed_with_defaults_and_answers_through_the_gateway(
    product: Product, client: RestClient, model_root: Path, expected: Any
) -> None:
    """One after the other, because other tests use the product's cards too."""
    team = client.get("teams")["results"][0]["uid"]
    key = client.post("keys", {"team": team, "name": "kinds of models"})["text"]
    checks: dict[str, Callable[[OpenAI, str], None]] = {
        "text": partial(_check_tool_calls, expected["text"]),
        "embedding": partial(_check_embeddings, expected["embedding"]),
        "reranking": partial(_check_reranking, expected["reranking"]),
        "transcription": partial(_check_transcription, model_root / "tone.wav"),
        "images": _check_images,
    }
    for kind, check in checks.items():
        deployment = _deploy(client, team=team, kind=kind, folder=model_root / kind)
        path = f"deployments/{deployment['uid']}"
        assert _until(client, path, "ready")["revisions"][0]["operations"] == KINDS[kind]
        with talking_client(product.gateway, key=key, model=deployment["name"]) as api:
            check(api, deployment["name"])
        client.post(f"{path}/stop")
        _until(client, path, "stopped")


def _check_tool_calls(expected: Mapping[str, Any], api: OpenAI, model: str) -> None:
    asked: dict[str, Any] = {"model": model, "tools": expected["tools"], "temperature": 0}
    message = api.chat.completions.create(**asked, messages=expected["messages"]).choices[0].message
    (call,) = message.tool_calls or []
    assert call.type == "function"
    assert (call.function.name, json.loads(call.function.arguments)) == (
        "get_weather",
        {"city": "西宁"},
    )
    result = {"role": "tool", "tool_call_id": call.id, "content": "sunny"}
    conversation = [*expected["messages"], message.model_dump(exclude_none=True), result]
    after = api.chat.completions.create(**asked | {"messages": conversation, "max_tokens": 4})
    assert after.usage is not None
    (tool,) = expected["tools"]
    flat: Any = {"type": "function", **tool["function"]}
    response = api.responses.create(
        model=model, input=expected["messages"], tools=[flat], temperature=0
    )
    assert [item.type for item in response.output] == ["message", "function_call"]
    assert response.output_text == message.content


def _check_embeddings(expected: Mapping[str, Any], api: OpenAI, model: str) -> None:
    answer = api.embeddings.create(model=model, input=expected["texts"])
    for vector, found in zip(expected["vectors"], answer.data, strict=True):
        assert found.embedding == pytest.approx(vector, abs=1e-5)


def _check_reranking(expected: Mapping[str, Any], api: OpenAI, model: str) -> None:
    body = {"model": model, "query": expected["query"], "documents": expected["documents"]}
    ranked: Any = api.post("/rerank", body=body, cast_to=object)
    assert [each["index"] for each in ranked["results"]] == expected["order"]


def _check_transcription(sound: Path, api: OpenAI, model: str) -> None:
    transcript = api.audio.transcriptions.create(model=model, file=sound)
    assert transcript.text == "hello world"


def _check_images(api: OpenAI, model: str) -> None:
    drawn = api.images.generate(model=model, prompt="a red cube", size="64x64")
    assert drawn.data is not None
    assert b64decode(drawn.data[0].b64_json or "").startswith(b"\x89PNG")


def _deploy(client: RestClient, *, team: str, kind: str, folder: Path) -> Any:
    name = f"kind-{kind}"
    version = client.post(
        "model-versions/import", {"team": team, "name": name, "path": str(folder)}
    )
    _until(client, f"model-versions/{version['uid']}", "ready")
    return client.post("deployments", {"team": team, "name": name, "model_version": version["uid"]})


def _until(client: RestClient, path: str, state: str) -> Any:
    """The object at the path once it is in the state."""
    return wait_until(
        lambda: client.get(path),
        lambda one: one["state"] == state,
        within=WITHIN,
        what=f"{path} {state}",
    )
