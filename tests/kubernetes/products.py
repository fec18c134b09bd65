"""A whole product whose work runs in pods of the test cluster alone."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from controlplane.adapters.engines.transformers import TransformersEngine
from tests.e2e.product import ROOT, Product, running_product
from tests.e2e.rest_client import RestClient
from tests.e2e.waiting import wait_until
from tests.kubernetes import images
from tests.kubernetes.clusters import LiveCluster
from tests.kubernetes.forwarding import forwarded

CLUSTER = "pods"
CARDS = 2
ENGINES = ROOT / "var" / "engines"


def _engine_mounts() -> list[Mapping[str, str]]:
    """What the engine's environment needs of this machine: itself, and the Python that it was made from."""
    environment = TransformersEngine().environment()
    folder = ENGINES / environment.name
    if not (folder / ".complete").exists():
        pytest.skip(f"no engine environment {environment.name} under var/engines: make engine")
    python = folder / "bin" / "python"
    command = [str(python), "-c", "import sys; print(sys.base_prefix)"]
    base = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    folders = [str(ENGINES)]
    if not any(Path(base).is_relative_to(each) for each in images.HOST_FOLDERS):
        folders.append(base)
    return [{"host_path": each, "at": each} for each in folders]


@contextmanager
def _registered(
    client: RestClient, product: Product, live: LiveCluster, *, shared_volumes: bool
) -> Iterator[dict[str, Any]]:
    """The test cluster in the product, as an administrator registers it; its work goes there alone."""
    port = urlsplit(product.web).port
    assert port is not None
    with (
        forwarded(live.node.address, port=port) as reached,
        tempfile.TemporaryDirectory(prefix="ninefold-work-") as work,
    ):
        Path(work).chmod(0o777)
        options = {
            **images.PROFILE,
            "mounts": [*images.PROFILE["mounts"], *_engine_mounts()],
            "engines": str(ENGINES),
            "control_url": f"http://{live.node.address}:{reached}",
            "cpu_cards": CARDS,
        }
        if shared_volumes:
            options["store"] = {"host_path": str(product.home / "artifacts")}
            options["work"] = {"host_path": work}
        yield client.post(
            "clusters",
            {
                "name": CLUSTER,
                "kind": "kubernetes",
                "binding": "node",
                "options": options,
                "kubeconfig": live.kubeconfig.read_text(),
                "although_unfit": True,
            },
        )


@contextmanager
def product_on(
    live: LiveCluster, *, shared_volumes: bool = True, **settings: str
) -> Iterator[tuple[Product, RestClient]]:
    """It is started for the block, with the cluster registered and its cards seen.

    :param shared_volumes: mount the artifact store and a folder for checkpoints in pods.
    :param settings: further variables of the product.
    """
    allowed = f"127.0.0.1,localhost,{live.node.address}"
    with running_product(
        from_nothing=False, NINEFOLD_ALLOWED_HOSTS=allowed, NINEFOLD_LOCAL_CARDS="1", **settings
    ) as product:
        client = product.client()
        with _registered(client, product, live, shared_volumes=shared_volumes) as cluster:
            wait_until(
                lambda: client.get(f"clusters/{cluster['uid']}"),
                lambda seen: seen["cards"] == CARDS,
                within=60,
                what="the cards of the cluster",
            )
            _cordon_this_machine(product)
            yield product, client


def _cordon_this_machine(product: Product) -> None:
    """Nothing new comes to the local cluster: what runs from now on runs in pods."""
    code = (
        "from apps.fleet.models import Node;"
        "print(Node.objects.filter(cluster__kind='local').update(cordoned=True))"
    )
    done = subprocess.run(
        [sys.executable, "manage.py", "shell", "-c", code],
        cwd=ROOT,
        env=dict(product.environment),
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip().endswith("1"), done
