"""``?dry_run=true``: the answer of the real request, and nothing is changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.utils import timezone
from pytest_django import Settings
from rest_framework.test import APIClient

from apps.accounts.models import ApplySet, Membership, Team, User
from apps.accounts.services import token_create
from apps.fleet.models import Node
from apps.jobs.models import Job
from apps.models.models import Dataset, ModelLine
from apps.models.selectors import artifact_store
from apps.monitoring.models import AlertReceiver, AlertRule, AlertSilence, HealthRule
from apps.monitoring.services.alerts import AlertRouteRequest, alert_route_create
from apps.notifications.models import Webhook
from apps.quotas.models import PriorityClass, Queue
from apps.serving.models import Deployment
from apps.telemetry.models import NodeToken
from apps.telemetry.services.node_tokens import node_token_issue
from controlplane.domain.alerts.rules import AlertSeverity
from controlplane.domain.common.permissions import Scope, TeamRole
from controlplane.persistence.transactions import is_dry_run
from tests import factories
from tests.api_document import api_document
from tests.functional.api.callers import API, caller, problem
from tests.functional.api.test_jobs import finetune
from tests.hubs import LocalHub, configured_hub
from tests.integration.company import Company, model_contents, rows, write_model
from tests.integration.serving.deployments import ready_deployment

#: Reading a token notes when it was used.
NOTED = {"accounts_personaltoken"}
REPOSITORY = "Maker/Small-Model"
Capture = Callable[..., AbstractContextManager[list[Callable[[], Any]]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A request that changes something."""

    method: str
    path: str
    body: dict[str, Any]
    form: bool = False

    def send(self, client: APIClient, *, dry_run: bool, **headers: str) -> Any:
        query = "?dry_run=true" if dry_run else ""
        body = dict(self.body)
        if self.form:
            body["file"] = SimpleUploadedFile("rows.jsonl", rows(23).getvalue())
        send = getattr(client, self.method)
        form = "multipart" if self.form else "json"
        return send(f"{API}/{self.path}{query}", body, format=form, headers=headers)


@pytest.fixture
def administrator(company: Company) -> APIClient:
    return caller(User.objects.create(username="root", is_superuser=True, is_staff=True))


def changes(company: Company) -> Iterator[Change]:
    """A creation or change of each kind of object; what later ones need is created by earlier ones."""
    team, member, deployment = company.team, company.stranger, ready_deployment(company)

    def post(path: str, **body: Any) -> Change:
        return Change(method="post", path=path, body=body)

    def patch(path: str, **body: Any) -> Change:
        return Change(method="patch", path=path, body=body)

    def put(path: str, **body: Any) -> Change:
        return Change(method="put", path=path, body=body)

    members = [{"user": member.uid, "roles": ["engineer"]}]
    yield post("teams", name="Maps", slug="maps", members=members)
    maps = Team.objects.get(slug="maps")
    yield patch(f"teams/{maps.uid}", name="Map data")
    yield put(f"teams/{maps.uid}/members/{company.engineer.uid}", roles=["viewer"])
    yield Change(method="delete", path=f"teams/{maps.uid}/members/{member.uid}", body={})
    yield put(f"company-roles/{company.engineer.uid}", roles=["operator"])
    yield post("priority-classes", name="hotfix", value=17)
    yield post(
        "alert-receivers", name="on-call", kind="webhook", url="https://1.1.1.1/", active=False
    )
    yield post("webhooks", name="build", team="addresses", url="https://1.1.1.1/", kinds=["job.failed"],
               active=False)  # fmt: skip
    yield patch(f"webhooks/{Webhook.objects.get().uid}", active=True)
    yield post("alert-rules", name="hot", title="Hot", measure="cards.temperature", op=">", threshold=90,
               severity="warning")  # fmt: skip
    ends_at = timezone.now() + timedelta(hours=1)
    yield post("alert-silences", name="move", matchers=["rule=hot"], ends_at=ends_at, reason="move")
    silence = AlertSilence.objects.get()
    yield patch(f"alert-silences/{silence.uid}", reason="racks move")
    yield post("health-rules", name="hot", title="Hot", level=1,
               condition={"metric": "temperature", "op": ">", "value": 90})  # fmt: skip
    yield patch("health-policy", automatic=False)
    yield put(f"storage/quotas/{team.uid}", limit=10**12)
    yield put(f"storage/rules/{team.uid}", enabled=True, keep_versions=5, checkpoint_days=None,
              failed_days=None, log_days=None)  # fmt: skip
    yield put("usage/rates/nvidia-h800", per_hour="26.5")
    yield Change(
        method="post", path="datasets", body={"name": "orders", "team": "addresses"}, form=True
    )
    yield patch(f"datasets/{company.dataset.dataset.uid}", description="from the map")
    yield patch(f"models/{company.model.line.uid}", description="small")
    yield post("jobs", **finetune(company, team="addresses"))
    yield post("model-versions/fetch", name="small", team="addresses", hub="huggingface",
               repository=REPOSITORY)  # fmt: skip
    (root,) = settings.NINEFOLD_MODEL_ROOTS
    folder = write_model(Path(root) / "tiny")
    body = {"name": "own", "team": "addresses", "path": str(folder)}
    yield Change(method="post", path="model-versions/import", body=body)
    yield post("pipelines", name="whole way", team="addresses", model_version=company.model.uid, steps=[
        {"kind": "finetune", "dataset_version": company.dataset.uid, "output_name": "parser"}])  # fmt: skip
    yield post("deployments", name="parcels", team="addresses", model_version="tiny@1")
    yield post(f"deployments/{deployment.uid}/revise", model_version="tiny@1", cards=2)
    yield post(f"deployments/{deployment.uid}/scale", replicas=2)
    yield patch(f"deployments/{deployment.uid}", max_surge="2")
    yield patch(
        f"routes/{deployment.route.uid}", backends=[{"deployment": deployment.uid, "weight": 5}]
    )
    labels = {"name": Node.objects.get().name}
    yield from _deletions(company)
    yield post("rollouts", name="driver", cluster=company.cluster_row.uid, labels=labels,
               argv=["/usr/bin/update"], burn_in=False)  # fmt: skip


def _deletions(company: Company) -> Iterator[Change]:
    """A deletion of each kind of object. Queues have a preview instead."""
    root = User.objects.get(username="root")
    spare = factories.cluster(name="spare")
    source = factories.source(spare)
    node_token_issue(node=Node.objects.filter(cluster=company.cluster_row).get(), actor=root)
    token, _ = token_create(user=root, name="spare", scopes=frozenset({Scope.READ}))
    key, _ = factories.api_key(actor=root, team=company.team)
    unused = ModelLine.objects.create(team=company.team, name="unused")
    apply_set = ApplySet.objects.create(name="spare", created_by=root)
    orders = Dataset.objects.get(name="orders")
    receiver = AlertReceiver.objects.get()
    request = AlertRouteRequest(name="all", severity=AlertSeverity.INFO, receivers=[receiver])
    route = alert_route_create(request=request, actor=root)
    for path in (
        f"alert-routes/{route.uid}",
        f"alert-receivers/{receiver.uid}",
        f"alert-rules/{AlertRule.objects.get(name='hot').uid}",
        f"alert-silences/{AlertSilence.objects.get().uid}",
        f"health-rules/{HealthRule.objects.get(name='hot').uid}",
        f"webhooks/{Webhook.objects.get().uid}",
        f"priority-classes/{PriorityClass.objects.get(name='hotfix').uid}",
        f"storage/rules/{company.team.uid}",
        f"storage/artifacts/{orders.versions.get().artifact.uid}",
        "usage/rates/nvidia-h800",
        f"telemetry-sources/{source.uid}",
        f"node-tokens/{NodeToken.objects.get().uid}",
        f"clusters/{spare.uid}",
        f"apply-sets/{apply_set.uid}",
        f"keys/{key.uid}",
        f"tokens/{token.uid}",
        f"datasets/{orders.uid}",
        f"models/{unused.uid}",
        f"deployments/{Deployment.objects.get(name='parcels').uid}",
    ):
        yield Change(method="delete", path=path, body={})


def stored() -> dict[str, str]:
    """A digest of the rows of each table."""
    with connection.cursor() as cursor:
        tables = set(connection.introspection.table_names(cursor)) - NOTED
        # One statement: one for each table and change would be twenty thousand. The server plans table by table,
        # as the plan of a union of all takes longer.
        cursor.execute(
            "SELECT name, query_to_xml("
            " format('SELECT md5(string_agg(one::text, %%L ORDER BY one::text)) FROM %%I one', ',', name),"
            " false, true, '')::text FROM unnest(%s::text[]) AS name",
            [sorted(tables)],
        )
        return dict(cursor.fetchall())


@pytest.fixture
def hub(company: Company, settings: Settings) -> Iterator[LocalHub]:
    with configured_hub(settings) as found:
        found.repositories[REPOSITORY] = model_contents()
        yield found


def test_a_dry_run_of_every_change_is_answered_as_the_change_and_changes_nothing(
    hub: LocalHub,
    administrator: APIClient,
    stranger: APIClient,
    company: Company,
    django_capture_on_commit_callbacks: Capture,
) -> None:
    faulty = {}
    for change in changes(company):
        before, blobs = stored(), len(list(artifact_store().blobs()))
        with django_capture_on_commit_callbacks() as committed:
            dry = change.send(administrator, dry_run=True, **{"Idempotency-Key": "dry"})
        after = stored()
        changed = [table for table, digest in after.items() if digest != before[table]]
        if changed or committed or len(list(artifact_store().blobs())) != blobs or is_dry_run():
            faulty[f"{change.method} {change.path}: changes"] = (changed, committed)
        refused = change.send(stranger, dry_run=True)
        also = change.send(stranger, dry_run=False)
        if refused.status_code < 400 or _without_id(refused) != _without_id(also):
            faulty[f"{change.method} {change.path}: of a stranger"] = (refused, also)
        real = change.send(administrator, dry_run=False, **{"Idempotency-Key": change.path})
        if dry.status_code >= 400 or dry.status_code != real.status_code or stored() == after:
            faulty[f"{change.method} {change.path}: answer"] = (dry.content, real.content)
    assert not faulty


def _without_id(response: Any) -> dict[str, Any]:
    body = response.json()
    body.pop("request_id", None)
    return dict(body)


def test_a_dry_run_has_the_errors_of_the_request(
    engineer: APIClient, administrator: APIClient, company: Company
) -> None:
    Membership.objects.create(user=company.engineer, team=company.team, role=TeamRole.ADMINISTRATOR)
    Membership.objects.filter(team=company.team, role=TeamRole.ADMINISTRATOR).exclude(
        user=company.engineer
    ).delete()
    deployment = ready_deployment(company)
    factories.job(
        actor=company.engineer, team=company.team, queue=Queue.objects.get(name="default"),
        model=company.model, dataset=company.dataset, name="using the dataset",
    )  # fmt: skip
    last = f"teams/{company.team.uid}/members/{company.engineer.uid}"
    wrong: tuple[tuple[str, str, dict[str, Any]], ...] = (
        ("post", "jobs", finetune(company, spec={"learning_rate": -1})),
        ("post", "deployments", {"name": "p", "model_version": "tiny@1", "spec": {"max_model_len": -1}}),
        ("post", "deployments", {"name": deployment.name, "model_version": "tiny@1"}),
        ("post", f"deployments/{deployment.uid}/revise", {"model_version": "tiny@1", "cards": 10**6}),
        ("patch", f"deployments/{deployment.uid}", {"max_surge": "0", "max_unavailable": "0"}),
        ("put", last, {"roles": ["engineer"]}),
        ("delete", f"datasets/{company.dataset.dataset.uid}", {}),
        ("post", "webhooks", {"name": "w", "team": "addresses", "url": "http://[::1]/", "kinds": ["job.failed"]}),
    )  # fmt: skip
    faulty = {}
    for method, path, body in wrong:
        change = Change(method=method, path=path, body=body)
        dry = change.send(engineer, dry_run=True)
        real = change.send(engineer, dry_run=False)
        if dry.status_code < 400 or _without_id(dry) != _without_id(real):
            faulty[f"{method} {path} {body}"] = (dry.content, real.content)
    assert not faulty
    assert Job.objects.get().name == "using the dataset"


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    """Built before a fixture replaces the engines, since it is cached for all tests."""
    return api_document()


def test_an_operation_without_dry_run_refuses_it_and_does_nothing(
    document: dict[str, Any], administrator: APIClient, company: Company
) -> None:
    paths = document["paths"]
    before, faulty, supported = stored(), {}, 0
    for path, methods in paths.items():
        for method in methods.keys() & {"post", "put", "patch", "delete"}:
            parameters = {one["name"] for one in methods[method].get("parameters", ())}
            if "dry_run" in parameters:
                supported += 1
                continue
            url = path.replace("{", "").replace("}", "")
            url = "/".join("0" * 32 if part.endswith("uid") else part for part in url.split("/"))
            answer = getattr(administrator, method)(f"{url}?dry_run=true", {})
            if not 400 <= answer.status_code < 500:
                faulty[f"{method} {path}"] = answer.content
    assert not faulty
    assert stored() == before
    assert supported > 50
    undeletable = {
        path
        for path, methods in paths.items()
        if "delete" in methods
        and "dry_run" not in {one["name"] for one in methods["delete"]["parameters"]}
    }
    assert not undeletable
    refused = administrator.post(f"{API}/tokens?dry_run=true", {"name": "x"})
    assert "dry_run" in problem(refused, 400, "invalid")["errors"][0]["field"]
    unclear = administrator.post(f"{API}/priority-classes?dry_run=maybe", {"name": "x", "value": 1})
    assert problem(unclear, 400, "invalid")["errors"][0]["field"] == "dry_run"
