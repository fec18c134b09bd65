"""The admin: an administrator can look at every table, and little can be touched."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from django.apps import apps as installed
from django.contrib import admin
from django.db.models import Model
from django.test import Client
from django.urls import reverse

from apps.accounts import services as accounts
from apps.accounts.models import (
    AuditEntry,
    ExternalIdentity,
    IdempotencyRecord,
    Membership,
    PersonalToken,
    Team,
    User,
)
from apps.fleet.models import Card, Cluster, Node
from apps.jobs import services as jobs
from apps.jobs.models import Job
from apps.models.models import Dataset, ModelVersion, ModelVersionTransition
from apps.quotas.models import Queue
from apps.serving.models import ApiKey, Deployment, GatewaySnapshot
from apps.serving.services import deployments, keys, snapshots, usage
from controlplane.domain.jobs import JobKind
from controlplane.domain.models import MODEL, ModelEvent
from controlplane.domain.permissions import Scope
from controlplane.persistence.moves import move
from tests.functional.admin.rows import some_row
from tests.integration.company import ENGINE, Company

#: Registered by what we build on; ours are all others.
FOREIGN = {"auth", "contenttypes", "sessions", "admin"}
MODELS = sorted(
    (model for model in admin.site._registry if model._meta.app_label not in FOREIGN),
    key=lambda model: model._meta.label,
)
EDITABLE = {
    "User",
    "Team",
    "Membership",
    "Cluster",
    "Queue",
    "Dataset",
    "ModelLine",
    "RetentionRule",
    "StorageQuota",
}

#: Grants and limits, not records: the audit trail keeps what they were.
DELETABLE = {"Membership", "RetentionRule", "StorageQuota"}


@dataclass(frozen=True, kw_only=True)
class LivedIn:
    """A company in which something has happened: every table has rows."""

    company: Company
    boss: User
    key: ApiKey
    key_text: str
    token: PersonalToken
    token_text: str
    running: Job
    deployment: Deployment


@pytest.fixture
def boss(db: None) -> User:
    return User.objects.create_superuser("boss", password="a long password")


@pytest.fixture
def lived_in(company: Company, boss: User) -> LivedIn:
    _, trained = company.running()
    jobs.progress_record(attempt=trained, points=[{"step": 1, "loss": 2.0}], at=company.at)
    company.finish(trained)
    jobs.filter_save(owner=company.engineer, name="failures", query="state=failed")
    _, evaluated = company.running(kind=JobKind.EVALUATE, output_name="")
    company.finish(evaluated, {"report.json": b"{}"})
    company.turn_jobs()
    deployment = deployments.deployment_create(
        actor=company.engineer,
        team=company.team,
        name="parser",
        configuration=deployments.Configuration(model_version=company.model, engine=ENGINE),
        queue=company.queue,
    )
    running, _ = company.running()
    company.turn_deployments()
    company.schedule()
    company.turn_deployments()
    broken = ModelVersion.objects.create(line=company.model.line, number=99)
    move(broken, MODEL, ModelEvent.FAIL, into=ModelVersionTransition, at=company.at, reason="gone")
    key, key_text = keys.key_create(
        actor=company.engineer, team=company.team, name="robot", at=company.at
    )
    token, token_text = accounts.token_create(
        user=company.engineer, name="laptop", scopes=frozenset({Scope.ALL})
    )
    ExternalIdentity.objects.create(
        user=company.engineer, issuer="https://sign-on.example", subject="s-1", name="mei"
    )
    IdempotencyRecord.objects.create(
        user=company.engineer, key="k1", fingerprint="f" * 64, status=201, body={"key": "nf-hush"}
    )
    snapshots.gateway_seen(name="gateway-1", version=1, at=company.at)
    record = {
        "at": company.at.isoformat(),
        "key": key.uid,
        "route": "parser",
        "backend": "",
        "operation": "chat",
        "status": 200,
        "outcome": "ok",
        "prompt_tokens": 1,
        "completion_tokens": 1,
        "duration_ms": 5.0,
        "first_token_ms": None,
    }
    for name in company.cluster.names():
        company.cluster.run(name)
    for _ in range(2):
        company.turn_deployments()
    usage.usage_record(gateway="gateway-1", sequence=1, records=[record])
    return LivedIn(
        company=company,
        boss=boss,
        key=key,
        key_text=key_text,
        token=token,
        token_text=token_text,
        running=running,
        deployment=deployment,
    )


@pytest.fixture
def browser(client: Client, boss: User) -> Client:
    client.force_login(boss)
    return client


def page(model: type[Model], name: str = "changelist", *args: object) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{name}", args=args)


def act(browser: Client, model: type[Model], action: str, *rows: Model) -> list[str]:
    """Run an action on those rows; say what the administrator is told."""
    response = browser.post(
        page(model), {"action": action, "_selected_action": [row.pk for row in rows]}
    )
    assert response.status_code == 302, response.content.decode()[:2000]
    # Looked at once, as a browser does; what has been read is not told again.
    return [str(message) for message in browser.get(response["Location"]).context["messages"]]


def errors_of(response: Any) -> dict[str, list[str]]:
    form = response.context_data["adminform"].form
    return {name: [str(error) for error in errors] for name, errors in form.errors.items()}


def test_every_table_of_ours_has_a_page() -> None:
    ours = {
        model
        for model in installed.get_models()
        if model._meta.app_config.name.startswith(("apps.", "controlplane."))
    }
    assert ours == set(MODELS)


def test_an_administrator_can_open_every_list_and_every_row(
    lived_in: LivedIn, browser: Client
) -> None:
    for model in MODELS:
        name = model._meta.label
        row = some_row(model)
        assert browser.get(page(model)).status_code == 200, name
        # A search that names a field wrongly fails only when it is used.
        assert browser.get(page(model), {"q": "parser"}).status_code == 200, name
        shown = browser.get(page(model, "change", row.pk))
        assert shown.status_code == 200, name


def test_nothing_secret_is_shown_anywhere(lived_in: LivedIn, browser: Client) -> None:
    snapshot = GatewaySnapshot.objects.latest("version")
    secrets = {
        lived_in.key.digest,
        lived_in.token.digest,
        lived_in.key_text,
        lived_in.token_text,
        "nf-hush",
        "f" * 64,
        snapshot.digest,
        bytes(snapshot.body).decode()[:40],
    }
    for model in MODELS:
        for row in model._default_manager.order_by("-pk")[:3]:
            text = browser.get(page(model, "change", row.pk)).content.decode()
            text += browser.get(page(model)).content.decode()
            assert not [secret for secret in secrets if secret in text], model._meta.label


def test_only_what_may_be_edited_can_be_and_nothing_with_a_history_can_be_deleted(
    lived_in: LivedIn, browser: Client
) -> None:
    for model in MODELS:
        row = some_row(model)
        response = browser.get(page(model, "change", row.pk))
        name = model.__name__
        assert response.context["has_change_permission"] is (name in EDITABLE), name
        assert response.context["has_delete_permission"] is (name in DELETABLE), name
        if name not in EDITABLE:
            assert browser.post(page(model, "change", row.pk), {}).status_code == 403, name
        if name not in DELETABLE:
            assert browser.post(page(model, "delete", row.pk), {"post": "yes"}).status_code == 403
            assert model._default_manager.filter(pk=row.pk).exists()


def test_somebody_who_is_not_of_the_staff_sees_nothing(lived_in: LivedIn, client: Client) -> None:
    client.force_login(lived_in.company.engineer)
    for model in MODELS:
        row = some_row(model)
        for address in (page(model), page(model, "change", row.pk)):
            response = client.get(address)
            assert response.status_code == 302, address
            assert response["Location"].startswith("/admin/login/"), address
    assert client.get("/admin/login/?next=/admin/").status_code == 403


def test_staff_without_permissions_may_look_at_nothing_and_run_no_action(
    lived_in: LivedIn, client: Client
) -> None:
    clerk = User.objects.create(username="clerk", is_staff=True)
    client.force_login(clerk)

    assert client.get(page(Job)).status_code == 403
    response = client.post(
        page(Job), {"action": "cancel", "_selected_action": [lived_in.running.pk]}
    )
    assert response.status_code == 403
    lived_in.running.refresh_from_db()
    assert lived_in.running.cancel_requested_at is None


def test_a_job_is_cancelled_and_retried_through_its_services(
    lived_in: LivedIn, browser: Client
) -> None:
    job = lived_in.running
    assert act(browser, Job, "retry", job) == [
        "tune the parser: a job that is running cannot retry"
    ]
    assert act(browser, Job, "cancel", job) == ["tune the parser: is being cancelled."]
    job.refresh_from_db()
    assert job.cancel_requested_by == "boss"
    entry = AuditEntry.objects.get(action="job.cancel")
    assert (entry.actor, entry.object_uid) == (lived_in.boss, job.uid)

    lived_in.company.turn_jobs()
    lived_in.company.turn_jobs()
    assert act(browser, Job, "retry", job) == ["tune the parser: waits for cards again."]
    job.refresh_from_db()
    assert job.state == "waiting"


def test_a_deployment_is_stopped_through_its_service(lived_in: LivedIn, browser: Client) -> None:
    assert act(browser, Deployment, "stop", lived_in.deployment) == ["parser: is being stopped."]
    assert (
        "a deployment that is stopping cannot stop"
        in act(browser, Deployment, "stop", lived_in.deployment)[-1]
    )
    assert AuditEntry.objects.filter(action="deployment.stop").count() == 1


def test_keys_and_tokens_are_revoked_through_their_services(
    lived_in: LivedIn, browser: Client
) -> None:
    before = GatewaySnapshot.objects.latest("version")
    act(browser, ApiKey, "revoke", lived_in.key)
    act(browser, PersonalToken, "revoke", lived_in.token)

    lived_in.key.refresh_from_db()
    lived_in.token.refresh_from_db()
    assert lived_in.key.revoked_at is not None
    assert lived_in.token.revoked_at is not None
    assert GatewaySnapshot.objects.latest("version").version > before.version
    actions = AuditEntry.objects.filter(action__endswith=".revoke").values_list("action", flat=True)
    assert set(actions) == {"key.revoke", "token.revoke"}


def test_a_node_is_cordoned_and_opened_again_with_a_trace(
    lived_in: LivedIn, browser: Client
) -> None:
    node = Node.objects.get()
    assert act(browser, Node, "cordon", node) == ["1 of 1 nodes changed; all are cordoned."]
    act(browser, Node, "cordon", node)
    node.refresh_from_db()
    assert node.cordoned
    act(browser, Node, "uncordon", node)
    node.refresh_from_db()
    assert not node.cordoned
    actions = AuditEntry.objects.filter(object_uid=node.uid).order_by("id")
    assert [entry.action for entry in actions] == ["node.cordon", "node.uncordon"]


def test_a_failed_import_can_be_tried_again(lived_in: LivedIn, browser: Client) -> None:
    broken = ModelVersion.objects.get(number=99)
    assert act(browser, ModelVersion, "retry", broken) == ["tiny v99: its import is tried again."]
    broken.refresh_from_db()
    assert broken.state == "importing"
    assert "cannot retry" in act(browser, ModelVersion, "retry", lived_in.company.model)[-1]


def test_queues_are_opened_and_closed_with_a_trace(company: Company, browser: Client) -> None:
    assert act(browser, Queue, "close_queues", company.queue) == [
        "1 of 1 queues changed; all are closed; what runs goes on."
    ]
    company.queue.refresh_from_db()
    assert not company.queue.open
    act(browser, Queue, "open_queues", company.queue)
    company.queue.refresh_from_db()
    assert company.queue.open
    assert AuditEntry.objects.filter(action__in=("queue.close", "queue.open")).count() == 2


def queue_form(**changes: object) -> dict[str, object]:
    return {"name": "default", "parent": "", "team": "", "caps": "{}", "open": "on", **changes}


def test_the_caps_of_a_queue_are_changed_with_a_trace(company: Company, browser: Client) -> None:
    company.submit()
    company.schedule()
    address = page(Queue, "change", company.queue.pk)
    assert "1 × cpu" in browser.get(address).content.decode()

    assert browser.post(address, queue_form(caps='{"cpu": 8}')).status_code == 302

    company.queue.refresh_from_db()
    assert company.queue.caps == {"cpu": 8}
    entry = AuditEntry.objects.get(action="queue.change")
    assert entry.actor_name == "boss"
    assert entry.detail["by"] == "admin"
    assert entry.detail["change"] == [{"changed": {"fields": ["Caps"]}}]


@pytest.mark.parametrize(
    ("caps", "words"),
    [
        ('{"tpu-v9": 1}', "no chip is called 'tpu-v9'; known: cpu"),
        ('{"cpu": -1}', "the cap of 'cpu' must be a whole number of cards from 0, got -1"),
        ('{"cpu": 1.5}', "must be a whole number of cards from 0, got 1.5"),
        ('{"cpu": true}', "must be a whole number of cards from 0, got True"),
        ('{"cpu": "8"}', "must be a whole number of cards from 0, got '8'"),
        ("[1]", "caps must be a JSON object of chip to cards"),
        ("{cpu", "Enter a valid JSON."),
    ],
)
def test_caps_that_make_no_sense_are_refused_with_a_clear_message(
    company: Company, browser: Client, caps: str, words: str
) -> None:
    response = browser.post(page(Queue, "change", company.queue.pk), queue_form(caps=caps))

    assert response.status_code == 200
    assert words in errors_of(response)["caps"][0]
    company.queue.refresh_from_db()
    assert company.queue.caps == {}
    assert not AuditEntry.objects.filter(action="queue.change").exists()


def test_a_queue_cannot_be_its_own_ancestor(company: Company, browser: Client) -> None:
    child = Queue.objects.create(name="child", parent=company.queue)

    response = browser.post(
        page(Queue, "change", company.queue.pk), queue_form(parent=str(child.pk))
    )

    assert "a queue cannot be its own ancestor" in errors_of(response)["parent"][0]


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        (
            {"kind": "abacus"},
            "kind",
            "no cluster adapter is called 'abacus'; installed: fake, local",
        ),
        ({"options": "[1]"}, "options", "options must be a JSON object"),
    ],
)
def test_a_cluster_that_could_not_be_reached_is_refused(
    browser: Client, changes: dict[str, str], field: str, words: str
) -> None:
    form = {"name": "east", "kind": "fake", "options": "{}", "binding": "card", **changes}

    response = browser.post(page(Cluster, "add"), form)

    assert words in errors_of(response)[field][0]
    assert not Cluster.objects.filter(name="east").exists()


def test_a_team_is_created_with_its_members_and_a_membership_taken_away_again(
    company: Company, browser: Client
) -> None:
    form = {
        "name": "Vision",
        "slug": "vision",
        "memberships-TOTAL_FORMS": "1",
        "memberships-INITIAL_FORMS": "0",
        "memberships-MIN_NUM_FORMS": "0",
        "memberships-MAX_NUM_FORMS": "1000",
        "memberships-0-user": str(company.engineer.pk),
        "memberships-0-role": "viewer",
    }
    assert browser.post(page(Team, "add"), form).status_code == 302
    team = Team.objects.get(slug="vision")
    membership = Membership.objects.get(team=team)
    assert (membership.user, membership.role) == (company.engineer, "viewer")
    assert AuditEntry.objects.get(action="team.create").team == team

    browser.post(page(Membership, "delete", membership.pk), {"post": "yes"})

    assert not Membership.objects.filter(team=team).exists()
    gone = AuditEntry.objects.get(action="membership.delete")
    assert (gone.team, gone.object_name) == (team, "mei is viewer of Vision")


def test_a_person_is_created_and_their_password_changed_with_a_trace(
    browser: Client, boss: User
) -> None:
    secret = "correct horse battery"
    form = {
        "username": "ada",
        "usable_password": "true",
        "password1": secret,
        "password2": secret,
    }
    assert browser.post(page(User, "add"), form).status_code == 302
    ada = User.objects.get(username="ada")
    assert ada.check_password(secret)
    other = "another horse battery"
    changed = browser.post(
        reverse("admin:auth_user_password_change", args=[ada.pk]),
        {"usable_password": "true", "password1": other, "password2": other},
    )
    assert changed.status_code == 302
    ada.refresh_from_db()
    assert ada.check_password(other)
    trail = AuditEntry.objects.filter(object_uid=ada.uid).order_by("id")
    assert [entry.action for entry in trail] == ["user.create", "user.change"]
    assert secret not in json.dumps([entry.detail for entry in trail])


def test_the_state_of_a_card_cannot_be_forged(company: Company, browser: Client) -> None:
    card = Card.objects.order_by("id")[0]

    response = browser.post(page(Card, "change", card.pk), {"state": "isolated"})

    assert response.status_code == 403
    card.refresh_from_db()
    assert card.state == "usable"


def test_a_dataset_keeps_its_name_and_takes_a_description(
    company: Company, browser: Client
) -> None:
    dataset = company.dataset.dataset
    form = {"name": "renamed", "description": "street names of 2026"}

    assert browser.post(page(Dataset, "change", dataset.pk), form).status_code == 302

    dataset.refresh_from_db()
    assert (dataset.name, dataset.description) == ("addresses", "street names of 2026")
    assert AuditEntry.objects.get(action="dataset.change").team == company.team


def test_lists_can_be_narrowed_by_date(lived_in: LivedIn, browser: Client) -> None:
    tomorrow = lived_in.company.at + timedelta(days=400)
    response = browser.get(page(Job), {"created_at__year": str(tomorrow.year)})

    assert response.status_code == 200
    assert list(response.context["cl"].result_list) == []
