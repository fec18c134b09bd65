"""Rounds of retention over a real company: what is needed stays, what goes is said."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from apps.accounts.models import AuditEntry
from apps.jobs import services as jobs
from apps.jobs.reconcilers.launches import launches_clean_up
from apps.jobs.services.job_storage import JobStorage, checkpoints_mark_removed
from apps.models.models import ModelVersion, StorageMeasure, StorageRun
from apps.models.selectors.storage import storage_usage_of_team
from apps.models.services import storage_cleanup
from apps.models.services.artifact_storage import (
    DeletionRefused,
    artifact_delete,
    artifact_pin,
    artifact_remove_now,
    retention_rules_set,
)
from apps.models.services.storage_cleanup import (
    apply_retention_removal,
    measure_artifact_storage,
    retention_plan,
    run_retention,
)
from apps.serving.selectors.revision_configurations import RevisionConfiguration
from apps.serving.services.deployments import deployment_create
from controlplane.domain.jobs.lifecycle import JobState
from controlplane.domain.storage.team_storage import (
    RetentionItemKind,
    RetentionRemoval,
    RetentionRules,
    StorageKind,
)
from controlplane.ports.clusters import ClusterUnavailable, ExitCause
from tests.integration.company import ENGINE, Company, ready_model


def let_go(company: Company, **rules: int) -> None:
    retention_rules_set(
        team=company.team, rules=RetentionRules(enabled=True, **rules), actor=company.engineer
    )


def versions(company: Company, count: int = 3) -> list[ModelVersion]:
    return [ready_model(team=company.team, name="line") for _ in range(count)]


def states(*rows: ModelVersion) -> list[str]:
    return [ModelVersion.objects.get(pk=row.pk).state for row in rows]


def test_old_versions_lose_their_bytes_and_keep_their_rows(company: Company) -> None:
    created = versions(company)
    let_go(company, keep_versions=1)
    before = storage_usage_of_team(company.team).used
    run = run_retention(at=timezone.now())
    assert run is not None
    assert run.removed == 2
    assert states(*created) == ["removed", "removed", "ready"]
    assert storage_usage_of_team(company.team).used == before - run.removed_bytes
    artifact = ModelVersion.objects.get(pk=created[0].pk).artifact
    assert artifact is not None
    assert artifact.deletion_reason == (
        "removed by a retention rule: only the newest 1 versions of each model are kept"
    )
    assert AuditEntry.objects.filter(action="storage.retention").count() == 2


def test_versions_of_pending_jobs_deployments_and_pins_are_kept(
    company: Company,
) -> None:
    waited_with, served, pinned, _newest = versions(company, 4)
    company.submit(model_version=waited_with)
    deployment_create(
        actor=company.engineer,
        team=company.team,
        name="parcels",
        configuration=RevisionConfiguration(model_version=served, engine=ENGINE),
        queue=company.queue,
    )
    assert pinned.artifact is not None
    artifact_pin(artifact=pinned.artifact, actor=company.engineer, at=company.at)
    let_go(company, keep_versions=1)
    run_retention(at=timezone.now())
    assert states(waited_with, served, pinned) == ["ready", "ready", "ready"]
    held = {item.name: item.held for item in retention_plan(at=timezone.now()).spared}
    assert held["line v2"] == "revision 1 of deployment parcels uses the files"


def test_inputs_of_a_recently_failed_job_are_kept_for_a_retry(company: Company) -> None:
    old, _new = versions(company, 2)
    job, attempt = company.running(model_version=old)
    company.cluster.finish(attempt.launch_name, exit_code=1, cause=ExitCause.FAILED)
    company.turn_jobs()
    let_go(company, keep_versions=1)
    run_retention(at=company.at + timedelta(days=6))
    assert states(old) == ["ready"]
    run_retention(at=company.at + timedelta(days=8))
    assert states(old) == ["removed"]
    job.refresh_from_db()
    assert job.state == "failed"


def test_a_job_submitted_after_the_plan_keeps_its_model(
    company: Company,
) -> None:
    old, _new = versions(company, 2)
    let_go(company, keep_versions=1)
    (removal,) = retention_plan(at=timezone.now()).removals
    company.submit(model_version=old)
    assert not apply_retention_removal(removal, at=timezone.now())
    assert states(old) == ["ready"]


def test_checkpoints_of_a_failed_job_are_removed_and_a_retry_starts_over(company: Company) -> None:
    job, attempt = company.running()
    company.cluster.leave(attempt.launch_name, 5000)
    company.cluster.finish(attempt.launch_name, exit_code=1, cause=ExitCause.FAILED)
    company.turn_jobs()
    measure_artifact_storage(at=timezone.now())
    assert storage_usage_of_team(company.team).by_kind[StorageKind.CHECKPOINTS] == 5000
    let_go(company, checkpoint_days=0)
    run_retention(at=timezone.now())
    assert attempt.launch_name not in company.cluster.names()
    assert not StorageMeasure.objects.filter(kind=StorageKind.CHECKPOINTS).exists()
    retried = jobs.job_retry(job=job, actor=company.engineer, at=timezone.now())
    assert retried.continues is None


def test_checkpoints_of_a_resumable_job_are_kept(company: Company) -> None:
    job, attempt = company.running()
    company.cluster.finish(attempt.launch_name, exit_code=1, cause=ExitCause.FAILED)
    company.turn_jobs()
    jobs.job_retry(job=job, actor=company.engineer, at=timezone.now())
    let_go(company, checkpoint_days=0)
    run_retention(at=timezone.now())
    assert attempt.launch_name in company.cluster.names()
    spared = retention_plan(at=timezone.now()).spared
    assert [(item.kind, item.held) for item in spared] == [
        (RetentionItemKind.CHECKPOINTS, "job tune the parser is waiting")
    ]


def test_logs_are_removed_and_their_last_lines_kept(company: Company) -> None:
    _, attempt = company.running()
    company.cluster.write_log(attempt.launch_name, b"the last line\n")
    company.cluster.finish(attempt.launch_name, exit_code=1, cause=ExitCause.FAILED)
    company.turn_jobs()
    let_go(company, log_days=0)
    run_retention(at=timezone.now())
    attempt.refresh_from_db()
    assert attempt.log_digest == ""
    assert "the last line" in attempt.log_tail


def test_unlisted_files_of_a_succeeded_job_are_removed_after_a_day(company: Company) -> None:
    _, attempt = company.running()
    attempt.uploads.create(path="extra.bin", digest=f"sha256:{'cd' * 32}", size=9)
    company.finish(attempt)
    company.turn_jobs()
    company.turn_jobs()
    run_retention(at=company.at + timedelta(hours=23))
    assert attempt.uploads.exists()
    run_retention(at=company.at + timedelta(hours=25))
    assert not attempt.uploads.exists()


def test_cleanup_keeps_the_folder_of_a_pending_retry(company: Company) -> None:
    job, attempt = company.running()
    company.cluster.finish(attempt.launch_name, exit_code=1, cause=ExitCause.FAILED)
    company.turn_jobs()
    jobs.job_retry(job=job, actor=company.engineer, at=company.at)
    launches_clean_up(at=company.at + timedelta(days=8))
    assert attempt.launch_name in company.cluster.names()


def test_a_folder_that_could_not_be_removed_is_removed_by_the_next_cleanup(
    company: Company,
) -> None:
    _, attempt = company.running()
    company.cluster.finish(attempt.launch_name, exit_code=1, cause=ExitCause.FAILED)
    company.turn_jobs()
    assert checkpoints_mark_removed(attempt, at=company.at)
    launches_clean_up(at=company.at)
    assert attempt.launch_name not in company.cluster.names()


def test_files_on_an_unreachable_cluster_stay_charged(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, attempt = company.running()
    company.cluster.leave(attempt.launch_name, 5000)
    measure_artifact_storage(at=timezone.now())

    def away() -> frozenset[str]:
        raise ClusterUnavailable("no route to it")

    monkeypatch.setattr(company.cluster, "names", away)
    measure_artifact_storage(at=timezone.now())
    assert storage_usage_of_team(company.team).by_kind[StorageKind.CHECKPOINTS] == 5000


def test_a_job_whose_model_is_deleted_is_not_retried(company: Company) -> None:
    job, attempt = company.running()
    company.cluster.finish(attempt.launch_name, exit_code=1, cause=ExitCause.FAILED)
    company.turn_jobs()
    assert job.model_version is not None
    assert job.model_version.artifact is not None
    artifact_delete(artifact=job.model_version.artifact, actor=company.engineer, at=company.at)
    with pytest.raises(jobs.SpecRefused, match="restore it on the storage page"):
        jobs.job_retry(job=job, actor=company.engineer, at=company.at)
    job.refresh_from_db()
    assert job.state == JobState.FAILED


def test_an_artifact_that_came_into_use_before_deletion_does_not_expire(company: Company) -> None:
    (version,) = versions(company, 1)
    assert version.artifact is not None
    stale = ModelVersion.objects.select_related("artifact", "line").get(pk=version.pk)
    artifact_delete(artifact=version.artifact, actor=company.engineer, at=company.at)
    company.submit(model_version=stale)
    run_retention(at=company.at + timedelta(days=8))
    version.artifact.refresh_from_db()
    assert version.artifact.removed_at is None
    with pytest.raises(DeletionRefused, match="is waiting"):
        artifact_remove_now(artifact=version.artifact, actor=company.engineer, at=company.at)


def test_a_failed_run_records_its_error_and_its_removals(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    created = versions(company)
    let_go(company, keep_versions=1)
    real = storage_cleanup.apply_retention_removal
    tried: list[RetentionRemoval] = []

    def breaks_second(removal: RetentionRemoval, *, at: datetime) -> bool:
        tried.append(removal)
        if len(tried) == 2:
            raise RuntimeError("the cluster answered nonsense")
        return real(removal, at=at)

    monkeypatch.setattr(storage_cleanup, "apply_retention_removal", breaks_second)
    with pytest.raises(RuntimeError):
        run_retention(at=timezone.now())
    run = StorageRun.objects.get()
    assert run.ended_at is not None
    assert run.error == "the run failed: the cluster answered nonsense"
    assert run.removed == 1
    assert sorted(states(*created)) == ["ready", "ready", "removed"]


def test_a_run_of_a_dead_worker_is_closed(company: Company) -> None:
    dead = StorageRun.objects.create(kind="retention", started_at=company.at)
    run_retention(at=timezone.now())
    dead.refresh_from_db()
    assert dead.ended_at is not None
    assert "interrupted" in dead.error


def test_a_removal_queries_holds_of_its_own_artifact_only(company: Company) -> None:
    """However many jobs and deployments there are, their rows are not read."""
    old, _new = versions(company, 2)
    let_go(company, keep_versions=1)
    for number in range(5):
        company.submit(f"waits {number}")
    (removal,) = retention_plan(at=timezone.now()).removals
    source = JobStorage()
    assert old.artifact_id is not None
    assert len(source.holds(at=company.at)) > 0
    assert source.holds(at=company.at, of=[old.artifact_id]) == {}
    assert apply_retention_removal(removal, at=timezone.now())
    assert states(old) == ["removed"]


def test_only_the_largest_items_of_attempts_are_read(company: Company) -> None:
    """The list of the biggest things is made of at most as many attempts of each kind as it shows."""
    left = {}
    for size in (3000, 9000, 6000):
        _, attempt = company.running(name=f"left {size}")
        company.cluster.leave(attempt.launch_name, size)
        company.cluster.finish(attempt.launch_name, exit_code=1, cause=ExitCause.FAILED)
        company.turn_jobs()
        left[size] = attempt.uid
    measure_artifact_storage(at=timezone.now())
    source = JobStorage()

    def folders(count: int) -> set[str]:
        items = source.largest_items(teams=[company.team.pk], count=count)
        return {item.uid for item in items if item.kind is RetentionItemKind.CHECKPOINTS}

    assert left[9000] in folders(1)
    assert left[3000] not in folders(1)
    assert folders(3) == set(left.values())
    assert not list(source.largest_items(teams=[company.other_team.pk], count=3))
    everything = {(item.kind, item.uid): item for item in source.items()}
    for uid in left.values():
        of_one = list(source.items_of_attempt(uid))
        assert of_one == [item for key, item in everything.items() if key[1] == uid]
        assert {item.size for item in of_one if item.kind is RetentionItemKind.CHECKPOINTS} <= set(
            left
        )
