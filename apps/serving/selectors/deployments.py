"""Deployments as people look at them: the list, what one runs on, what changed from revision to revision."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import pairwise
from typing import Any

from django.db.models import Count, F, IntegerField, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce

from apps.accounts import selectors as accounts
from apps.quotas.models import Allocation
from apps.serving.models import (
    Deployment,
    DeploymentTransition,
    Replica,
    ReplicaTransition,
    Revision,
    RouteBackend,
    UsageRecord,
)
from apps.serving.selectors import deployments_visible

#: What "lately" means in the list.
LATELY = timedelta(hours=24)
EVENTS_SHOWN = 100
#: Replicas whose log can be looked at: those that run, and the last that did.
REPLICAS_WITH_LOG = 12


def deployments_listed(user: accounts.Person, *, at: datetime) -> QuerySet[Deployment]:
    """With ``model_name``, ``model_number``, ``model_uid`` of the newest revision, and ``calls`` of 24 hours."""
    newest = Revision.objects.filter(deployment=OuterRef("pk")).order_by("-number")
    calls = (
        UsageRecord.objects.filter(route=OuterRef("name"), at__gte=at - LATELY)
        .order_by()
        .values("route")
        .annotate(amount=Count("id"))
        .values("amount")
    )
    return deployments_visible(user).annotate(
        model_name=Subquery(newest.values("model_version__line__name")[:1]),
        model_number=Subquery(newest.values("model_version__number")[:1]),
        model_uid=Subquery(newest.values("model_version__uid")[:1]),
        calls=Coalesce(Subquery(calls, output_field=IntegerField()), 0),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A card that a replica holds."""

    node: str
    index: int


def places_of(replicas: Collection[Replica]) -> dict[str, list[Place]]:
    """The cards that each replica holds now, by the uid of its claim."""
    claims = [replica.claim_uid for replica in replicas if replica.claim_uid]
    rows = (
        Allocation.objects.filter(claim__uid__in=claims, released_at=None)
        .order_by("node__name", "card__index")
        .values_list("claim__uid", "node__name", "card__index")
    )
    found: dict[str, list[Place]] = defaultdict(list)
    for claim, node, index in rows:
        found[claim].append(Place(node=node, index=index))
    return dict(found)


def replicas_with_log(deployment: Deployment) -> QuerySet[Replica]:
    """The newest replicas, those that ended as well."""
    return (
        Replica.objects.filter(backend__revision__deployment=deployment)
        .select_related("backend__revision", "cluster")
        .order_by("-id")[:REPLICAS_WITH_LOG]
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One field in which two revisions differ; None where one of them does not say it."""

    field: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisionRow:
    revision: Revision
    #: From the revision before it; empty for the first.
    changes: tuple[Change, ...]
    #: What going back to it would change from the newest one.
    back: tuple[Change, ...]
    #: It is the one that callers reach now.
    serves: bool


def settings_of(revision: Revision) -> dict[str, Any]:
    """Everything that a revision says, flat, in the order in which it is read."""
    return {
        "model_version": str(revision.model_version),
        "chips": " / ".join(revision.chips),
        "cards": revision.cards,
        "engine": revision.engine,
        **{name: value for name, value in sorted(revision.spec.items()) if value is not None},
    }


def changes_between(before: Revision, after: Revision) -> tuple[Change, ...]:
    """What differs in the second from the first."""
    old, new = settings_of(before), settings_of(after)
    return tuple(
        Change(field=name, before=old.get(name), after=new.get(name))
        for name in {**old, **new}
        if old.get(name) != new.get(name)
    )


def revision_rows(deployment: Deployment) -> Sequence[RevisionRow]:
    """Its revisions, the newest first."""
    found = list(
        deployment.revisions.select_related("model_version__line", "created_by").order_by("-number")
    )
    serving = set(
        RouteBackend.objects.filter(
            backend__revision__deployment=deployment, weight__gt=0
        ).values_list("backend__revision_id", flat=True)
    )
    earlier = [changes_between(older, newer) for newer, older in pairwise(found)]
    return [
        RevisionRow(
            revision=revision,
            changes=changes,
            back=changes_between(found[0], revision),
            serves=revision.pk in serving,
        )
        for revision, changes in zip(found, [*earlier, ()], strict=True)
    ]


class Subject(StrEnum):
    DEPLOYMENT = "deployment"
    REPLICA = "replica"


def events_of(deployment: Deployment) -> list[dict[str, Any]]:
    """What happened to it and to its replicas, the newest first; ``subject`` says to which."""
    own = (
        DeploymentTransition.objects.filter(entity=deployment)
        .order_by("-id")[:EVENTS_SHOWN]
        .values("id", "at", "to_state", "reason", "actor")
    )
    of_replicas = (
        ReplicaTransition.objects.filter(entity__backend__revision__deployment=deployment)
        .annotate(replica=F("entity__uid"))
        .order_by("-id")[:EVENTS_SHOWN]
        .values("id", "at", "to_state", "reason", "actor", "replica")
    )
    rows = [
        *({**row, "subject": Subject.DEPLOYMENT.value, "replica": ""} for row in own),
        *({**row, "subject": Subject.REPLICA.value} for row in of_replicas),
    ]
    rows.sort(key=lambda row: (row["at"], row["id"]), reverse=True)
    return rows[:EVENTS_SHOWN]
