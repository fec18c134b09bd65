"""Artifacts on a real S3 server: migration there and back, garbage collection, and answers while it is away."""

from __future__ import annotations

import threading
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from apps.jobs.models import Attempt
from apps.models.selectors import artifact_store
from apps.models.selectors.storage import artifact_store_of_kind, digests_referenced
from apps.models.services.storage_cleanup import GARBAGE_GRACE, garbage_collect
from controlplane.adapters.fakes.clusters import FakeCluster
from controlplane.domain.jobs.lifecycle import AttemptState
from controlplane.ports.artifacts import ArtifactStore
from controlplane.ports.clusters import ExitCause
from tests import s3_servers
from tests.contract.cluster_harness import LocalHarness, ended, python_role
from tests.contract.waiting import until
from tests.integration.company import Company, model_contents
from tests.integration.serving.deployments import create, reconcile
from tests.s3_servers import FaultyProxy, s3_url

__all__ = ["s3_url"]


def later(amount: timedelta) -> datetime:
    return timezone.now() + amount + timedelta(minutes=1)


def digests(store: ArtifactStore) -> set[str]:
    return {blob.digest for blob in store.blobs() if not blob.set_aside}


@pytest.fixture
def bucket(s3_url: str, settings: Settings) -> str:
    name = s3_servers.new_bucket(s3_url)
    settings.NINEFOLD_S3 = s3_servers.store_options(s3_url, name)
    return name


def migrate(*arguments: str, capsys: pytest.CaptureFixture[str]) -> str:
    call_command("migrate_artifacts", *arguments)
    return capsys.readouterr().out


def test_artifacts_are_migrated_to_s3_and_back(
    company: Company, bucket: str, s3_url: str, settings: Settings, capsys: Any
) -> None:
    folder, s3 = artifact_store_of_kind("filesystem"), artifact_store_of_kind("s3")
    wanted = set(digests_referenced())
    aside = folder.put([b"unreferenced"]).digest
    folder.set_aside(aside)
    assert f"{len(wanted)} files" in migrate("--to", "s3", "--dry-run", capsys=capsys)
    assert digests(s3) == set()
    # As if an earlier run had been interrupted.
    first = min(wanted)
    with folder.open(first) as stream:
        s3.put([stream.read()], expected=first)
    assert f"{len(wanted) - 1} files" in migrate("--to", "s3", capsys=capsys)
    assert digests(s3) == wanted
    # A blob that is damaged in the bucket is found and copied again.
    name = first.removeprefix("sha256:")
    size = s3.size(first)
    s3_servers.client(s3_url).put_object(
        Bucket=bucket, Key=f"artifacts/sha256/{name[:2]}/{name[2:]}", Body=b"?" * size
    )
    assert "1 files" in migrate("--to", "s3", "--verify", capsys=capsys)
    settings.NINEFOLD_ARTIFACTS = "s3"
    fresh = artifact_store().put([b"stored on S3"]).digest
    for digest in wanted:
        with artifact_store().open(digest) as there, folder.open(digest) as here:
            assert there.read() == here.read()
        folder.delete(digest)
    assert f"{len(wanted) + 1} files" in migrate("--to", "filesystem", capsys=capsys)
    assert digests(folder) == wanted | {fresh}


def test_a_referenced_file_that_is_nowhere_fails_the_migration(
    company: Company, bucket: str
) -> None:
    lost = min(digests_referenced())
    artifact_store().delete(lost)
    with pytest.raises(CommandError, match="1 referenced files are missing"):
        call_command("migrate_artifacts", "--to", "s3")


def test_garbage_is_collected_on_s3_in_two_runs(
    company: Company, bucket: str, settings: Settings
) -> None:
    call_command("migrate_artifacts", "--to", "s3")
    settings.NINEFOLD_ARTIFACTS = "s3"
    store, wanted = artifact_store(), set(digests_referenced())
    leaked = store.put([b"uploaded and never listed"]).digest
    read_again = store.put([b"read again after it was set aside"]).digest
    first = garbage_collect(at=later(GARBAGE_GRACE))
    assert first is not None
    assert (first.set_aside, first.removed) == (2, 0)
    with store.open(read_again) as stream:
        stream.read()
    second = garbage_collect(at=later(2 * GARBAGE_GRACE))
    assert second is not None
    assert second.removed == 2
    assert digests(store) >= wanted
    assert leaked not in digests(store)


def test_a_store_that_is_away_is_503_and_fails_no_attempt(
    company: Company,
    bucket: str,
    s3_url: str,
    settings: Settings,
    client: Client,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(FakeCluster, "downloads_inputs", True, raising=False)
    call_command("migrate_artifacts", "--to", "s3")
    with FaultyProxy(s3_url) as proxy:
        settings.NINEFOLD_S3 = s3_servers.store_options(proxy.url, bucket, attempts=1)
        settings.NINEFOLD_ARTIFACTS = "s3"
        proxy.fault = lambda method, path, number: "500"
        client.force_login(company.engineer)
        answer = client.get(f"/api/v1/dataset-versions/{company.dataset.uid}/rows")
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "10")
        assert answer.json()["type"].endswith("storage-unavailable")
        job = company.submit()
        company.schedule()
        company.turn_jobs()
        assert Attempt.objects.get(job=job).state == AttemptState.ADMITTED
        proxy.fault = lambda method, path, number: ""
        company.turn_jobs()
        attempt = Attempt.objects.get(job=job)
        assert attempt.state == AttemptState.LAUNCHED
        launch = company.cluster._launches[attempt.launch_name].launch
        inputs = {digest for tree in launch.inputs for digest in tree.files.values()}
        assert set(launch.downloads) == inputs != set()
        assert all(
            "X-Amz-Signature" in each.url and each.size > 0 for each in launch.downloads.values()
        )


def test_two_replicas_of_a_deployment_on_a_node_fetch_its_weights_once(
    company: Company, bucket: str, s3_url: str, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reconciler's launches, prepared at the same time by a real node."""
    monkeypatch.setattr(FakeCluster, "downloads_inputs", True, raising=False)
    call_command("migrate_artifacts", "--to", "s3")
    node, overlap = LocalHarness(), threading.Event()
    with FaultyProxy(s3_url) as proxy, closing(node):
        settings.NINEFOLD_S3 = s3_servers.store_options(proxy.url, bucket)
        settings.NINEFOLD_ARTIFACTS = "s3"
        create(company, replicas=2)
        reconcile(company)
        launches = [company.cluster._launches[name].launch for name in company.cluster.names()]
        assert len(launches) == 2

        def hold_downloads(method: str, path: str, number: int) -> str:
            assert overlap.wait(60)
            return ""

        proxy.fault = hold_downloads
        proxy.requests.clear()
        code = (
            "import os\nfolder = os.environ['NINEFOLD_INPUTS'] + '/model'\n"
            "print({name: os.stat(f'{folder}/{name}').st_ino for name in os.listdir(folder)})"
        )
        for launch in launches:
            node.cluster.launch(replace(launch, roles=(python_role(code),)))
        until(
            lambda: all(b"to download" in node.output(launch.name) for launch in launches),
            what="both replicas want the weights",
        )
        overlap.set()
        seen = set()
        for launch in launches:
            (replica,) = ended(node.cluster, launch.name).replicas
            assert replica.cause is ExitCause.FINISHED, replica.message
            seen.add(node.output(launch.name).decode().splitlines()[-1])
        # The same files: both link those of the cache.
        assert len(seen) == 1
        fetched = [path.partition("?")[0] for method, path, _ in proxy.requests if method == "GET"]
        assert len(fetched) == len(set(fetched)) == len(model_contents())
