"""Pre-download of weights: by the reconciler on the fake cluster, and on a real node from a real S3 server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from pytest_django import Settings

from apps.accounts.models import AuditEntry
from apps.fleet import reconcilers as fleet_reconcilers
from apps.fleet.models import Node
from apps.jobs.services import SpecRefused
from apps.models.models import ModelVersion
from apps.quotas import services as quotas
from apps.quotas.models import Claim
from apps.serving import reconcilers, selectors
from apps.serving.models import Deployment, Replica, WeightDownload
from apps.serving.services import deployments, rollouts, weight_downloads
from apps.serving.services.weight_downloads import NodeSelection
from controlplane.domain.common.resources import MIB
from controlplane.domain.quotas.claims import ReleaseReason
from controlplane.domain.serving.lifecycle import DeploymentState, ReplicaState, WeightDownloadState
from controlplane.domain.serving.rollouts import RolloutStrategy
from controlplane.ports import adapter_registry
from controlplane.ports.engines import RenderRequest
from controlplane.ports.launches import Launch
from tests import s3_servers
from tests.contract.cluster_harness import LocalHarness
from tests.contract.waiting import until
from tests.contract.web_servers import make_authority
from tests.integration.company import (
    ENGINE,
    Company,
    PlainEngine,
    model_contents,
    ready_model,
    safetensors,
    stored,
)
from tests.integration.serving.deployments import (
    configuration,
    create,
    ready_deployment,
    reconcile,
    replicas_of,
    start_replicas,
)
from tests.s3_servers import FaultyProxy, s3_url

__all__ = ["s3_url"]

SIZE = sum(len(content) for content in model_contents().values())


@pytest.fixture
def proxy(s3_url: str, settings: Settings, company: Company) -> Iterator[FaultyProxy]:
    """Artifacts are on S3, and the nodes of the company have weight caches."""
    bucket = s3_servers.new_bucket(s3_url)
    settings.NINEFOLD_S3 = s3_servers.store_options(s3_url, bucket)
    call_command("migrate_artifacts", "--to", "s3")
    with FaultyProxy(s3_url) as found:
        settings.NINEFOLD_S3 = s3_servers.store_options(found.url, bucket)
        settings.NINEFOLD_ARTIFACTS = "s3"
        company.cluster.set_weight_cache(MIB)
        yield found


def download(company: Company, **selection: Any) -> list[WeightDownload]:
    return weight_downloads.weight_downloads_create(
        actor=company.engineer,
        team=company.team,
        model_version=company.model,
        nodes=NodeSelection(**{"cluster": company.cluster_row, **selection}),
    )


def turn(company: Company, row: WeightDownload) -> WeightDownload:
    reconcilers.weight_downloads_reconcile(at=company.at)
    row.refresh_from_db()
    return row


def refusal(company: Company, **selection: Any) -> str:
    with pytest.raises(SpecRefused) as refused:
        download(company, **selection)
    assert not WeightDownload.objects.exists()
    (finding,) = refused.value.findings
    return f"{finding.field}: {finding.message}"


def test_launches_get_the_authorities_of_the_store(
    company: Company, proxy: FaultyProxy, settings: Settings, tmp_path: Path
) -> None:
    file = make_authority(tmp_path, names=("s3.company",)).certificate
    settings.NINEFOLD_S3 = {**settings.NINEFOLD_S3, "ca_file": str(file)}
    (row,) = download(company)
    turn(company, row)
    launch = company.cluster.launched(row.launch_name)
    assert launch.files == {"s3-ca.pem": file.read_text()}
    (role,) = launch.roles
    assert role.environment["NINEFOLD_S3_CA_FILE"] == "{work}/s3-ca.pem"


def test_a_download_runs_without_cards_and_ends(company: Company, proxy: FaultyProxy) -> None:
    (row,) = download(company)
    assert turn(company, row).state == WeightDownloadState.RUNNING
    launch = company.cluster.launched(row.launch_name)
    assert [place.cards for role in launch.roles for place in role.placements] == [()]
    assert launch.downloads.keys() == set(launch.inputs[0].files.values())
    assert launch.files == {}
    company.cluster.prepare(
        row.launch_name, f"downloading inputs: 100 of {SIZE} bytes", downloaded=100
    )
    assert (turn(company, row).downloaded, row.size) == (100, SIZE)
    assert str(row.message).startswith("downloading inputs")
    # A second request for the node does not start another.
    assert download(company) == [row]
    company.cluster.finish(row.launch_name)
    assert turn(company, row).state == WeightDownloadState.SUCCEEDED
    assert row.downloaded == SIZE
    assert row.ended_at == company.at
    assert company.cluster.names() == frozenset()
    entry = AuditEntry.objects.filter(action="weights.download").earliest("id")
    assert (entry.actor_name, entry.detail["nodes"]) == ("mei", [row.node.name])


def test_a_failed_download_says_why(company: Company, proxy: FaultyProxy) -> None:
    (row,) = download(company)
    turn(company, row)
    company.cluster.finish(row.launch_name, exit_code=28, message="the disk has 7 bytes free")
    assert turn(company, row).state == WeightDownloadState.FAILED
    assert row.message == "the disk has 7 bytes free"
    # It can be requested again.
    assert download(company) != [row]


def test_ended_downloads_are_deleted_after_their_retention(
    company: Company, proxy: FaultyProxy
) -> None:
    (ended,) = download(company)
    turn(company, ended)
    company.cluster.finish(ended.launch_name)
    ended_at = turn(company, ended).ended_at
    assert ended_at is not None
    (running,) = download(company)
    late = ended_at + weight_downloads.WEIGHT_DOWNLOAD_RETENTION
    assert weight_downloads.weight_downloads_prune(at=late) == 0
    assert weight_downloads.weight_downloads_prune(at=late + timedelta(seconds=1)) == 1
    # One that has not ended stays, however old it is.
    assert list(WeightDownload.objects.all()) == [running]


def test_a_download_that_the_cluster_lost_has_failed(company: Company, proxy: FaultyProxy) -> None:
    (row,) = download(company)
    turn(company, row)
    company.cluster.finish(row.launch_name)
    company.cluster.remove(row.launch_name)
    assert turn(company, row).state == WeightDownloadState.FAILED
    assert "no longer reports" in row.message


def test_a_cancelled_download_is_stopped_and_can_be_deleted(
    company: Company, proxy: FaultyProxy
) -> None:
    (row,) = download(company)
    turn(company, row)
    cancel = weight_downloads.weight_download_delete
    assert not cancel(row=row, actor=company.engineer, at=company.at)
    assert not cancel(row=row, actor=company.engineer, at=company.at)
    assert turn(company, row).state == WeightDownloadState.CANCELLED
    assert company.cluster.names() == frozenset()
    assert cancel(row=row, actor=company.engineer, at=company.at)
    assert not WeightDownload.objects.exists()
    actions = AuditEntry.objects.filter(action__startswith="weights.").order_by("id")
    assert list(actions.values_list("action", flat=True)) == [
        "weights.download",
        "weights.cancel",
        "weights.delete",
    ]


def test_a_cluster_that_is_away_delays_a_download(company: Company, proxy: FaultyProxy) -> None:
    (row,) = download(company)
    company.cluster.lose_contact()
    assert turn(company, row).state == WeightDownloadState.PENDING
    assert "lost contact" in row.message
    company.cluster.regain_contact()
    assert turn(company, row).state == WeightDownloadState.RUNNING


def test_the_launch_of_an_ended_download_is_cleaned_up(
    company: Company, proxy: FaultyProxy
) -> None:
    (row,) = download(company)
    turn(company, row)
    # As if a worker had died between the transition and the removal.
    WeightDownload.objects.update(state=WeightDownloadState.FAILED)
    reconcilers.replica_launches_cleanup()
    reconcilers.replica_launches_cleanup()
    assert company.cluster.names() == frozenset()


def test_what_cannot_be_downloaded_is_refused(company: Company, proxy: FaultyProxy) -> None:
    node = Node.objects.get()
    Node.objects.update(labels={"pool": "inference"})
    assert "nodes that match otherwise: 0" in refusal(company, chip="h100")
    assert "nodes that match otherwise: 0" in refusal(company, labels={"pool": "training"})
    assert refusal(company, names=("absent", node.name)).endswith("isolated: absent")
    Node.objects.update(cordoned=True)
    assert "nodes that match otherwise: 1" in refusal(company, labels={"pool": "inference"})
    assert refusal(company, names=(node.name,)).endswith(f"isolated: {node.name}")
    Node.objects.update(cordoned=False)
    company.cluster.set_weight_cache(10)
    assert f"cluster: the weights have {SIZE} bytes" in refusal(company)
    company.cluster.set_weight_cache(SIZE)
    assert len(download(company, chip="cpu", labels={"pool": "inference"})) == 1


def test_clusters_without_a_cache_or_a_store_that_signs_are_refused(
    company: Company, settings: Settings
) -> None:
    assert "no weight cache" in refusal(company)
    company.cluster.set_weight_cache(MIB)
    assert "read the artifact store directly" in refusal(company)


def other_model(company: Company) -> ModelVersion:
    """A version with other weights."""
    version = ready_model(team=company.team, name="other")
    path, digest, size = stored("model.safetensors", safetensors(embed=(16, 4), head=(4, 16)))
    artifact = version.artifact
    assert artifact is not None
    artifact.files = [{"path": path, "digest": digest, "size": size}]
    artifact.save()
    return version


def revise(company: Company, deployment: Deployment) -> None:
    deployments.deployment_revise(
        deployment=deployment,
        configuration=configuration(company, model_version=other_model(company)),
        actor=company.engineer,
        at=company.at,
    )


def test_a_rollout_fetches_the_weights_before_new_replicas_take_cards(
    company: Company, proxy: FaultyProxy
) -> None:
    deployment = ready_deployment(company)
    revise(company, deployment)
    reconcile(company)
    row = WeightDownload.objects.get()
    assert (row.node, row.created_by) == (Node.objects.get(), company.engineer)
    turn(company, row)
    assert len(replicas_of(deployment)) == 1
    deployment.refresh_from_db()
    assert deployment.state_reason == "the weights of revision 2 are on 0 of 1 nodes"
    company.cluster.finish(row.launch_name)
    turn(company, row)
    start_replicas(company)
    deployment.refresh_from_db()
    assert [each.backend.revision.number for each in replicas_of(deployment)] == [1, 2]
    assert deployment.state == DeploymentState.READY
    assert WeightDownload.objects.count() == 1


def test_the_revision_that_serves_is_kept_up_while_a_rollout_waits_for_weights(
    company: Company, proxy: FaultyProxy
) -> None:
    deployment = ready_deployment(company)
    # Its replicas are replaced in place: the company has two cards.
    rollouts.rollout_strategy_set(
        deployment=deployment,
        strategy=RolloutStrategy(max_surge="0", max_unavailable="1"),
        actor=company.engineer,
    )
    revise(company, deployment)
    reconcile(company)
    row = WeightDownload.objects.get()
    turn(company, row)
    deployments.deployment_scale(
        deployment=deployment, replicas=2, actor=company.engineer, at=company.at
    )
    start_replicas(company)

    def live() -> list[tuple[int, str]]:
        return [
            (each.backend.revision.number, each.state)
            for each in replicas_of(deployment)
            if each.state != ReplicaState.STOPPED
        ]

    assert live() == [(1, ReplicaState.READY)] * 2
    evicted = replicas_of(deployment)[0]
    quotas.claim_revoke(
        claim=Claim.objects.get(uid=evicted.claim_uid),
        reason=ReleaseReason.FAULT,
        grace=timedelta(seconds=10),
        at=company.at,
        explanation="the card has a fault",
    )
    for _ in range(4):
        start_replicas(company)
    evicted.refresh_from_db()
    assert evicted.state == ReplicaState.STOPPED
    assert live() == [(1, ReplicaState.READY)] * 2

    company.cluster.finish(row.launch_name)
    turn(company, row)
    for _ in range(8):
        start_replicas(company)
    assert live() == [(2, ReplicaState.READY)] * 2


def test_a_rollout_does_not_wait_for_a_failed_or_a_slow_download(
    company: Company, proxy: FaultyProxy, settings: Settings
) -> None:
    deployment = ready_deployment(company)
    revise(company, deployment)
    reconcile(company)
    row = WeightDownload.objects.get()
    turn(company, row)
    company.later(timedelta(seconds=settings.NINEFOLD_ROLLOUT_PROGRESS_DEADLINE_SECONDS - 60))
    reconcile(company)
    assert len(replicas_of(deployment)) == 1
    company.later(timedelta(minutes=5))
    reconcile(company)
    assert len(replicas_of(deployment)) == 2
    assert turn(company, row).state == WeightDownloadState.RUNNING


def test_a_rollout_with_the_same_weights_or_without_a_cache_downloads_nothing(
    company: Company, proxy: FaultyProxy
) -> None:
    deployment = ready_deployment(company)
    deployments.deployment_revise(
        deployment=deployment,
        configuration=configuration(company),
        actor=company.engineer,
        at=company.at,
    )
    reconcile(company)
    assert not WeightDownload.objects.exists()
    assert len(replicas_of(deployment)) == 2


SERVER = """
import http.server, os
folder = os.environ['NINEFOLD_INPUTS'] + '/model'
print('inputs', {name: os.stat(f'{folder}/{name}').st_ino for name in os.listdir(folder)})
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
http.server.HTTPServer(('127.0.0.1', int(os.environ['PORT'])), Handler).serve_forever()
"""


class HealthyEngine(PlainEngine):
    """Its replicas answer their probe."""

    def render(self, request: RenderRequest) -> Launch:
        launch = super().render(request)
        (role,) = launch.roles
        serving = replace(
            role, argv=("{python}", "-u", "-c", SERVER), environment={"PORT": "{port:http}"}
        )
        return replace(launch, roles=(serving,))


def test_a_deployment_downloads_nothing_after_a_pre_download_on_a_real_node(
    company: Company, proxy: FaultyProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adapter_registry, "engine_by_name", {ENGINE: HealthyEngine()}.__getitem__)
    node = LocalHarness()
    with closing(node):
        monkeypatch.setattr(
            "apps.fleet.selectors._cached_adapter", lambda *_arguments: node.cluster
        )
        fleet_reconcilers.inventories_sync(at=company.at)
        (row,) = download(company, names=[each.name for each in node.cluster.inventory()])
        proxy.requests.clear()

        def ended() -> bool:
            return turn(company, row).state not in (
                WeightDownloadState.PENDING,
                WeightDownloadState.RUNNING,
            )

        until(ended, what="the weights are on the node", within=60)
        assert row.state == WeightDownloadState.SUCCEEDED, row.message
        fetched = [path.partition("?")[0] for method, path, _ in proxy.requests if method == "GET"]
        assert len(fetched) == len(set(fetched)) == len(model_contents())
        assert node.cluster.names() == frozenset()
        deployment = create(company)
        proxy.requests.clear()

        def ready() -> bool:
            reconcile(company)
            replica = Replica.objects.get()
            assert replica.state != ReplicaState.BACKOFF, replica.message
            return replica.state == ReplicaState.READY

        until(ready, what="the replica is ready", within=120)
        assert [path for method, path, _ in proxy.requests if method == "GET"] == []
        (replica,) = replicas_of(deployment)
        log = selectors.replica_log(replica, process=0, offset=0, limit=10_000).content.decode()
        count = len(model_contents())
        assert f"{count} of {count} files are in the weight cache; 0 bytes to download" in log
