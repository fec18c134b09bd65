"""Inputs that a machine downloads from S3 by presigned URL, without access to the artifact store."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from controlplane.adapters.artifacts.s3 import S3Artifacts
from controlplane.ports.clusters import ExitCause
from controlplane.ports.launches import InputArtifact, Launch
from tests import s3_servers
from tests.contract.cluster_harness import ended, python_role
from tests.integration.local_cluster.conftest import Machine
from tests.s3_servers import PART, FaultyProxy, HttpsBucket, https_bucket, s3_url

__all__ = ["https_bucket", "s3_url"]

READ_INPUT = (
    "import os\npath = os.environ['NINEFOLD_INPUTS'] + '/model/deep/weights.bin'\n"
    "print(len(open(path, 'rb').read()))\n"
    "try: open(path, 'ab'); print('changed')\nexcept PermissionError: print('refused')\n"
    "print([name for name in os.environ if name.startswith('AWS')])"
)


def test_a_job_reads_an_input_that_was_downloaded_once(machine: Machine, s3_url: str) -> None:
    with FaultyProxy(s3_url) as proxy:
        store = S3Artifacts(**s3_servers.store_options(proxy.url, s3_servers.new_bucket(s3_url)))
        blob = store.put([os.urandom(3 * PART)])
        inputs = (InputArtifact(name="model", files={"deep/weights.bin": blob.digest}),)
        downloads = {blob.digest: store.download(blob.digest)}
        # The first response breaks off: the rest is requested.
        proxy.inject("cut-response", method="GET", part="sha256")
        for name in ("first", "second"):
            machine.start(READ_INPUT, name=name, inputs=inputs, downloads=downloads)
            (replica,) = ended(machine.cluster, name).replicas
            assert replica.cause is ExitCause.FINISHED, replica.message
            lines = machine.output(name).decode().splitlines()
            printed = [line for line in lines if not line.startswith("[ninefold]")]
            assert printed == [str(blob.size), "refused", "[]"]
        assert len([path for method, path, _ in proxy.requests if method == "GET"]) == 2


@pytest.mark.parametrize("damage", ["403", "deleted"])
def test_an_input_that_cannot_be_downloaded_is_named(
    machine: Machine, s3_url: str, damage: str
) -> None:
    with FaultyProxy(s3_url) as proxy:
        store = S3Artifacts(**s3_servers.store_options(proxy.url, s3_servers.new_bucket(s3_url)))
        blob = store.put([b"weights"])
        download = store.download(blob.digest)
        if damage == "403":
            proxy.inject("403", method="GET", times=-1)
        else:
            store.delete(blob.digest)
        machine.start(
            "print('started')",
            inputs=(InputArtifact(name="model", files={"x": blob.digest}),),
            downloads={blob.digest: download},
        )
        (replica,) = ended(machine.cluster, "job").replicas
        assert replica.cause is ExitCause.NOT_PREPARED
        assert blob.digest in replica.message
        assert "X-Amz-Signature" not in replica.message + machine.output("job").decode()
        assert b"started\n" not in machine.output("job").splitlines(keepends=True)


def test_a_job_trusts_the_authority_of_the_store_in_its_own_copy_of_the_file(
    machine: Machine, https_bucket: HttpsBucket
) -> None:
    store = S3Artifacts(
        **s3_servers.store_options(https_bucket.url, https_bucket.name),
        ca_file=https_bucket.ca_file,
    )
    blob = store.put([b"weights"])
    launch = Launch(
        name="job",
        roles=(python_role("import os; print(open(os.environ['NINEFOLD_S3_CA_FILE']).read())"),),
        inputs=(InputArtifact(name="model", files={"x": blob.digest}),),
        downloads={blob.digest: store.download(blob.digest)},
    )
    machine.cluster.launch(replace(launch, name="untrusting"))
    (replica,) = ended(machine.cluster, "untrusting").replicas
    assert replica.cause is ExitCause.NOT_PREPARED
    assert "NINEFOLD_S3_CA_FILE" in replica.message
    machine.cluster.launch(launch.trusting(store.authorities))
    (replica,) = ended(machine.cluster, "job").replicas
    assert replica.cause is ExitCause.FINISHED, replica.message
    assert store.authorities.encode() in machine.output("job")
