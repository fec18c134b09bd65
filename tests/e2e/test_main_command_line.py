"""A newcomer's first hour by the command line alone: from the sample model to an answered chat."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.product import Product
from tests.e2e.rest_client import RestClient

pytestmark = [pytest.mark.product, pytest.mark.engine]

#: A guard against hanging, in seconds.
WITHIN = 600.0
DOCUMENTS = """
apiVersion: ninefold/v1
kind: Dataset
metadata: {name: cli-addresses}
spec: {file: addresses.jsonl}
---
apiVersion: ninefold/v1
kind: Job
metadata: {name: cli-tune}
spec:
  kind: finetune
  model_version: ninefold-tiny-qwen2
  dataset_version: cli-addresses
  output_name: cli-parser
  spec: {max_steps: 2, batch_size: 2}
---
apiVersion: ninefold/v1
kind: Deployment
metadata: {name: cli-parcels}
spec:
  model_version: {job: cli-tune}
"""


@pytest.fixture
def ninefold(product: Product, client: RestClient, tmp_path: Path) -> Callable[..., str]:
    """Run ``ninefold`` in a process of its own; return what it printed."""
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("NINEFOLD_")},
        "NINEFOLD_CONFIG": str(tmp_path / "configuration.yaml"),
    }

    def run(*arguments: str, text: str = "") -> str:
        done = subprocess.run(
            [Path(sys.executable).with_name("ninefold"), *arguments],
            cwd=tmp_path,
            env=environment,
            input=text,
            capture_output=True,
            text=True,
            timeout=WITHIN,
            check=False,
        )
        assert done.returncode == 0, (arguments, done.stdout, done.stderr)
        return done.stdout

    token = client.post("tokens", {"name": f"walk {tmp_path.name}", "scopes": ["all"]})["text"]
    run("login", product.web, "--token", "-", text=token)
    return run


def test_documents_alone_lead_to_an_answered_chat(
    ninefold: Callable[..., str], tmp_path: Path
) -> None:
    ninefold("job", "wait", "build ninefold-tiny-qwen2")
    rows = [{"prompt": f"{n} Main Street?", "response": f"number {n}"} for n in range(24)]
    (tmp_path / "addresses.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    (tmp_path / "walk.yaml").write_text(DOCUMENTS)

    # What the documents describe exists already: the upload is not repeated.
    ninefold("dataset", "upload", "addresses.jsonl", "--name", "cli-addresses")
    applied = ninefold("apply", "-f", "walk.yaml", "--wait", "--set", "walk", "--prune")
    assert "Deployment/cli-parcels created" in applied
    assert "uploading config.json" in ninefold("logs", "cli-tune")
    assert "cli-parser v1" in ninefold("get", "model-versions")
    again = ninefold("apply", "-f", "walk.yaml")
    assert [line.split()[1] for line in again.splitlines()] == ["unchanged"] * 3
    assert ninefold("chat", "cli-parcels", "-m", "1 Main Street?", "--max-tokens", "8").strip()

    # The job stays as a record, the deployment is stopped and deleted.
    (tmp_path / "walk.yaml").write_text("---".join(DOCUMENTS.split("---")[:2]))
    pruned = ninefold("apply", "-f", "walk.yaml", "--prune", "--set", "walk", "--yes")
    assert "Deployment/cli-parcels deleted" in pruned
    assert "cli-parcels" not in ninefold("get", "deployments")
