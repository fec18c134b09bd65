"""Models that do not chat: imported from a folder, deployed with defaults, and used through the gateway."""

from __future__ import annotations

import json
import subprocess
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest

from controlplane.adapters.engines.transformers.engine import TransformersEngine
from tests.e2e.main_job import talking_client
from tests.e2e.product import ROOT, Product
from tests.e2e.rest_client import RestClient
from tests.e2e.waiting import wait_until

pytestmark = [pytest.mark.product, pytest.mark.engine]

#: A guard against hanging, in seconds.
WITHIN = 900.0
KINDS = {
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
    team = client.get("teams")["results"][0]["uid"]
    deployed = {
        kind: _deploy(client, team=team, kind=kind, folder=model_root / kind) for kind in KINDS
    }
    for kind, deployment in deployed.items():
        ready = _until(client, f"deployments/{deployment['uid']}")
        assert ready["revisions"][0]["operations"] == KINDS[kind]
    key = client.post("keys", {"team": team, "name": "kinds of models"})["text"]
    with talking_client(product.gateway, key=key, model="kind-transcription") as api:
        texts, vectors = expected["embedding"]["texts"], expected["embedding"]["vectors"]
        answer = api.embeddings.create(model="kind-embedding", input=texts)
        for vector, found in zip(vectors, answer.data, strict=True):
            assert found.embedding == pytest.approx(vector, abs=1e-5)
        body = {name: expected["reranking"][name] for name in ("query", "documents")}
        ranked: Any = api.post("/rerank", body={"model": "kind-reranking", **body}, cast_to=object)
        assert [each["index"] for each in ranked["results"]] == expected["reranking"]["order"]
        with (model_root / "tone.wav").open("rb") as sound:
            transcript = api.audio.transcriptions.create(model="kind-transcription", file=sound)
        assert transcript.text == "hello world"
        drawn = api.images.generate(model="kind-images", prompt="a red cube", size="64x64")
        assert drawn.data is not None
        assert b64decode(drawn.data[0].b64_json or "").startswith(b"\x89PNG")
    for deployment in deployed.values():
        client.post(f"deployments/{deployment['uid']}/stop")


def _deploy(client: RestClient, *, team: str, kind: str, folder: Path) -> Any:
    name = f"kind-{kind}"
    version = client.post(
        "model-versions/import", {"team": team, "name": name, "path": str(folder)}
    )
    _until(client, f"model-versions/{version['uid']}")
    return client.post("deployments", {"team": team, "name": name, "model_version": version["uid"]})


def _until(client: RestClient, path: str) -> Any:
    """The object at the path once it is ready."""
    return wait_until(
        lambda: client.get(path),
        lambda one: one["state"] == "ready",
        within=WITHIN,
        what=f"{path} ready",
    )
