"""Who uses a cluster: the fleet asks before one is removed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from apps.fleet.models import Cluster
from apps.jobs import selectors as jobs
from apps.jobs.models import Attempt
from apps.quotas.models import Allocation
from apps.serving.models import Replica
from apps.serving.selectors import LIVE_REPLICAS, OWNER_KIND
from controlplane.domain.jobs.lifecycle import LIVE_ATTEMPT_STATES


@dataclass(frozen=True, slots=True)
class WorkOccupancy:
    """Jobs and deployments that run on it, and what else holds its cards."""

    def occupants(self, cluster: Cluster) -> Iterator[str]:
        held = Allocation.objects.filter(released_at=None, node__cluster=cluster)
        owners = set(held.values_list("claim__owner_kind", "claim__owner_uid", "claim__team__name"))
        uids = {kind: [uid for one, uid, _ in owners if one == kind] for kind, _, _ in owners}
        attempts = Attempt.objects.filter(uid__in=uids.get(jobs.OWNER_KIND, ()))
        running = Attempt.objects.filter(cluster=cluster, state__in=LIVE_ATTEMPT_STATES)
        for name in (attempts | running).values_list("job__name", flat=True).distinct():
            yield f"the job {name}"
        replicas = Replica.objects.filter(uid__in=uids.get(OWNER_KIND, ()))
        serving = Replica.objects.filter(cluster=cluster, state__in=LIVE_REPLICAS)
        path = "backend__revision__deployment__name"
        for name in (replicas | serving).values_list(path, flat=True).distinct():
            yield f"the deployment {name}"
        for kind, _, team in owners:
            if kind not in (jobs.OWNER_KIND, OWNER_KIND):
                yield f"a claim of team {team}"
