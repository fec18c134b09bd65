"""From an attempt to its Launch, and what the cluster says of it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

from apps.fleet import selectors as fleet
from apps.jobs import selectors
from apps.jobs.models import Attempt
from apps.models import selectors as registry_selectors
from apps.quotas import selectors as quotas
from apps.quotas.models import Claim
from controlplane.domain.claims import GangShape
from controlplane.persistence.encryption import Undecryptable
from controlplane.ports import registry
from controlplane.ports.artifacts import ArtifactError
from controlplane.ports.clusters import Cluster, ClusterError
from controlplane.ports.engines import RenderRequest, Task
from controlplane.ports.launches import Launch

log = logging.getLogger(__name__)

#: How much of an ended attempt's log is kept beside it.
TAIL_BYTES = 8 * 1024
_CHUNK_BYTES = 1 << 20


def adapter_of(attempt: Attempt) -> Cluster:
    """:raises ValueError: if the attempt has not been admitted to a cluster."""
    if attempt.cluster is None:
        raise ValueError(f"attempt {attempt.uid} is on no cluster yet")
    return fleet.cluster_adapter(attempt.cluster)


def stop(attempt: Attempt, *, grace: timedelta) -> None:
    adapter_of(attempt).stop(attempt.launch_name, grace=grace)


def render(attempt: Attempt, *, claim: Claim) -> Launch:
    """The Launch of an attempt. Rendering twice gives the same one."""
    job = attempt.job
    artifacts = {
        "model": job.model_version.artifact if job.model_version else None,
        "dataset": job.dataset_version.artifact if job.dataset_version else None,
        "code": job.code,
    }
    launch = registry.engine(job.engine).render(
        RenderRequest(
            task=Task(job.kind),
            name=attempt.launch_name,
            spec={**job.spec, **(attempt.overrides or {})},
            chip=registry.chips()[claim.chip],
            placements=quotas.placements_of(claim),
            inputs=tuple(
                registry_selectors.input_tree(name, artifact)
                for name, artifact in artifacts.items()
                if artifact is not None
            ),
            report_url=f"{fleet.control_url(attempt.cluster)}/api/v1/attempts/{attempt.uid}",
            token=selectors.attempt_token(attempt),
            continues=attempt.continues.launch_name if attempt.continues else None,
            labels={
                "team": job.team.slug,
                "kind": selectors.OWNER_KIND,
                "uid": attempt.uid,
                **quotas.launch_labels(claim),
            },
            model=registry_selectors.model_facts(job.model_version) if job.model_version else None,
        )
    )
    # The attempt's own token last: no variable of the job replaces it.
    launch = replace(launch, secrets={**selectors.secret_values(attempt.job), **launch.secrets})
    return launch.limited(
        GangShape.from_json(claim.shape).limits,
        run_within=timedelta(seconds=job.run_seconds) if job.run_seconds else None,
    )


def archive_log(attempt: Attempt, *, between: Callable[[], None] = lambda: None) -> dict[str, Any]:
    """Keep the log in the artifact store, once: nothing is written to it when its Launch has ended.

    Gives back the columns to write with the move that ends the attempt; none if the log cannot be had,
    because the end of the attempt matters more than its log.

    :param between: called after each piece of it; a log may be long.
    """
    if attempt.log_digest:
        return {"log_digest": attempt.log_digest, "log_tail": attempt.log_tail}
    if attempt.cluster is None:
        return {}
    tail = bytearray()
    try:
        blob = registry_selectors.artifact_store().put(_chunks(attempt, tail, between))
    except (ClusterError, ArtifactError, Undecryptable) as error:
        log.warning("a log could not be kept", extra={"attempt": attempt.uid, "error": str(error)})
        return {}
    return {
        "log_digest": blob.digest,
        "log_tail": tail.decode(errors="replace").replace("\0", "\N{REPLACEMENT CHARACTER}"),
    }


def _chunks(attempt: Attempt, tail: bytearray, between: Callable[[], None]) -> Iterator[bytes]:
    """The whole log; what it ends with is left in ``tail``."""
    adapter = adapter_of(attempt)
    offset, complete = 0, False
    while not complete:
        chunk = selectors.cluster_log(adapter, attempt, offset=offset, limit=_CHUNK_BYTES)
        if not chunk.content:
            return
        yield chunk.content
        tail[:] = (tail + chunk.content)[-TAIL_BYTES:]
        offset, complete = chunk.next_offset, chunk.complete
        between()
