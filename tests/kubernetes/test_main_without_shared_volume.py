"""Jobs and a deployment in pods of a cluster without a shared volume: a real product, a real S3 server."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests import s3_servers
from tests.e2e.main_job import ENDED, ENGINE_WITHIN, MODEL, RECIPES, MainJob
from tests.e2e.rest_client import RestClient
from tests.e2e.waiting import wait_until
from tests.kubernetes.clusters import LiveCluster
from tests.kubernetes.forwarding import forwarded
from tests.kubernetes.products import product_on
from tests.s3_servers import FaultyProxy, s3_url

__all__ = ["s3_url"]

pytestmark = [pytest.mark.full, pytest.mark.kubernetes, pytest.mark.product, pytest.mark.engine]

PREFIX = "weights"


def test_a_job_downloads_its_inputs_and_its_model_version_goes_to_the_bucket_and_is_served(
    live_cluster: LiveCluster, s3_url: str
) -> None:
    bucket = s3_servers.new_bucket(s3_url)
    # Requests of pods pass the proxy; those of the product do not.
    with FaultyProxy(s3_url) as proxy, _reached(live_cluster, proxy.url) as address:
        settings = {
            "NINEFOLD_ARTIFACTS": "s3",
            "NINEFOLD_S3_BUCKET": bucket,
            "NINEFOLD_S3_PREFIX": PREFIX,
            "NINEFOLD_S3_ENDPOINT_URL": s3_url,
            # Pods reach the service at another address than the product.
            "NINEFOLD_S3_DOWNLOAD_ENDPOINT_URL": address,
            "NINEFOLD_S3_PATH_STYLE": "true",
            **s3_servers.KEYS,
        }
        with product_on(live_cluster, shared_volumes=False, **settings) as (product, client):
            model = wait_until(
                lambda: client.get("model-versions", model=MODEL)["results"],
                bool,
                within=ENGINE_WITHIN,
                what="the sample model",
            )[0]
            team = client.get("teams")["results"][0]["uid"]
            sample = Path(str(files("ninefold_runtime.samples") / "data" / "addresses.jsonl"))
            dataset = client.upload("datasets", file=sample, name="addresses", team=team)
            inputs = {"model_version": model["uid"], "dataset_version": dataset["uid"]}
            proxy.inject("cut-request", method="PUT")
            with _pods_seen(live_cluster) as pods:
                tuned = _succeeded(
                    client,
                    {
                        "team": team,
                        "kind": "finetune",
                        "name": "train without a shared volume",
                        "output_name": "address-parser",
                        "spec": {"max_steps": 20, "batch_size": 8, "checkpoint_every_steps": 10},
                        **inputs,
                    },
                )
                version = client.get("model-versions", job=tuned["uid"])["results"][0]
                # What the first job uploaded is what the second one downloads.
                checked = _succeeded(
                    client,
                    {
                        "team": team,
                        "kind": "evaluate",
                        "name": "evaluate without a shared volume",
                        "spec": {"metrics": ["exact_match"], "split": "test", "limit": 4},
                        **inputs,
                        "model_version": version["uid"],
                    },
                )
                MainJob(client, gateway=product.gateway, recipe=RECIPES["quick"]).serve(
                    version["uid"]
                )
            assert client.get("evaluations", job=checked["uid"])["results"][0]["metrics"]
            log = client.text(f"jobs/{tuned['uid']}/log")
            artifact = client.get(f"artifacts/{version['artifact']}")
            assert s3_servers.files_below(product.home / "artifacts") == []
    assert version["state"] == "ready"
    assert version["base"]["uid"] == model["uid"]
    assert {file["path"] for file in artifact["files"]} >= {"config.json", "model.safetensors"}
    for file in artifact["files"]:
        name = file["digest"].removeprefix("sha256:")
        content = _stored(s3_url, bucket, key=f"{PREFIX}/sha256/{name[:2]}/{name[2:]}")
        assert hashlib.sha256(content).hexdigest() == name, file
        assert len(content) == file["size"], file
    # Weights went from pods to the service, the first time not whole; so did those of the sample models.
    sent = [fault for method, _, fault in proxy.requests if method == "PUT"]
    assert (sent[0], set(sent[1:])) == ("cut-request", {""})
    assert "uploading model.safetensors" in log
    assert "is sent to the control plane instead" not in log
    assert any(method == "GET" for method, _, _ in proxy.requests)
    roles = {_check_pod(pod) for pod in pods.values() if _has_inputs(pod)}
    assert roles == {"trainer", "evaluator", "server"}


@contextmanager
def _reached(live: LiveCluster, url: str) -> Iterator[str]:
    """The URL by which pods reach a server on loopback."""
    port = urlsplit(url).port
    assert port is not None
    with forwarded(live.node.address, port=port) as reached:
        yield f"http://{live.node.address}:{reached}"


def _has_inputs(pod: Mapping[str, Any]) -> bool:
    """The job that creates the sample model has none."""
    return "initContainers" in pod["spec"]


def _check_pod(pod: Mapping[str, Any]) -> str:
    """The role of the pod, which has no volume that outlives it, and of which only the download sees URLs."""
    volumes = {volume["name"]: volume for volume in pod["spec"]["volumes"]}
    assert "emptyDir" in volumes["cache"]
    assert not volumes.keys() & {"store", "kept"}
    assert not any("persistentVolumeClaim" in volume for volume in volumes.values())
    (container,) = pod["spec"]["containers"]
    mounts = [mount for mount in container["volumeMounts"] if "hostPath" in volumes[mount["name"]]]
    assert all(mount["readOnly"] for mount in mounts)
    assert "downloads" not in {mount["name"] for mount in container["volumeMounts"]}
    (download,) = pod["status"]["initContainerStatuses"]
    assert download["state"]["terminated"]["exitCode"] == 0, download
    role: str = pod["metadata"]["labels"]["ninefold.io/role"]
    return role


def _succeeded(client: RestClient, body: dict[str, Any]) -> dict[str, Any]:
    job = client.post("jobs", body)
    ended: dict[str, Any] = wait_until(
        lambda: client.get(f"jobs/{job['uid']}"),
        lambda seen: seen["state"] in ENDED,
        within=600,
        what=f"the end of {body['name']}",
    )
    log = client.text(f"jobs/{job['uid']}/log", offset=-4000)
    assert ended["state"] == "succeeded", (ended["state_reason"], log)
    return ended


@contextmanager
def _pods_seen(live: LiveCluster) -> Iterator[Mapping[str, dict[str, Any]]]:
    """Each pod of an attempt or replica that exists during the block, by name, as it was last seen."""
    seen: dict[str, dict[str, Any]] = {}
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.2):
            answer = live.control_plane.request("GET", "/api/v1/pods")
            for pod in answer.json()["items"] if answer.ok else ():
                if pod["metadata"]["name"].startswith(("attempt-", "replica-")):
                    seen[pod["metadata"]["name"]] = pod

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        yield seen
    finally:
        done.set()
        watching.join()


def _stored(url: str, bucket: str, *, key: str) -> bytes:
    """The content of an object, from the server itself."""
    content: bytes = s3_servers.client(url).get_object(Bucket=bucket, Key=key)["Body"].read()
    return content
