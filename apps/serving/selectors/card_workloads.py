"""What jobs and deployments use: clusters, cards, and stored models."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from apps.accounts import selectors as accounts
from apps.fleet.models import Cluster, Node
from apps.jobs import selectors as jobs
from apps.jobs.models import Attempt
from apps.models.selectors.storage_consumers import StorageConsumer, StorageHold
from apps.quotas.models import Allocation
from apps.serving.models import (
    Replica,
    Revision,
)
from apps.serving.selectors.deployments import LIVE_REPLICAS, OWNER_KIND
from controlplane.domain.common.reasons import Reason
from controlplane.domain.jobs.lifecycle import LIVE_ATTEMPT_STATES


def workloads_using_cluster(cluster: Cluster) -> tuple[str, ...]:
    """Descriptions of the jobs, deployments and other claims that use the cluster, in alphabetical order."""
    return tuple(sorted(set(_workload_descriptions(cluster))))


def _workload_descriptions(cluster: Cluster) -> Iterator[str]:
    allocated = Allocation.objects.filter(released_at=None, node__cluster=cluster)
    owners = set(
        allocated.values_list("claim__owner_kind", "claim__owner_uid", "claim__team__name")
    )
    uids = {kind: [uid for one, uid, _ in owners if one == kind] for kind, _, _ in owners}
    attempts = Attempt.objects.filter(uid__in=uids.get(jobs.OWNER_KIND, ()))
    running = Attempt.objects.filter(cluster=cluster, state__in=LIVE_ATTEMPT_STATES)
    for name in (attempts | running).values_list("job__name", flat=True).distinct():
        yield Reason("cluster.occupant.job", "job {job}", job=name)
    replicas = Replica.objects.filter(uid__in=uids.get(OWNER_KIND, ()))
    serving = Replica.objects.filter(cluster=cluster, state__in=LIVE_REPLICAS)
    path = "backend__revision__deployment__name"
    for name in (replicas | serving).values_list(path, flat=True).distinct():
        yield Reason("cluster.occupant.deployment", "deployment {deployment}", deployment=name)
    for kind, _, team in owners:
        if kind not in (jobs.OWNER_KIND, OWNER_KIND):
            yield Reason("cluster.occupant.claim", "a claim of team {team}", team=team)


class ServingStorageConsumer(StorageConsumer):
    """A deployment stores nothing of its own: replicas write to their cluster's scratch space. It needs the model
    and the LoRA adapters of each of its revisions: it can be rolled back to any of them until it is deleted, and
    a stopped one can be started again.
    """

    def holds(
        self,
        *,
        at: datetime,  # noqa: ARG002 - the protocol has it
        of: Collection[int] | None = None,
    ) -> Mapping[int, StorageHold]:
        live = Revision.objects.filter(deployment__deleted_at=None)
        rows: list[tuple[int, str, int]] = []
        for path in ("adapters__model_version__artifact", "model_version__artifact"):
            holding = live.filter(**{f"{path}__isnull": False})
            if of is not None:
                holding = holding.filter(**{f"{path}__in": of})
            rows += holding.order_by("pk").values_list(path, "deployment__name", "number")
        return {
            key: StorageHold(
                reason=Reason(
                    "artifact.hold.deployment_revision",
                    "revision {revision} of deployment {deployment} uses the files",
                    deployment=name,
                    revision=number,
                ),
                firm=True,
            )
            for key, name, number in rows
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class CardWorkload:
    """The job or deployment that a card is allocated to; without uid where the user may not see it."""

    #: ``job`` or ``deployment``.
    kind: str
    name: str
    uid: str


def card_workloads(
    user: accounts.RequestUser, *, nodes: Collection[Node] | None = None
) -> dict[int, CardWorkload]:
    """The workload of each allocated card, by the card's primary key; of those nodes if they are given."""
    rows = Allocation.objects.filter(released_at=None)
    allocated = list(
        (rows if nodes is None else rows.filter(node__in=nodes)).values_list(
            "card_id", "claim__owner_kind", "claim__owner_uid", "claim__team__name"
        )
    )
    owners = {(kind, uid) for _, kind, uid, _ in allocated}
    known = _job_workloads(owners, user) | _deployment_workloads(owners, user)
    return {
        card: known.get((kind, uid)) or CardWorkload(kind=kind, name=team, uid="")
        for card, kind, uid, team in allocated
    }


Owner = tuple[str, str]


def _job_workloads(owners: set[Owner], user: accounts.RequestUser) -> dict[Owner, CardWorkload]:
    uids = [uid for kind, uid in owners if kind == jobs.OWNER_KIND]
    rows = jobs.jobs_visible(user).filter(attempts__uid__in=uids)
    return {
        (jobs.OWNER_KIND, attempt): CardWorkload(kind="job", name=name, uid=uid)
        for attempt, name, uid in rows.values_list("attempts__uid", "name", "uid")
    }


def _deployment_workloads(
    owners: set[Owner], user: accounts.RequestUser
) -> dict[Owner, CardWorkload]:
    uids = [uid for kind, uid in owners if kind == OWNER_KIND]
    path = "backend__revision__deployment"
    rows = Replica.objects.filter(
        uid__in=uids, **{f"{path}__team__in": accounts.teams_visible(user)}
    ).values_list("uid", f"{path}__name", f"{path}__uid")
    return {
        (OWNER_KIND, replica): CardWorkload(kind="deployment", name=name, uid=uid)
        for replica, name, uid in rows
    }
