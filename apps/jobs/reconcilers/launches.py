"""Render the Launch of an attempt, start and stop it, archive its log; cleanup of Launches that should not run."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings

from apps.fleet import selectors as fleet
from apps.fleet.models import Cluster
from apps.jobs import selectors
from apps.jobs.models import Attempt
from apps.jobs.services.attempt_reports import unfinished_uploads_abort
from apps.jobs.services.job_storage import checkpoints_mark_removed
from apps.jobs.services.secret_variables import RETRY_RETENTION, secret_variables_delete
from apps.models import selectors as registry_selectors
from apps.models.selectors.storage import checkpoint_retention
from apps.quotas import selectors as quotas
from apps.quotas.models import Claim
from controlplane.domain.common.reasons import ReasonedValueError
from controlplane.domain.jobs.lifecycle import ATTEMPT, AttemptState, JobKind
from controlplane.domain.quotas.claims import GangShape
from controlplane.persistence.encryption import DecryptionFailed
from controlplane.ports import adapter_registry
from controlplane.ports.adapter_registry import AdapterNotFound
from controlplane.ports.artifacts import ArtifactError, SigningStore, UploadSigningStore
from controlplane.ports.clusters import ClusterAdapter, ClusterError, EphemeralCluster
from controlplane.ports.engines import EngineTask, RenderRequest
from controlplane.ports.launches import Launch

log = logging.getLogger(__name__)

#: Length of the end of the log that is stored with an ended attempt.
TAIL_BYTES = 8 * 1024
_CHUNK_BYTES = 1 << 20


def attempt_cluster_adapter(attempt: Attempt) -> ClusterAdapter:
    """:raises ValueError: if the attempt has not been admitted to a cluster."""
    if attempt.cluster is None:
        raise ReasonedValueError(
            "attempt.cluster.missing",
            "job attempt {attempt} has not been admitted to a cluster",
            attempt=attempt.uid,
        )
    return fleet.cluster_adapter(attempt.cluster)


def stop_attempt(attempt: Attempt, *, grace: timedelta) -> None:
    attempt_cluster_adapter(attempt).stop(attempt.launch_name, grace=grace)


def start_launch(attempt: Attempt, *, claim: Claim) -> None:
    """Start the Launch of an attempt; a repeated call has no effect.

    :raises LaunchRefused: if it can never run.
    :raises ClusterUnavailable: if the cluster does not answer.
    :raises StorageUnavailable: if the artifact store does not answer.
    """
    adapter = attempt_cluster_adapter(attempt)
    launch = render_launch(attempt, claim=claim)
    if _stores_checkpoints(attempt, adapter):
        interval = str(settings.NINEFOLD_CHECKPOINT_UPLOAD_SECONDS)
        launch = launch.with_variables({"NINEFOLD_CHECKPOINT_UPLOAD_SECONDS": interval})
    adapter.launch(registry_selectors.launch_with_downloads(launch, cluster=adapter))


def _stores_checkpoints(attempt: Attempt, adapter: ClusterAdapter) -> bool:
    """Whether its checkpoints are uploaded, and those of earlier attempts downloaded.

    A job that has some goes on with it on any cluster: the newest is where the next attempt looks for it.
    """
    store = registry_selectors.artifact_store()
    if attempt.job.kind != JobKind.FINETUNE or not isinstance(store, SigningStore):
        return False
    loses = isinstance(adapter, EphemeralCluster) and adapter.loses_checkpoints
    return isinstance(store, UploadSigningStore) and (
        loses or selectors.checkpoints_to_continue(attempt).exists()
    )


def render_launch(attempt: Attempt, *, claim: Claim) -> Launch:
    """The Launch of an attempt. Rendering twice gives the same one."""
    job = attempt.job
    artifacts = {
        "model": job.model_version.artifact if job.model_version else None,
        "dataset": job.dataset_version.artifact if job.dataset_version else None,
        "code": job.code,
    }
    launch = adapter_registry.engine_by_name(job.engine).render(
        RenderRequest(
            task=EngineTask(job.kind),
            name=attempt.launch_name,
            spec={**job.spec, **(attempt.overrides or {})},
            chip=adapter_registry.all_chips()[claim.chip],
            placements=quotas.placements_of_claim(claim),
            inputs=tuple(
                registry_selectors.input_tree(name, artifact)
                for name, artifact in artifacts.items()
                if artifact is not None
            ),
            report_url=f"{fleet.control_plane_url(attempt.cluster)}/api/v1/attempts/{attempt.uid}",
            token=selectors.attempt_token(attempt),
            continues=attempt.continues.launch_name if attempt.continues else None,
            labels={
                "team": job.team.slug,
                "kind": selectors.OWNER_KIND,
                "uid": attempt.uid,
                **quotas.launch_labels(claim),
            },
            model=registry_selectors.engine_model_facts(job.model_version)
            if job.model_version
            else None,
        )
    )
    # The attempt's own token last: no variable of the job replaces it.
    launch = replace(launch, secrets={**selectors.secret_values(attempt.job), **launch.secrets})
    return launch.limited(
        GangShape.from_json(claim.shape).limits,
        run_within=timedelta(seconds=job.run_seconds) if job.run_seconds else None,
    )


def archive_log(
    attempt: Attempt, *, after_chunk: Callable[[], None] = lambda: None
) -> dict[str, Any]:
    """Store the log of an ended Launch in the artifact store, once.

    :param after_chunk: called after each chunk; a log may be long.
    :return: columns to write with the transition that ends the attempt; empty if the log is unavailable, because
        the attempt ends even without its log.
    """
    if attempt.log_digest:
        return {"log_digest": attempt.log_digest, "log_tail": attempt.log_tail}
    if attempt.cluster is None:
        return {}
    tail = bytearray()
    try:
        blob = registry_selectors.artifact_store().put(_log_chunks(attempt, tail, after_chunk))
    except (ClusterError, ArtifactError, DecryptionFailed) as error:
        log.warning(
            "a log could not be archived", extra={"attempt": attempt.uid, "error": str(error)}
        )
        return {}
    return {
        "log_digest": blob.digest,
        "log_tail": tail.decode(errors="replace").replace("\0", "\N{REPLACEMENT CHARACTER}"),
    }


def _log_chunks(
    attempt: Attempt, tail: bytearray, after_chunk: Callable[[], None]
) -> Iterator[bytes]:
    """The whole log in chunks; its last ``TAIL_BYTES`` are left in ``tail``."""
    adapter = attempt_cluster_adapter(attempt)
    offset, complete = 0, False
    while not complete:
        chunk = selectors.attempt_log_from_cluster(
            adapter, attempt, offset=offset, limit=_CHUNK_BYTES
        )
        if not chunk.content:
            return
        yield chunk.content
        tail[:] = (tail + chunk.content)[-TAIL_BYTES:]
        offset, complete = chunk.next_offset, chunk.complete
        after_chunk()


PREFIX = "attempt-"


def launches_clean_up(*, at: datetime) -> int:
    """Stop Launches that should not run and remove those no longer needed; return how many were changed.

    It also finds Launches that a worker without its lease created after their attempts had been stopped.
    """
    secret_variables_delete(at=at)
    touched = 0
    for cluster in Cluster.objects.all():
        try:
            touched += _clean_up_launches_on_cluster(cluster, fleet.cluster_adapter(cluster), at)
        except (ClusterError, AdapterNotFound) as error:
            log.warning(
                "cleanup of a cluster failed", extra={"cluster": cluster.name, "error": str(error)}
            )
    touched += _expire_stored_checkpoints(at)
    # Last: a store that does not answer takes its time.
    return touched + unfinished_uploads_abort()


def _clean_up_launches_on_cluster(cluster: Cluster, adapter: ClusterAdapter, at: datetime) -> int:
    names = [name for name in adapter.names() if name.startswith(PREFIX)]
    ended = Attempt.objects.filter(
        cluster=cluster,
        uid__in=[name.removeprefix(PREFIX) for name in names],
        state__in=ATTEMPT.final,
    )
    observed = adapter.observe(names)
    by_team, others = checkpoint_retention(default=RETRY_RETENTION)
    touched = 0
    for attempt in ended.select_related("job"):
        launch = observed.get(attempt.launch_name)
        if launch is not None and not launch.ended:
            log.warning(
                "the launch of an ended attempt was running", extra={"attempt": attempt.uid}
            )
            adapter.stop(attempt.launch_name, grace=timedelta())
            touched += 1
        elif _is_working_folder_removable(
            attempt, at, retention=by_team.get(attempt.job.team_id, others)
        ) and (
            # Recorded first: a retry must not continue from a folder that is about to be deleted.
            attempt.removed_at is not None or checkpoints_mark_removed(attempt, at=at)
        ):
            adapter.remove(attempt.launch_name)
            touched += 1
    return touched


def _expire_stored_checkpoints(at: datetime) -> int:
    """Delete stored checkpoints of attempts that no cluster has any more; return the number of attempts."""
    by_team, others = checkpoint_retention(default=RETRY_RETENTION)
    ended = Attempt.objects.filter(checkpoints__isnull=False, state__in=ATTEMPT.final)
    return sum(
        checkpoints_mark_removed(attempt, at=at)
        for attempt in ended.select_related("job").distinct()
        if _is_working_folder_removable(
            attempt, at, retention=by_team.get(attempt.job.team_id, others)
        )
    )


def _is_working_folder_removable(attempt: Attempt, at: datetime, *, retention: timedelta) -> bool:
    """Whether the working folder of an ended attempt can be removed.

    Folders of succeeded attempts can; those of others are retained for a retry. A folder that is already marked as
    removed still exists because its cluster did not answer at that time.
    """
    if attempt.state == AttemptState.SUCCEEDED or attempt.removed_at is not None:
        return True
    return attempt.ended_at is not None and at - attempt.ended_at > retention
