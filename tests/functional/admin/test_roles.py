"""Roles in the admin: each sees only its tables, with rows of its own team."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from django.test import Client
from django.urls import reverse

from apps.accounts.models import Membership, Team, User
from apps.fleet.models import Card, Node
from apps.jobs.models import Job
from apps.quotas.models import Queue
from controlplane.domain.common.permissions import CompanyRole, TeamRole
from tests import factories
from tests.functional.admin.pages import MODELS, page, run_action
from tests.integration.company import Company

FLEET = {"fleet.Cluster", "fleet.Node", "fleet.Card"}
TEAMS_THINGS = {
    "accounts.ApplySet",
    "accounts.AuditEntry",
    "accounts.Membership",
    "accounts.Team",
    "jobs.Attempt",
    "jobs.AttemptCheckpoint",
    "jobs.AttemptTransition",
    "jobs.Job",
    "jobs.JobTransition",
    "jobs.ProgressPoint",
    "jobs.SecretVariable",
    "jobs.AttemptUpload",
    "jobs.UnfinishedUpload",
    "quotas.Allocation",
    "quotas.CardRate",
    "quotas.Claim",
    "quotas.ClaimForecast",
    "quotas.ClaimTransition",
    "quotas.Entitlement",
    "quotas.MoveTransition",
    "quotas.Queue",
    "quotas.DefragmentationMove",
    "quotas.UsageDay",
    "quotas.UsageRecord",
    "quotas.WhatIf",
    "registry.Artifact",
    "registry.Dataset",
    "registry.DatasetVersion",
    "registry.Evaluation",
    "registry.HubImport",
    "registry.ModelLine",
    "registry.ModelVersion",
    "registry.ModelVersionTransition",
    "registry.RetentionRule",
    "registry.StorageMeasure",
    "registry.StorageQuota",
    "serving.AdapterRoute",
    "serving.ApiKey",
    "serving.Backend",
    "serving.Deployment",
    "serving.DeploymentTransition",
    "serving.Replica",
    "serving.ReplicaTransition",
    "serving.Revision",
    "serving.RevisionAdapter",
    "serving.Route",
    "serving.RouteBackend",
    "serving.GatewayCall",
    "serving.WeightDownload",
    "serving.WeightDownloadTransition",
    "workflows.Pipeline",
    "workflows.PipelineTransition",
    "workflows.Step",
    "workflows.StepTransition",
}
SEES = {
    TeamRole.VIEWER: set(),
    TeamRole.ENGINEER: set(),
    TeamRole.QUEUE_ADMIN: {
        "quotas.CardRate",
        "quotas.Claim",
        "quotas.ClaimForecast",
        "quotas.Entitlement",
        "quotas.Queue",
        "quotas.UsageDay",
        "quotas.UsageRecord",
    },
    TeamRole.ADMINISTRATOR: TEAMS_THINGS,
    CompanyRole.OPERATOR: FLEET,
}


@dataclass(frozen=True, kw_only=True)
class Shared:
    """Two teams with a queue and a job each."""

    company: Company
    mine: Queue
    theirs: Queue
    my_job: Job
    their_job: Job

    def as_(self, role: TeamRole | CompanyRole) -> Client:
        client = Client()
        if isinstance(role, TeamRole):
            user = factories.user(f"a-{role}", team=self.company.team, role=role)
        else:
            user = factories.user(f"a-{role}", operator=role is CompanyRole.OPERATOR)
        client.force_login(user)
        return client


@pytest.fixture
def shared(company: Company) -> Shared:
    other: Team = company.other_team
    mine = Queue.objects.create(name="mine", team=company.team)
    theirs = Queue.objects.create(name="secret-queue", team=other)
    my_job = company.submit("my training")
    their_job = company.submit("secret training")
    Job.objects.filter(pk=their_job.pk).update(team=other, queue=theirs)
    return Shared(company=company, mine=mine, theirs=theirs, my_job=my_job, their_job=their_job)


@pytest.mark.parametrize("role", TeamRole)
def test_each_role_sees_its_tables_and_no_others(shared: Shared, role: TeamRole) -> None:
    client = shared.as_(role)
    if not SEES[role]:
        assert client.get("/admin/", follow=True).status_code == 403
        return
    for model in MODELS:
        status = client.get(page(model)).status_code
        label = model._meta.label
        assert status == (200 if label in SEES[role] else 403), label


@pytest.mark.parametrize("role", [TeamRole.QUEUE_ADMIN, TeamRole.ADMINISTRATOR])
def test_rows_of_other_teams_are_not_visible(shared: Shared, role: TeamRole) -> None:
    client = shared.as_(role)
    listed = client.get(page(Queue)).content.decode()
    assert ">mine<" in listed
    # Neither as a row, nor among the filters, nor when it is asked for by name.
    assert "secret-queue" not in listed
    assert shared.company.other_team.name not in listed
    assert "secret-queue" not in client.get(page(Queue), {"q": "secret"}).content.decode().replace(
        'value="secret"', ""
    )
    for name in ("change", "history", "delete"):
        address = page(Queue, name, shared.theirs.pk)
        nowhere = page(Queue, name, 999_999)
        assert client.get(address).status_code == client.get(nowhere).status_code
        assert client.get(address).status_code in (403, 404)
    assert client.post(page(Queue, "change", shared.theirs.pk), {}).status_code == 404


def test_an_action_reaches_rows_of_ones_own_team_only(shared: Shared) -> None:
    client = shared.as_(TeamRole.ADMINISTRATOR)
    run_action(client, Job, "cancel", shared.my_job, shared.their_job)
    for job in (shared.my_job, shared.their_job):
        job.refresh_from_db()
    assert shared.my_job.cancel_requested_at is not None
    assert shared.their_job.cancel_requested_at is None


def test_choices_offer_nothing_of_other_teams(shared: Shared) -> None:
    client = shared.as_(TeamRole.ADMINISTRATOR)
    choices = reverse("admin:autocomplete")
    for field in ("team", "parent"):
        answer = client.get(
            choices, {"app_label": "quotas", "model_name": "queue", "field_name": field}
        )
        text = answer.content.decode()
        assert "secret-queue" not in text
        assert shared.company.other_team.name not in text


def test_an_operator_cordons_nodes_and_adds_no_cluster(shared: Shared) -> None:
    client = shared.as_(CompanyRole.OPERATOR)
    node = Node.objects.get()
    assert run_action(client, Node, "cordon", node) == ["1 of 1 nodes changed; all are cordoned."]
    assert client.get(page(Card)).status_code == 200
    assert client.get(page(type(shared.company.cluster_row), "add")).status_code == 403
    address = page(type(shared.company.cluster_row), "change", shared.company.cluster_row.pk)
    assert client.post(address, {"name": "mine now"}).status_code == 403


def test_a_role_in_another_team_gives_no_access(shared: Shared) -> None:
    user = factories.user("mixed", team=shared.company.team, role=TeamRole.VIEWER)
    Membership.objects.create(user=user, team=shared.company.other_team, role=TeamRole.QUEUE_ADMIN)
    client = Client()
    client.force_login(User.objects.get(pk=user.pk))
    listed = client.get(page(Queue)).content.decode()
    assert "secret-queue" in listed
    assert ">mine<" not in listed
