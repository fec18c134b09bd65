"""What ran while the dump was made goes on in the present version: a job, a pipeline, a deployment."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from pydantic import TypeAdapter

from apps.fleet.selectors import cluster_adapter
from apps.jobs.models import Attempt, Job
from apps.jobs.reconcilers import attempts, launches
from apps.models.models import ModelVersion
from apps.quotas.models import Claim
from apps.quotas.reconcilers import cycle_run
from apps.serving import reconcilers as serving_controllers
from apps.serving.models import Replica
from apps.serving.services import gateways
from apps.workflows import reconcilers as workflow_controllers
from apps.workflows.models import Pipeline
from config import simulated_clusters
from config.demo.simulated_day import InProcessAttemptReporter
from controlplane.domain.jobs.lifecycle import AttemptState, JobState
from controlplane.domain.pipelines.lifecycle import PipelineState, StepState
from controlplane.domain.quotas.claims import ClaimState
from controlplane.domain.scheduling.plans import SchedulingPolicy
from controlplane.domain.serving.lifecycle import ReplicaState
from gateway.snapshots import SnapshotRoute
from ninefold_runtime import specs
from tests.integration.upgrade.local_machine import Machine
from tests.integration.upgrade.old_database import Upgraded
from tests.integration.upgrade.recorded import INSTALLATION, exchanges, read
from tests.integration.upgrade.replaying import Clock, send

pytestmark = pytest.mark.slow

_RUNNING = INSTALLATION["running"]
_DEPLOYMENT = INSTALLATION["deployment"]
_SIMULATED = INSTALLATION["simulated"]


def test_the_running_job_goes_on_until_it_succeeds_and_its_pipeline_takes_the_next_step(
    machine: Machine, clock: Clock
) -> None:
    attempt = Attempt.objects.get(uid=_RUNNING["attempt"])
    attempts.attempts_reconcile(at=clock.at, uids=[attempt.uid])
    attempt.refresh_from_db()
    assert attempt.state == AttemptState.RUNNING, attempt.message
    for exchange in exchanges("runtime"):
        send(exchange, clock=clock)
    machine.end(_RUNNING["launch"])
    for _ in range(2):
        attempts.attempts_reconcile(at=clock.at, uids=[attempt.uid])
    attempt.refresh_from_db()
    assert attempt.state == AttemptState.SUCCEEDED, attempt.message
    job = Job.objects.get(uid=_RUNNING["job"])
    assert job.state == JobState.SUCCEEDED
    version = ModelVersion.objects.get(job_uid=job.uid)
    assert (str(version), version.parameters) == ("sums v4", 20_672)
    assert Claim.objects.get(uid=attempt.claim_uid).state == ClaimState.RELEASED
    pipeline = Pipeline.objects.get(uid=_RUNNING["pipeline"])
    workflow_controllers.pipelines_reconcile(at=clock.at, uid=pipeline.uid)
    pipeline.refresh_from_db()
    states = list(pipeline.steps.order_by("number").values_list("state", flat=True))
    assert (pipeline.state, states[:2]) == (
        PipelineState.RUNNING,
        [StepState.SUCCEEDED, StepState.RUNNING],
    )


def test_a_running_job_whose_supervisor_is_gone_is_tried_again(
    machine: Machine, clock: Clock
) -> None:
    machine.kill(_RUNNING["launch"])
    attempts.attempts_reconcile(at=clock.at, uids=[_RUNNING["attempt"]])
    first, second = Attempt.objects.filter(job__uid=_RUNNING["job"]).order_by("number")
    assert (first.state, second.state) == (AttemptState.FAILED, AttemptState.PENDING)
    assert second.continues == first


def test_the_running_job_is_rendered_as_it_was_launched(installation: Upgraded) -> None:
    attempt = Attempt.objects.get(uid=_RUNNING["attempt"])
    rendered = launches.render_launch(attempt, claim=Claim.objects.get(uid=attempt.claim_uid))
    recorded = read(f"launches/{_RUNNING['launch']}/launch.json")["launch"]
    (role,) = recorded["roles"]
    assert rendered.name == recorded["name"]
    assert dict(rendered.secrets) == recorded["secrets"]
    (placement,) = rendered.roles[0].placements
    assert {"node": placement.node, "cards": list(placement.cards)} == role["placements"][0]
    assert {tree.name: dict(tree.files) for tree in rendered.inputs} == {
        tree["name"]: tree["files"] for tree in recorded["inputs"]
    }
    path = "/api/v1/attempts/" + _RUNNING["attempt"]
    assert role["environment"]["NINEFOLD_REPORT_URL"].endswith(path)


def test_the_pending_job_is_admitted_once_cards_are_free_and_its_spec_is_complete(
    installation: Upgraded, clock: Clock
) -> None:
    attempt = Attempt.objects.get(job__uid=INSTALLATION["pending"]["job"])
    assert attempt.state == AttemptState.PENDING
    Claim.objects.filter(owner_uid=_RUNNING["attempt"]).update(state=ClaimState.RELEASED)
    Claim.objects.get(owner_uid=_RUNNING["attempt"]).allocations.update(released_at=clock.at)
    cycle_run(policy=SchedulingPolicy(), at=clock.at)
    claim = Claim.objects.get(uid=attempt.claim_uid)
    assert claim.state == ClaimState.ADMITTED, claim.explanation
    launch = launches.render_launch(attempt, claim=claim)
    spec = specs.parse_spec(json.loads(launch.files["spec.json"]), specs.FinetuneSpec)
    assert (spec.method, spec.max_steps, spec.max_length) == ("lora", 10, 64)


def test_the_running_deployment_stays_in_the_snapshot_and_its_replica_is_followed(
    machine: Machine, clock: Clock
) -> None:
    replica = Replica.objects.get(uid=_DEPLOYMENT["replica"])
    serving_controllers.replicas_reconcile(at=clock.at, uid=replica.uid)
    replica.refresh_from_db()
    assert replica.state == ReplicaState.READY, replica.message
    recorded = json.loads(exchanges("gateway")[0].response)
    # As a gateway reads it: the recorded snapshot has no fields that came later. Of operations that came later
    # the changelog says that replicas answer them once they have been restarted.
    former, route = _parsed_route(recorded), _parsed_route(_snapshot(at=clock.at))
    assert route.operations >= former.operations
    assert replace(route, operations=former.operations) == former
    assert _snapshot(at=clock.at)["keys"] == recorded["keys"]
    assert replica.cluster is not None
    endpoint = cluster_adapter(replica.cluster).endpoint(
        _DEPLOYMENT["launch"], role="server", index=0, port="http"
    )
    assert endpoint is not None
    (served,) = _route(recorded)["backends"][0]["endpoints"]
    assert (endpoint.url, endpoint.credential) == (served["url"], served["credential"])
    machine.end(_DEPLOYMENT["launch"])
    serving_controllers.replicas_reconcile(at=clock.at, uid=replica.uid)
    replica.refresh_from_db()
    assert (replica.state, replica.crashes) == (ReplicaState.BACKOFF, 1), replica.message
    assert _route(_snapshot(at=clock.at))["backends"][0]["endpoints"] == []


def _snapshot(*, at: datetime) -> dict[str, Any]:
    # Issued anew, whatever is stored.
    snapshot = gateways.gateway_snapshot_publish(at=at + timedelta(hours=2))
    return dict(json.loads(gateways.gateway_snapshot_body(snapshot)))


def _route(snapshot: Mapping[str, Any]) -> Any:
    (route,) = [one for one in snapshot["routes"] if one["name"] == _DEPLOYMENT["name"]]
    return route


def _parsed_route(snapshot: Mapping[str, Any]) -> SnapshotRoute:
    return TypeAdapter(SnapshotRoute).validate_json(json.dumps(_route(snapshot)), strict=True)


def test_a_simulated_job_goes_on_until_it_succeeds(installation: Upgraded, clock: Clock) -> None:
    attempt = Attempt.objects.get(uid=_SIMULATED["attempt"])
    attempts.attempts_reconcile(at=clock.at, uids=[attempt.uid])
    attempt.refresh_from_db()
    assert attempt.state == AttemptState.RUNNING, attempt.message
    # By then all that was running at the time of the dump has done its work.
    simulated_clusters.cluster_named("lab").hold(clock.at + timedelta(days=1))
    simulated_clusters.report_simulated_processes(
        listener=InProcessAttemptReporter(), interval=timedelta(), limit=100
    )
    for _ in range(2):
        attempts.attempts_reconcile(at=clock.at, uids=[attempt.uid])
    attempt.refresh_from_db()
    assert attempt.state == AttemptState.SUCCEEDED, attempt.message
