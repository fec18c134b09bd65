"""Two teams that have the same things, and nothing in common but the company.

Everything of the other team bears the word ``zebra``, so that one look at an answer tells whether anything of
it has leaked.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.utils import timezone

from apps.accounts.models import ApplySet, Team, User
from apps.accounts.services import company_roles_set, membership_set, token_create
from apps.fleet.models import Card, Node
from apps.jobs.models import Attempt, Job
from apps.jobs.services.saved_filters import saved_filter_save
from apps.models.models import Artifact, DatasetVersion, Evaluation, ModelVersion
from apps.models.selectors.catalog import published_catalog
from apps.models.services.catalog import catalog_load
from apps.models.services.model_versions import model_version_fail_import
from apps.notifications.models import Event, Notification, Webhook, WebhookDelivery
from apps.quotas.models import Claim, PriorityClass, Queue, WhatIf
from apps.quotas.reconcilers import what_ifs_reconcile
from apps.quotas.services.forecasts import WhatIfRequest, what_if_create
from apps.serving.models import ApiKey, Deployment, Replica
from apps.serving.selectors.revision_configurations import RevisionConfiguration
from apps.serving.services import deployments, rollouts
from apps.serving.services.gateways import api_key_create, usage_batch_record
from apps.telemetry.models import NodeToken
from apps.telemetry.services.metric_sources import agent_push_source
from apps.telemetry.services.node_tokens import node_token_issue
from controlplane.domain.alerts.deliveries import DeliveryState
from controlplane.domain.alerts.notifications import (
    NotificationKind,
    NotificationSeverity,
    NotificationSubject,
)
from controlplane.domain.common.permissions import CompanyRole, Scope, TeamRole
from controlplane.domain.jobs.lifecycle import JobKind
from controlplane.domain.scheduling.plans import SchedulingPolicy
from controlplane.domain.scheduling.what_if import ChangePriority
from controlplane.domain.serving.lifecycle import DeploymentEvent
from controlplane.persistence.encryption import encrypt
from tests import factories

#: In every name of the other team.
MARK = "zebra"
RANDOM = "0123456789abcdef" * 2

#: Who asks, by the role in the own team.
ROLES = {
    "viewer": TeamRole.VIEWER,
    "engineer": TeamRole.ENGINEER,
    "queue_admin": TeamRole.QUEUE_ADMIN,
    # Of the team no more than a viewer; the company role is granted below.
    "operator": TeamRole.VIEWER,
    "administrator": TeamRole.ADMINISTRATOR,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """What belongs to no team."""

    cluster: Any
    queue: Queue
    base: ModelVersion
    root: User
    #: Public names of the fleet's own things.
    names: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamData:
    """One team's things: public names by what they are."""

    team: Team
    #: Who made them.
    owner: User
    names: dict[str, str]


def shared() -> Shared:
    catalog_load(catalog=published_catalog(), at=timezone.now())
    root = factories.user("root", admin=True)
    cluster = factories.cluster(cards=8)
    alerts = factories.firing_alerts(actor=root, at=timezone.now())
    rollout = factories.rollout_over(cluster, actor=root, at=timezone.now())
    return Shared(
        names={**alerts.names(), "rollout": rollout.uid},
        cluster=cluster,
        queue=factories.queue(),
        base=_base(root),
        root=root,
    )


def _base(root: User) -> ModelVersion:
    team = Team.objects.create(name="Platform", slug="platform")
    version = factories.model_version(actor=root, team=team, name="everybodys-base")
    version.line.team = None
    version.line.save(update_fields=["team"])
    return version


def side(word: str, company: Shared) -> TeamData:
    """A team called ``word`` that has one of everything."""
    team = factories.team(word)
    users = {name: factories.user(f"{word}-{name}") for name in ROLES}
    for name, role in ROLES.items():
        membership_set(team=team, user=users[name], roles=frozenset({role}), actor=company.root)
    company_roles_set(
        user=users["operator"], roles=frozenset({CompanyRole.OPERATOR}), actor=company.root
    )
    _gone(word, team)
    owner = users["engineer"]
    names = {f"person.{name}": user.uid for name, user in users.items()}
    names |= {"team": team.uid, "team.slug": team.slug}
    names |= _work(word, team, owner, company)
    names |= _served(word, team, owner, company, names)
    names |= _in_a_row(word, team, owner, company, names)
    names |= _notifications(word, team, owner, names)
    token, _text = token_create(
        user=owner,
        name=f"{word}-token",
        scopes=frozenset({Scope.ALL}),
        expires_at=timezone.now() + timedelta(days=30),
    )
    names["token"] = token.uid
    return TeamData(team=team, owner=owner, names=names)


def _gone(word: str, team: Team) -> None:
    """Somebody who was an administrator of the team and may not log in any more."""
    gone = factories.user(f"{word}-gone", team=team, role=TeamRole.ADMINISTRATOR)
    User.objects.filter(pk=gone.pk).update(is_active=False)


def _work(word: str, team: Team, owner: User, company: Shared) -> dict[str, str]:
    own: dict[str, Any] = {"actor": owner, "team": team}
    queue = factories.queue(name=f"{word}-queue", team=team)
    dataset = factories.dataset_version(**own, name=f"{word}-rows")
    work = {**own, "queue": queue, "model": company.base, "dataset": dataset}
    succeeded = factories.job(**work, name=f"{word} succeeded")
    Job.objects.filter(pk=succeeded.pk).update(output_name=f"{word}-model")
    succeeded.refresh_from_db()
    version = factories.succeeded(succeeded, cluster=company.cluster)
    assert version is not None
    script = factories.job(**own, queue=queue, kind=JobKind.SCRIPT, name=f"{word} script")
    factories.succeeded(script, cluster=company.cluster)
    failed = factories.job(**work, name=f"{word} failed")
    factories.failed(failed, cluster=company.cluster)
    running = factories.job(**{**work, "model": version}, name=f"{word} running")
    attempt = factories.running(running, cluster=company.cluster)
    # More than any node has, whoever else holds cards: why it waits depends on nobody.
    waiting = factories.job(**work, name=f"{word} waiting", cards=9)
    factories.schedule()
    hoping = Claim.objects.get(owner_uid=waiting.attempts.get().uid)
    evaluation = factories.evaluation(model=version, dataset=dataset, actor=owner)
    unfit = factories.quantized_version(**own, base=version, name=f"{word}-small", lost=9)
    broken = ModelVersion.objects.create(
        line=version.line, number=2, source_path=f"/models/{word}", created_by=owner
    )
    model_version_fail_import(version=broken, reason=f"{word} is no model", at=timezone.now())
    return {
        "dataset": dataset.dataset.uid,
        "dataset_version": dataset.uid,
        "line": version.line.uid,
        "line.name": version.line.name,
        "version": version.uid,
        "version.failed": broken.uid,
        "evaluation": evaluation.uid,
        "artifact": Artifact.objects.get(created_by=f"attempt:{script.attempts.get().uid}").uid,
        "queue": queue.uid,
        "queue.name": queue.name,
        "change": factories.queue_change(queue, actor=company.root, description=word).uid,
        "claim": Claim.objects.get(uid=attempt.claim_uid).uid,
        "job": running.uid,
        "job.failed": failed.uid,
        "job.succeeded": succeeded.uid,
        "job.waiting": waiting.uid,
        "claim.waiting": hoping.uid,
        "what_if": _asked(hoping, owner).uid,
        "defragmentation_plan": factories.defragmentation(
            claim=Claim.objects.get(uid=attempt.claim_uid),
            actor=None,
            reason=f"nodes that would become entirely free: {word}-node",
        ).uid,
        "job.script": script.uid,
        "version.unfit": unfit.uid,
        "attempt.failed": failed.attempts.get().uid,
        "attempt": Attempt.objects.get(pk=attempt.pk).uid,
    }


def _asked(claim: Claim, asker: User) -> WhatIf:
    """A question about the claim, answered."""
    question = WhatIfRequest(
        changes=[ChangePriority(claim=claim.uid, priority=5)], queue=claim.queue, claim=claim
    )
    asked = what_if_create(question=question, actor=asker)
    what_ifs_reconcile(policy=SchedulingPolicy(), at=timezone.now())
    return asked


def _served(
    word: str, team: Team, owner: User, company: Shared, names: dict[str, str]
) -> dict[str, str]:
    version = ModelVersion.objects.get(uid=names["version"])
    queue = Queue.objects.get(uid=names["queue"])
    own: dict[str, Any] = {"actor": owner, "team": team}
    served = factories.deployment(**own, queue=queue, model=version, name=f"{word}-serving")
    replica = factories.replica(served, cluster=company.cluster)
    stopped = factories.deployment(**own, queue=queue, model=version, name=f"{word}-stopped")
    at = timezone.now()
    deployments.deployment_stop(deployment=stopped, actor=owner, at=at)
    stopped.refresh_from_db()
    deployments.deployment_transition(stopped, DeploymentEvent.CONFIRM, at=at, reason="stopped")
    paused = factories.deployment(**own, queue=queue, model=version, name=f"{word}-paused")
    rollouts.rollout_pause(deployment=paused, actor=owner, at=at)
    revised = factories.deployment(**own, queue=queue, model=version, name=f"{word}-revised")
    deployments.deployment_revise(
        deployment=revised,
        configuration=RevisionConfiguration(model_version=version),
        actor=owner,
        at=at,
    )
    key, _text = api_key_create(**own, name=f"{word}-key", at=at)
    _called(word, key, served, replica)
    return {
        "deployment": served.uid,
        "deployment.name": served.name,
        "route": served.route.uid,
        "apply_set": ApplySet.objects.create(name=f"{word}-set", team=team, created_by=owner).uid,
        "deployment.stopped": stopped.uid,
        "deployment.stopped.name": stopped.name,
        "deployment.paused": paused.uid,
        "deployment.revised": revised.uid,
        "replica": replica.uid,
        "key": key.uid,
        "weight_download": factories.weight_download(
            **own, model=version, cluster=company.cluster
        ).uid,
    }


def _in_a_row(
    word: str, team: Team, owner: User, company: Shared, names: dict[str, str]
) -> dict[str, str]:
    """One pipeline that runs, one that failed, one that a gate holds."""
    pipelines = {
        state: factories.pipeline(
            actor=owner,
            team=team,
            queue=Queue.objects.get(uid=names["queue"]),
            model=company.base,
            dataset=DatasetVersion.objects.get(uid=names["dataset_version"]),
            name=f"{word} {state}",
            state=state,
        ).uid
        for state in ("running", "failed", "held")
    }
    return {
        "pipeline": pipelines["running"],
        "pipeline.failed": pipelines["failed"],
        "pipeline.held": pipelines["held"],
    }


def _called(word: str, key: ApiKey, served: Deployment, replica: Replica) -> None:
    record = {
        "key": key.uid,
        "at": timezone.now().isoformat(),
        "route": served.name,
        "backend": replica.backend.uid,
        "operation": "chat",
        "status": 200,
        "outcome": "ok",
        "prompt_tokens": 7,
        "completion_tokens": 11,
        "duration_ms": 5.0,
        "first_token_ms": 1.0,
    }
    usage_batch_record(gateway=f"{word}-gateway", sequence=1, records=[record])


def _notifications(word: str, team: Team, owner: User, names: dict[str, str]) -> dict[str, str]:
    """What was told, to whom, and a question that somebody keeps."""
    at = timezone.now()
    event = Event.objects.create(
        kind=NotificationKind.JOB_FAILED,
        team=team,
        subject_kind=NotificationSubject.JOB,
        subject_uid=names["job.failed"],
        subject_name=f"{word} failed",
        at=at,
    )
    line = Notification.objects.create(
        recipient=owner,
        event=event,
        kind=event.kind,
        severity=NotificationSeverity.BAD,
        collapse_key=event.uid,
        first_at=at,
        at=at,
    )
    webhook = Webhook.objects.create(
        team=team,
        created_by=owner,
        name=f"{word}-hook",
        url=f"https://{word}.example.com/",
        kinds=[NotificationKind.JOB_FAILED],
        secret=encrypt(word.encode()),
    )
    delivery = WebhookDelivery.objects.create(
        webhook=webhook, event=event, state=DeliveryState.GIVEN_UP, next_try_at=at, ended_at=at
    )
    return {
        "notification": line.uid,
        "webhook": webhook.uid,
        "delivery": delivery.uid,
        "filter": saved_filter_save(owner=owner, name=f"{word}-filter", query="state=failed").uid,
    }


def company_names() -> dict[str, str]:
    """What everybody may see."""
    assert Evaluation.objects.exists()
    root = User.objects.get(username="root")
    names = {
        "cluster": Node.objects.latest("id").cluster.uid,
        "cluster.name": Node.objects.latest("id").cluster.name,
        "node": Node.objects.latest("id").uid,
        "node.name": Node.objects.latest("id").name,
        "card": Card.objects.latest("id").uid,
        "root": root.uid,
        "priority_class": PriorityClass.objects.get(name="low").uid,
    }
    source = agent_push_source(Node.objects.latest("id").cluster)
    node_token_issue(node=Node.objects.latest("id"), actor=root)
    names |= {"source": source.uid, "node_token": NodeToken.objects.latest("id").uid}
    # Last, on a cluster of its own: the newest card above is one that works.
    return names | factories.ailing_card(actor=root, at=timezone.now())
