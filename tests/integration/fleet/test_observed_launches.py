"""Names that a cluster tells reach the rows that own them, and turn no others."""

from __future__ import annotations

from apps.fleet import tasks as fleet
from apps.fleet.models import Cluster, Node
from apps.jobs import tasks as jobs
from apps.serving import tasks as serving
from apps.serving.models import Replica
from controlplane.domain.jobs.lifecycle import AttemptState
from controlplane.domain.serving.lifecycle import ReplicaState
from tests.integration.company import Company
from tests.integration.serving import deployments

UNKNOWN = ["attempt-" + "0" * 32, "replica-" + "0" * 32 + "-1", "somebody-elses", "attempt-", ""]


def test_an_attempt_is_reconciled_when_its_launch_changes(company: Company) -> None:
    _, observed = company.launched(cards=1)
    _, untold = company.launched(cards=1)
    for attempt in (observed, untold):
        company.cluster.finish(attempt.launch_name, exit_code=3, message="it fell over")

    jobs.on_launches_changed(names=[observed.launch_name, *UNKNOWN])

    observed.refresh_from_db()
    untold.refresh_from_db()
    assert (observed.state, untold.state) == (AttemptState.FAILED, AttemptState.LAUNCHED)


def test_an_ended_attempt_is_not_reconciled(company: Company) -> None:
    _, attempt = company.launched()
    company.cluster.finish(attempt.launch_name, exit_code=3, message="it fell over")
    jobs.on_launches_changed(names=[attempt.launch_name])
    attempt.refresh_from_db()
    before = attempt.lease_token

    jobs.on_launches_changed(names=[attempt.launch_name])

    attempt.refresh_from_db()
    assert attempt.lease_token == before


def test_a_replica_is_reconciled_when_its_launch_changes(company: Company) -> None:
    deployment = deployments.ready_deployment(company)
    (replica,) = deployments.replicas_of(deployment)
    company.cluster.finish(replica.launch_name, exit_code=139, message="it fell over")

    serving.on_launches_changed(names=UNKNOWN)
    assert Replica.objects.get(pk=replica.pk).state == ReplicaState.READY
    serving.on_launches_changed(names=[replica.launch_name, *UNKNOWN])

    replica.refresh_from_db()
    assert replica.state == ReplicaState.BACKOFF


def test_a_cluster_change_takes_the_inventory_of_that_cluster_only(company: Company) -> None:
    Node.objects.all().delete()
    other = Cluster.objects.create(name="broken", kind="no-such-kind")

    fleet.on_cluster_changed(cluster_uid=company.cluster_row.uid)

    assert Node.objects.filter(cluster=company.cluster_row).exists()
    other.refresh_from_db()
    assert other.error == ""
    fleet.on_cluster_changed(cluster_uid="0" * 32)
