"""Inputs that a pod downloads by presigned URL: a real init container, a real S3 server, injected faults."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from controlplane.adapters.artifacts.s3 import S3Artifacts
from controlplane.adapters.clusters.kubernetes import KubernetesCluster
from controlplane.ports.artifacts import BlobDownload
from controlplane.ports.clusters import ExitCause, ObservedReplica
from controlplane.ports.launches import InputArtifact, Launch
from tests import s3_servers
from tests.contract.cluster_harness import end_all, ended, python_role
from tests.kubernetes import images
from tests.kubernetes.clusters import LiveCluster
from tests.kubernetes.forwarding import forwarded
from tests.s3_servers import PART, FaultyProxy, s3_url

__all__ = ["s3_url"]

pytestmark = pytest.mark.kubernetes

#: Prints the size of the input and what the pod may not do with it.
READ_INPUT = (
    "import os\npath = os.environ['NINEFOLD_INPUTS'] + '/model/deep/weights.bin'\n"
    "print(len(open(path, 'rb').read()))\n"
    "try: open(path, 'ab'); print('changed')\nexcept OSError: print('refused')\n"
    "print(os.path.exists('/ninefold/downloads'), os.path.exists('/ninefold/cache'))"
)


def test_pods_download_inputs_once_and_name_one_that_cannot_be_downloaded(
    live_cluster: LiveCluster, s3_url: str
) -> None:
    with FaultyProxy(s3_url) as proxy, _pods(live_cluster, proxy) as (cluster, store):
        blob = store.put([os.urandom(3 * PART)])
        download = store.download(blob.digest)
        # A response that breaks off and an error cost a repetition each.
        faults = iter(["cut-response", "503"])
        proxy.fault = lambda method, path, number: next(faults, "") if method == "GET" else ""
        proxy.requests.clear()
        for name in ("first", "second"):
            replica = _run(cluster, name, digest=blob.digest, download=download)
            assert replica.cause is ExitCause.FINISHED, replica.message
            log = cluster.log(name, role="main", index=0, offset=0, limit=1 << 16)
            assert log.content.decode().splitlines() == [str(blob.size), "refused", "False False"]
            # The second pod finds it in the cache of the node.
            faults_of_requests = [fault for method, _, fault in proxy.requests if method == "GET"]
            assert faults_of_requests == ["cut-response", "503", ""]

        other = store.put([os.urandom(PART)])
        proxy.inject("403", method="GET", times=-1)
        replica = _run(cluster, "third", digest=other.digest, download=store.download(other.digest))
        assert replica.cause is ExitCause.NOT_PREPARED
        assert other.digest in replica.message
        assert "its URL may have expired" in replica.message
        assert "X-Amz-Signature" not in replica.message


def _run(
    cluster: KubernetesCluster, name: str, *, digest: str, download: BlobDownload
) -> ObservedReplica:
    """The only replica, after it has ended."""
    tree = InputArtifact(name="model", files={"deep/weights.bin": digest})
    cluster.launch(
        Launch(
            name=name,
            roles=(python_role(READ_INPUT),),
            inputs=(tree,),
            downloads={digest: download},
        )
    )
    (replica,) = ended(cluster, name).replicas
    return replica


@contextmanager
def _pods(live: LiveCluster, proxy: FaultyProxy) -> Iterator[tuple[KubernetesCluster, S3Artifacts]]:
    """The adapter with a weight cache on the node, and a store whose URLs lead from pods to the proxy."""
    port = urlsplit(proxy.url).port
    assert port is not None
    with (
        forwarded(live.node.address, port=port) as reached,
        tempfile.TemporaryDirectory(prefix="ninefold-cache-") as cache,
    ):
        Path(cache).chmod(0o777)
        bucket = s3_servers.new_bucket(proxy.target.geturl())
        address = f"http://{live.node.address}:{reached}"
        store = S3Artifacts(
            **s3_servers.store_options(proxy.url, bucket, download_endpoint_url=address)
        )
        cluster = KubernetesCluster(
            installation="downloads",
            kubeconfig=live.kubeconfig.read_text(),
            **{**images.PROFILE, "cpu_cards": 2, "cache": {"host_path": cache}},
        )
        try:
            yield cluster, store
        finally:
            end_all(cluster)
            for name in cluster.names():
                cluster.remove(name)
